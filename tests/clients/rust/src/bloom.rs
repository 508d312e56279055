//! Tests every BF command of redis-rs' feature `bloom`. They use nothing beyond RedisBloom, so they pass with
//! RedisBloom too.

use std::collections::HashMap;

use redis::bloom::{
    BloomFilterDumpChunk, BloomFilterDumpIterator, BloomFilterInfoType, BloomFilterInfoTypeResponse,
    BloomFilterInsertOptions, BloomFilterScalingOptions,
};
use redis::{RedisResult, cmd};

use crate::ways::{Connection, Session, error};

const FULL: &str = "ERR non scaling filter is full";

/// The five lines of the client's reply to BF.INFO, as numbers. The expansion of a filter that does not grow is 0.
fn info(session: &mut Session, key: &str) -> HashMap<String, f64> {
    let found: HashMap<String, BloomFilterInfoTypeResponse> =
        got!(&mut session.connection, bf_info(key)).expect("what BF.INFO says");
    assert_eq!(found.len(), 5);
    found.into_iter().map(|(label, value)| (label, *value)).collect()
}

fn info_type(session: &mut Session, key: &str, asked: BloomFilterInfoType) -> f64 {
    let found: BloomFilterInfoTypeResponse =
        got!(&mut session.connection, bf_info_type(key, asked)).expect("what BF.INFO says");
    *found
}

fn reserve(session: &mut Session, key: &str, error_rate: f64, capacity: usize) -> RedisResult<()> {
    got!(&mut session.connection, bf_reserve(key, error_rate, capacity))
}

fn add(session: &mut Session, key: &str, item: &str) -> RedisResult<bool> {
    got!(&mut session.connection, bf_add(key, item))
}

fn madd(session: &mut Session, key: &str, items: &[impl AsRef<[u8]>]) -> RedisResult<Vec<bool>> {
    let items: Vec<&[u8]> = items.iter().map(AsRef::as_ref).collect();
    got!(&mut session.connection, bf_madd(key, items))
}

fn exists(session: &mut Session, key: &str, item: &str) -> RedisResult<bool> {
    got!(&mut session.connection, bf_exists(key, item))
}

fn mexists(session: &mut Session, key: &str, items: &[impl AsRef<[u8]>]) -> RedisResult<Vec<bool>> {
    let items: Vec<&[u8]> = items.iter().map(AsRef::as_ref).collect();
    got!(&mut session.connection, bf_mexists(key, &items))
}

fn insert(session: &mut Session, key: &str, items: &[&str]) -> RedisResult<Vec<bool>> {
    got!(&mut session.connection, bf_insert(key, items))
}

fn insert_with(
    session: &mut Session,
    key: &str,
    items: &[&str],
    options: BloomFilterInsertOptions,
) -> RedisResult<Vec<bool>> {
    got!(&mut session.connection, bf_insert_options(key, items, options))
}

fn card(session: &mut Session, key: &str) -> RedisResult<usize> {
    got!(&mut session.connection, bf_card(key))
}

fn scandump(session: &mut Session, key: &str, iterator: i64) -> RedisResult<BloomFilterDumpChunk> {
    got!(&mut session.connection, bf_scandump(key, iterator))
}

fn loadchunk(session: &mut Session, key: &str, chunk: BloomFilterDumpChunk) -> RedisResult<()> {
    got!(&mut session.connection, bf_loadchunk(key, chunk))
}

fn dump(session: &mut Session, key: &str) -> Vec<BloomFilterDumpChunk> {
    let mut chunks = Vec::new();
    loop {
        let iterator = chunks.last().map_or(0, |chunk: &BloomFilterDumpChunk| chunk.iterator);
        let chunk = scandump(session, key, iterator).expect("a chunk");
        if chunk.iterator == 0 {
            assert!(chunk.data.is_empty());
            return chunks;
        }
        chunks.push(chunk);
    }
}

