//! Tests windowed filters and counters, which the generic call creates. The client's methods work on them as on other
//! filters.

use std::collections::{BTreeSet, HashMap};

use redis::bloom::{BloomFilterDumpChunk, BloomFilterInfoTypeResponse};
use redis::{RedisResult, Value, cmd};

use crate::ways::{Session, error};

/// A window of a day in four slices, with the manual clock.
const WINDOW: [&str; 5] = ["WINDOW", "86400", "MANUAL", "SLICES", "4"];

fn advance(session: &mut Session, family: &str, key: &str, slice: u64) {
    let advanced = session.query(cmd(&format!("{family}.ADVANCE")).arg(key).arg(slice));
    assert_eq!(advanced, Ok(Value::Okay));
}

fn mexists(session: &mut Session, key: &str, items: &[&str]) -> RedisResult<Vec<bool>> {
    got!(&mut session.connection, bf_mexists(key, &items))
}

in_every_way! {
    fn a_filter_with_a_window(session: &mut Session) {
        let (key, copy) = (session.key("key"), session.key("copy"));
        assert_eq!(session.query(cmd("BF.RESERVE").arg(&key).arg(0.001).arg(1000).arg(&WINDOW)), Ok(Value::Okay));
        let added: RedisResult<bool> = got!(&mut session.connection, bf_add(&key, "ann"));
        assert_eq!(added, Ok(true));
        let added: RedisResult<bool> = got!(&mut session.connection, bf_add(&key, "ann"));
        assert_eq!(added, Ok(false));
        advance(session, "BF", &key, 4);
        let added: RedisResult<Vec<bool>> = got!(&mut session.connection, bf_madd(&key, &["ann", "ben", "cem"]));
        assert_eq!(added, Ok(vec![false, true, true]));
        let added: RedisResult<Vec<bool>> = got!(&mut session.connection, bf_insert(&key, &["cem", "dan"]));
        assert_eq!(added, Ok(vec![false, true]));
        let found: RedisResult<bool> = got!(&mut session.connection, bf_exists(&key, "ann"));
        assert_eq!(found, Ok(true));
        let card: RedisResult<usize> = got!(&mut session.connection, bf_card(&key));
        assert_eq!(card, Ok(4));
        advance(session, "BF", &key, 5);
        assert_eq!(mexists(session, &key, &["ann", "ben", "dan"]), Ok(vec![false, true, true]));
        let info: HashMap<String, BloomFilterInfoTypeResponse> =
            got!(&mut session.connection, bf_info(&key)).expect("what BF.INFO says");
        assert_eq!(info.len(), 5);
        assert_eq!([*info["Capacity"], *info["Number of items inserted"]], [1000.0, 3.0]);
        let mut iterator = 0;
        loop {
            let chunk: BloomFilterDumpChunk =
                got!(&mut session.connection, bf_scandump(&key, iterator)).expect("a chunk");
            if chunk.iterator == 0 {
                break;
            }
            iterator = chunk.iterator;
            let loaded: RedisResult<()> = got!(&mut session.connection, bf_loadchunk(&copy, chunk));
            assert_eq!(loaded, Ok(()));
        }
        assert_eq!(mexists(session, &copy, &["ann", "ben", "dan"]), Ok(vec![false, true, true]));
    }

    fn a_counter_with_a_window(session: &mut Session) {
        let key = session.key("key");
        assert_eq!(session.query(cmd("LC.RESERVE").arg(&key).arg(&WINDOW)), Ok(Value::Okay));
        assert_eq!(session.query(cmd("LC.ADD").arg(&key).arg(&["ann", "ben"])), Ok(2));
        advance(session, "LC", &key, 4);
        assert_eq!(session.query(cmd("LC.ADD").arg(&key).arg(&["ben", "cem"])), Ok(1));
        assert_eq!(session.query(cmd("LC.COUNT").arg(&key)), Ok(3));
        assert_eq!(session.query(cmd("LC.COUNTSINCE").arg(&key).arg(3600)), Ok(2));
        let rows: Vec<(i64, u64, f64)> = session.query(cmd("LC.HISTORY").arg(&key)).expect("rows");
        assert_eq!(rows, [(86_400, 2, 0.0), (64_800, 2, 0.0), (43_200, 2, 0.0), (21_600, 2, 0.0), (0, 3, 0.0)]);
        let info: HashMap<String, Value> = session.query(cmd("LC.INFO").arg(&key)).expect("lines");
        assert_eq!(["Window", "Slices", "Slice"].map(|label| info[label].clone()), [86_400, 4, 4].map(Value::Int));
    }

    fn questions_over_several_counters(session: &mut Session) {
        let (window, plain) = (session.key("window"), session.key("plain"));
        let insert = session.query(cmd("LC.INSERT").arg(&window).arg(&WINDOW).arg("ITEMS").arg(&["ann", "ben"]));
        assert_eq!(insert, Ok(2));
        advance(session, "LC", &window, 4);
        assert_eq!(session.query(cmd("LC.ADD").arg(&window).arg(&["ben", "cem"])), Ok(1));
        assert_eq!(session.query(cmd("LC.ADD").arg(&plain).arg(&["cem", "dan"])), Ok(2));
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let (all, late, others) = (set(&["ann", "ben", "cem"]), set(&["ben", "cem"]), set(&["cem", "dan"]));
        let cases: [(_, &[&str], _, _); 4] = [
            ([&window, &plain], &[], &all, &others),
            ([&window, &plain], &["SINCE", "3600", "-"], &late, &others),
            ([&window, &window], &["SINCE", "-", "3600"], &all, &late),
            ([&window, &window], &["SINCE", "3600"], &late, &late),
        ];
        for (keys, since, first, second) in cases {
            for (name, members) in [("UNION", first | second), ("INTER", first & second), ("DIFF", first - second)] {
                let question = |name: &str| cmd(name).arg(2).arg(&keys).arg(since).to_owned();
                let number = session.query(&question(&format!("LC.{name}CARD")));
                assert_eq!(number, Ok((members.len(), 0.0)), "{name} {since:?}");
                assert_eq!(session.query(&question(&format!("LC.{name}"))), Ok(members), "{name} {since:?}");
            }
        }
        let intersected = cmd("LC.INTERCARD").arg(2).arg(&[&window, &plain]).arg(&["SINCE", "3600"]).to_owned();
        let rejected = session.query::<Value>(&intersected);
        assert!(error(rejected).contains("has no window of time"));
    }
}
