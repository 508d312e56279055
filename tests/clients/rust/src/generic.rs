//! Tests commands without a method in redis-rs, by its generic call: LC.*, BF.MERGE, BF.CLEAR, BF.DEBUG.

use std::collections::HashMap;

use redis::{RedisResult, Value, cmd};

use crate::ways::{Session, error};

fn members(session: &mut Session, key: &str) -> RedisResult<Vec<Vec<u8>>> {
    let mut found: Vec<Vec<u8>> = session.query(cmd("LC.MEMBERS").arg(key))?;
    found.sort();
    Ok(found)
}

fn count(session: &mut Session, keys: &[&str]) -> RedisResult<u64> {
    session.query(cmd("LC.COUNT").arg(keys))
}

fn dump(session: &mut Session, key: &str) -> Vec<(i64, Vec<u8>)> {
    let mut chunks: Vec<(i64, Vec<u8>)> = Vec::new();
    loop {
        let iterator = chunks.last().map_or(0, |chunk| chunk.0);
        let chunk: (i64, Vec<u8>) = session.query(cmd("LC.SCANDUMP").arg(key).arg(iterator)).expect("a chunk");
        if chunk.0 == 0 {
            return chunks;
        }
        chunks.push(chunk);
    }
}

/// The reply to LC.INFO for a single field.
fn line(session: &Session, label: &str, value: Value) -> Value {
    if session.resp3 { Value::Map(vec![(Value::BulkString(label.into()), value)]) } else { Value::Array(vec![value]) }
}