in_every_way! {
    fn reserve_and_info(session: &mut Session) {
        let key = session.key("key");
        assert_eq!(reserve(session, &key, 0.001, 1000), Ok(()));
        let mut found = info(session, &key);
        assert!(found.remove("Size").is_some_and(|size| size > 1000.0));
        let expected = [
            ("Capacity", 1000.0),
            ("Number of filters", 1.0),
            ("Number of items inserted", 0.0),
            ("Expansion rate", 2.0),
        ];
        assert_eq!(found, expected.map(|(label, value)| (label.to_owned(), value)).into());
        assert_eq!(error(reserve(session, &key, 0.001, 1000)), "ERR item exists");
        let rare = session.key("rare");
        assert_eq!(reserve(session, &rare, 1e-7, 100), Ok(())); // is sent as 1e-7
    }

    fn info_of_one_type(session: &mut Session) {
        let key = session.key("key");
        reserve(session, &key, 0.01, 500).expect("a filter");
        madd(session, &key, &["a", "b"]).expect("items");
        let all = info(session, &key);
        for (asked, label) in [
            (BloomFilterInfoType::Capacity, "Capacity"),
            (BloomFilterInfoType::Size, "Size"),
            (BloomFilterInfoType::Filters, "Number of filters"),
            (BloomFilterInfoType::Items, "Number of items inserted"),
            (BloomFilterInfoType::Expansion, "Expansion rate"),
        ] {
            assert_eq!(info_type(session, &key, asked), all[label], "{label}");
        }
    }

    fn expansion(session: &mut Session) {
        let key = session.key("key");
        let reserved: RedisResult<()> = got!(
            &mut session.connection,
            bf_reserve_options(&key, 0.01, 10, BloomFilterScalingOptions::ExpansionRate(4))
        );
        assert_eq!(reserved, Ok(()));
        for start in (0..50).step_by(10) {
            let items: Vec<String> = (start..start + 10).map(|item| item.to_string()).collect();
            madd(session, &key, &items).expect("items");
        }
        let found = info(session, &key);
        assert_eq!([found["Expansion rate"], found["Number of filters"], found["Capacity"]], [4.0, 2.0, 50.0]);
        assert_eq!(found["Number of items inserted"], card(session, &key).expect("a number") as f64);
    }

    fn a_filter_that_does_not_grow(session: &mut Session) {
        let key = session.key("key");
        let reserved: RedisResult<()> = got!(
            &mut session.connection,
            bf_reserve_options(&key, 0.0001, 3, BloomFilterScalingOptions::NonScaling)
        );
        assert_eq!(reserved, Ok(()));
        assert_eq!(info(session, &key)["Expansion rate"], 0.0);
        // If an element is an error, the client returns only this error. The items before it have been added.
        assert_eq!(error(madd(session, &key, &["a", "b", "c", "d", "e"])), FULL);
        assert_eq!(card(session, &key), Ok(3));
        assert_eq!(error(insert(session, &key, &["a", "d"])), FULL);
        assert_eq!(error(add(session, &key, "d")), FULL);
        assert_eq!(add(session, &key, "a"), Ok(false));
        assert_eq!(madd(session, &key, &["a", "b"]), Ok(vec![false, false]));
    }

    fn add_and_exists(session: &mut Session) {
        let key = session.key("key");
        assert_eq!(exists(session, &key, "ann"), Ok(false));
        assert_eq!(add(session, &key, "ann"), Ok(true));
        assert_eq!(add(session, &key, "ann"), Ok(false));
        assert_eq!(exists(session, &key, "ann"), Ok(true));
        assert_eq!(exists(session, &key, "ben"), Ok(false));
    }

    fn madd_and_mexists(session: &mut Session) {
        let key = session.key("key");
        assert_eq!(mexists(session, &key, &["ann", "ben"]), Ok(vec![false, false]));
        assert_eq!(madd(session, &key, &["ann"]), Ok(vec![true]));
        assert_eq!(madd(session, &key, &["ann", "ben", "ben"]), Ok(vec![false, true, false]));
        assert_eq!(mexists(session, &key, &["ann", "cem", "ben"]), Ok(vec![true, false, true]));
    }

    fn items_are_any_bytes(session: &mut Session) {
        let key = session.key("key");
        let mut items = vec![vec![], b"\r\n".to_vec(), vec![0, 255, 254], (0..=255).collect(), "déjà vu".into()];
        assert_eq!(madd(session, &key, &items), Ok(vec![true; 5]));
        items.push(vec![255]);
        assert_eq!(mexists(session, &key, &items), Ok(vec![true, true, true, true, true, false]));
    }

    fn insert_creates_by_its_options(session: &mut Session) {
        let key = session.key("key");
        let no_create = || BloomFilterInsertOptions::default().nocreate();
        assert_eq!(error(insert_with(session, &key, &["a"], no_create())), "ERR not found");
        let options = BloomFilterInsertOptions::default()
            .capacity(700)
            .error_rate(0.01)
            .expansion(BloomFilterScalingOptions::ExpansionRate(3));
        assert_eq!(insert_with(session, &key, &["a", "b", "a"], options), Ok(vec![true, true, false]));
        let found = info(session, &key);
        assert_eq!([found["Capacity"], found["Expansion rate"], found["Number of items inserted"]], [700.0, 3.0, 2.0]);
        let other = no_create().capacity(5).error_rate(0.5);
        assert_eq!(insert_with(session, &key, &["b", "c"], other), Ok(vec![false, true]));
        assert_eq!(info(session, &key)["Capacity"], 700.0);
        let defaults = session.key("defaults");
        assert_eq!(insert(session, &defaults, &["a"]), Ok(vec![true]));
        assert_eq!(info(session, &defaults)["Expansion rate"], 2.0);
        let fixed = session.key("fixed");
        let options = BloomFilterInsertOptions::default().capacity(9).expansion(BloomFilterScalingOptions::NonScaling);
        assert_eq!(insert_with(session, &fixed, &["a"], options), Ok(vec![true]));
        assert_eq!(info(session, &fixed)["Expansion rate"], 0.0);
    }

    fn card_counts_items(session: &mut Session) {
        let key = session.key("key");
        assert_eq!(card(session, &key), Ok(0));
        madd(session, &key, &["a", "b", "a"]).expect("items");
        assert_eq!(card(session, &key), Ok(2));
    }

    fn scandump_and_loadchunk(session: &mut Session) {
        let (key, copy) = (session.key("key"), session.key("copy"));
        // The filter has 4 MB, which this module dumps in several chunks of at most 1 MiB.
        reserve(session, &key, 0.0001, 1_500_000).expect("a filter");
        let items: Vec<String> = (0..20_000).map(|number| format!("user:{number}")).collect();
        madd(session, &key, &items).expect("items");
        let chunks = dump(session, &key);
        assert!(chunks.len() >= 2, "{}", chunks.len());
        if let Connection::Blocking(connection) = &mut session.connection {
            let iterated: RedisResult<Vec<_>> = BloomFilterDumpIterator::new(connection, &key).collect();
            assert!(iterated.as_ref() == Ok(&chunks));
        }
        for chunk in &chunks {
            assert_eq!(loadchunk(session, &copy, chunk.clone()), Ok(()));
        }
        assert_eq!(mexists(session, &copy, &items), Ok(vec![true; items.len()]));
        assert_eq!(info(session, &copy), info(session, &key));
        assert!(dump(session, &copy) == chunks);
    }

    fn errors(session: &mut Session) {
        let text = session.key("text");
        session.query::<()>(cmd("SET").arg(&text).arg("value")).expect("a string");
        for rejected in [
            error(add(session, &text, "a")),
            error(madd(session, &text, &["a"])),
            error(insert(session, &text, &["a"])),
            error(card(session, &text)),
            error(got!(&mut session.connection, bf_info(&text))),
            error(scandump(session, &text, 0)),
        ] {
            assert!(rejected.starts_with("WRONGTYPE "), "{rejected}");
        }
        let missing = session.key("missing");
        assert_eq!(error(got!(&mut session.connection, bf_info(&missing))), "ERR not found");
        error(scandump(session, &missing, 0));
        let chunk = BloomFilterDumpChunk { iterator: 1, data: b"not a header".to_vec() };
        error(loadchunk(session, &missing, chunk));
        for (error_rate, capacity) in [(0.0, 100), (1.0, 100), (f64::NAN, 100), (0.01, 0), (0.01, usize::MAX)] {
            error(reserve(session, &missing, error_rate, capacity));
        }
        assert_eq!(session.query(cmd("EXISTS").arg(&missing)), Ok(0));
    }
}