in_every_way! {
    fn reserve(session: &mut Session) {
        let key = session.key("key");
        let mut reserve = cmd("LC.RESERVE");
        reserve.arg(&key).arg("ERROR").arg(0.005).arg("EXACT").arg(10).arg("SEED").arg(7);
        assert_eq!(session.query(&reserve), Ok(Value::Okay));
        assert_eq!(error(session.query::<Value>(&reserve)), "ERR item exists");
        let limit = session.query(cmd("LC.INFO").arg(&key).arg("EXACT"));
        assert_eq!(limit, Ok(line(session, "Exact limit", Value::Int(10))));
        let rate = session.query(cmd("LC.INFO").arg(&key).arg("ERROR"));
        assert_eq!(rate, Ok(line(session, "Error rate", session.double(0.005))));
    }

    fn add_and_insert(session: &mut Session) {
        let (key, other) = (session.key("key"), session.key("other"));
        let bytes = [0u8, 255];
        assert_eq!(session.query(cmd("LC.ADD").arg(&key).arg("ann").arg("ben").arg(&bytes).arg("ann")), Ok(3));
        assert_eq!(session.query(cmd("LC.INSERT").arg(&key).arg("NOCREATE").arg("ITEMS").arg(&["ben", "cem"])), Ok(1));
        assert_eq!(members(session, &key), Ok(vec![bytes.to_vec(), b"ann".to_vec(), b"ben".to_vec(), b"cem".to_vec()]));
        let rejected = session.query::<Value>(cmd("LC.INSERT").arg(&other).arg("NOCREATE").arg("ITEMS").arg("ann"));
        assert_eq!(error(rejected), "ERR not found");
        let options = ["ERROR", "0.02", "EXACT", "5", "SEED", "1"];
        assert_eq!(session.query(cmd("LC.INSERT").arg(&other).arg(&options).arg("ITEMS").arg("ann")), Ok(1));
    }

    fn count_difference_and_merge(session: &mut Session) {
        let (read, received, union) = (session.key("read"), session.key("received"), session.key("union"));
        assert_eq!(session.query(cmd("LC.ADD").arg(&received).arg(&["ann", "ben", "cem"])), Ok(3));
        assert_eq!(session.query(cmd("LC.ADD").arg(&read).arg(&["ann", "eva"])), Ok(2));
        assert_eq!(count(session, &[&received]), Ok(3));
        assert_eq!(count(session, &[&received, &read]), Ok(4));
        assert_eq!(count(session, &[&session.key("missing")]), Ok(0));
        let mut difference = cmd("LC.DIFFCARD");
        difference.arg(2);
        difference.arg(&received).arg(&read);
        assert_eq!(session.query(&difference), Ok((2, 0.0)));
        assert_eq!(session.query(&difference), Ok(Value::Array(vec![Value::Int(2), session.double(0.0)])));
        assert_eq!(session.query(cmd("LC.MERGE").arg(&union).arg(&received).arg(&read)), Ok(Value::Okay));
        assert_eq!(count(session, &[&union]), Ok(4));
    }

    fn estimates(session: &mut Session) {
        let (key, half) = (session.key("key"), session.key("half"));
        let everyone: Vec<String> = (0..20_000).map(|number| format!("user:{number}")).collect();
        session.query::<()>(cmd("LC.ADD").arg(&key).arg(&everyone)).expect("members");
        session.query::<()>(cmd("LC.ADD").arg(&half).arg(&everyone[..10_000])).expect("members");
        let counted = count(session, &[&key]).expect("a number") as f64;
        assert!((counted - 20_000.0).abs() < 20_000.0 * 4.0 * 0.01, "{counted}");
        let (difference, deviation): (f64, f64) =
            session.query(cmd("LC.DIFFCARD").arg(2).arg(&key).arg(&half)).expect("a number and its deviation");
        assert!((difference - 10_000.0).abs() < 4.0 * deviation && deviation < 200.0, "{difference}, {deviation}");
        assert!(error(members(session, &key)).contains("counter holds an estimate"));
    }

    fn info(session: &mut Session) {
        let key = session.key("key");
        session.query::<()>(cmd("LC.ADD").arg(&key).arg(&["ann", "ben"])).expect("members");
        let mut found: HashMap<String, Value> = session.query(cmd("LC.INFO").arg(&key)).expect("lines");
        assert!(matches!(found.remove("Size"), Some(Value::Int(size)) if size > 0));
        let text = |text: &str| Value::BulkString(text.into());
        let expected = [
            ("Error rate", session.double(0.01)),
            ("Exact limit", Value::Int(250)),
            ("Exact bytes", Value::Int(16_384)),
            ("Mode", text("exact")),
            ("Count", Value::Int(2)),
            ("Standard error", session.double(0.0)),
            ("Window", Value::Nil),
            ("Slices", Value::Nil),
            ("Slice", Value::Nil),
            ("Clock", Value::Nil),
            ("Volatile", Value::Nil),
        ];
        assert_eq!(found, expected.map(|(label, value)| (label.to_owned(), value)).into());
        assert_eq!(error(session.query::<Value>(cmd("LC.INFO").arg(session.key("missing")))), "ERR not found");
    }

    fn scandump_and_loadchunk(session: &mut Session) {
        let (key, copy) = (session.key("key"), session.key("copy"));
        let numbers: Vec<u32> = (0..5000).collect();
        session.query::<()>(cmd("LC.ADD").arg(&key).arg(&numbers)).expect("members");
        let chunks = dump(session, &key);
        for (iterator, data) in &chunks {
            assert_eq!(session.query(cmd("LC.LOADCHUNK").arg(&copy).arg(iterator).arg(data)), Ok(Value::Okay));
        }
        assert_eq!(count(session, &[&copy]), count(session, &[&key]));
        assert!(dump(session, &copy) == chunks);
    }

    fn another_type(session: &mut Session) {
        let key = session.key("key");
        session.query::<()>(cmd("SET").arg(&key).arg("value")).expect("a string");
        for command in [cmd("LC.ADD").arg(&key).arg("ann"), cmd("LC.COUNT").arg(&key)] {
            assert!(error(session.query::<Value>(command)).starts_with("WRONGTYPE "));
        }
    }

    fn filters(session: &mut Session) {
        let (one, other, union) = (session.key("one"), session.key("other"), session.key("union"));
        session.query::<()>(cmd("BF.MADD").arg(&one).arg(&["ann", "ben"])).expect("items");
        session.query::<()>(cmd("BF.MADD").arg(&other).arg("cem")).expect("items");
        assert_eq!(session.query(cmd("BF.MERGE").arg(&union).arg(&one).arg(&other)), Ok(Value::Okay));
        let found = session.query(cmd("BF.MEXISTS").arg(&union).arg(&["ann", "cem", "eva"]));
        assert_eq!(found, Ok(vec![true, true, false]));
        let debug: Vec<String> = session.query(cmd("BF.DEBUG").arg(&union)).expect("lines");
        assert_eq!(debug.len(), 2);
        assert_eq!(session.query(cmd("BF.CLEAR").arg(&union)), Ok(Value::Okay));
        assert_eq!(session.query(cmd("BF.CARD").arg(&union)), Ok(0));
    }
}
