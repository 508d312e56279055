//! Tests `MERGEDUMP` with the golden values of the core library as payloads, and with forged ones. These are rejected
//! with an error that names the payload and the field, and change nothing.

use std::fs;
use std::path::Path;

use redis::Value;
use rollcall_fuzz::fields::Field;
use rollcall_fuzz::payload::{decode, encode, from_hex};
use rollcall_testkit::{Server, add_many, error_text, words};

#[path = "../../../core/tests/golden/whole.rs"]
mod whole;

/// The fields of our data types. The last two repeat.
const OURS: [&str; 5] = ["header", "payload length", "payload length checksum", "payload checksum", "payload"];
/// What is named if a byte of one of these fields is damaged.
const SUMS: [&str; 5] =
    ["header checksum", "payload length checksum", "payload length checksum", "payload checksum", "payload checksum"];
/// The fields of RedisBloom's data type. The last eight repeat.
const CLASSIC: &str = "size nfilters options growth capacity error_rate hashes bits_per_item bits n2 data size";
/// The largest payload of which every field is damaged, in bytes.
const MOST: usize = 1 << 20;

/// A stored value: the name of its file, its payload, and whether all of it had arrived.
struct Golden {
    name: String,
    payload: Vec<u8>,
    is_complete: bool,
}

impl Golden {
    fn family(&self) -> &'static str {
        if self.name.starts_with("counter") { "LC" } else { "BF" }
    }

    fn merge(&self, key: &str, payload: &[u8]) -> Vec<Vec<u8>> {
        let command = format!("{}.MERGEDUMP", self.family());
        [command.as_bytes(), key.as_bytes(), payload].map(<[u8]>::to_vec).into()
    }
}

/// The payload of RedisBloom's value in a file with one line for each field.
fn of_redisbloom(text: &str) -> Vec<u8> {
    let fields = text.lines().filter_map(|line| match line.split_once(' ')? {
        ("u", number) => Some(Field::Unsigned(number.parse().expect("a number"))),
        ("d", number) => Some(Field::Double(number.parse().expect("a number"))),
        ("s", hex) => Some(Field::String(from_hex(hex))),
        _ => None,
    });
    encode("MBbloom--", 4, &fields.collect::<Vec<_>>())
}

fn goldens() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("core/tests/golden");
    let files = fs::read_dir(folder).expect("the golden files").map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    files.sort();
    let golden = |path: &std::path::PathBuf| {
        let name = path.file_stem()?.to_str()?.to_owned();
        let text = fs::read_to_string(path).expect("a golden file");
        let payload = match text.lines().find_map(|line| line.strip_prefix("payload ")) {
            Some(hex) if !hex.starts_with("of ") => from_hex(hex),
            Some(_) => whole::read(&fs::read(path.with_extension("whole")).expect("all bytes")).0,
            None if name.starts_with("redisbloom-") => of_redisbloom(&text),
            None => return None,
        };
        let is_complete = !name.ends_with("-arriving") && !name.ends_with("-begun");
        Some(Golden { name, payload, is_complete })
    };
    let goldens: Vec<Golden> = files.iter().filter_map(golden).collect();
    assert!(goldens.len() > 60 && goldens.iter().filter(|one| !one.is_complete).count() > 5, "{}", goldens.len());
    goldens
}

#[test]
fn golden_values_are_merged_as_by_merge() {
    let (mut server, mut client) = Server::start().with_client();
    for golden in goldens() {
        client.expect("FLUSHALL", "+OK");
        let merged = client.call(&golden.merge("by-value", &golden.payload));
        if !golden.is_complete {
            let error = error_text(&merged).unwrap_or_default();
            assert!(error.starts_with("ERR payload 1: value: expected a complete one, got one that is"), "{error}");
            client.expect("DBSIZE", "0");
            continue;
        }
        assert_eq!(merged, Value::Okay, "{}", golden.name);
        if golden.name.contains("volatile") {
            // Its window has passed, so the key expires at any moment.
            continue;
        }
        assert_eq!(client.restore("source", &golden.payload), Value::Okay);
        client.expect(&format!("{}.MERGE by-key source", golden.family()), "+OK");
        assert_eq!(client.digest("by-value"), client.digest("by-key"), "{}", golden.name);
        // Merged again, it changes nothing.
        let dirty = client.info_number("rdb_changes_since_last_save");
        assert_eq!(client.call(&golden.merge("by-key", &golden.payload)), Value::Okay);
        assert_eq!(client.digest("by-value"), client.digest("by-key"), "{}", golden.name);
        assert_eq!(client.info_number("rdb_changes_since_last_save"), dirty, "{}", golden.name);
    }
    server.assert_up();
}

/// The payload after damage to a single field, with a correct checksum, and the field that the error must name.
fn damaged_fields(payload: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let (type_name, encoding, fields) = decode(payload).expect("a payload");
    let is_ours = type_name != "MBbloom--";
    let name = |names: &[&'static str], once: usize, at: usize| match at < names.len() {
        true => names[at],
        false => names[once + (at - once) % (names.len() - once)],
    };
    let encode = |fields: &[Field]| encode(&type_name, encoding, fields);
    let mut damaged = vec![("end", encode(&[&fields[..], &[Field::Unsigned(0)]].concat()))];
    for (at, field) in fields.iter().enumerate().take(20) {
        let other = |field| encode(&[&fields[..at], &[field], &fields[at + 1..]].concat());
        let missing = if is_ours { name(&OURS, 3, at) } else { name(&words(CLASSIC), 4, at) };
        damaged.push((missing, encode(&fields[..at])));
        damaged.push((
            missing,
            other(match field {
                Field::Unsigned(number) => Field::Double(*number as f64),
                Field::Double(_) | Field::String(_) => Field::Unsigned(7),
            }),
        ));
        if is_ours {
            let changed = match field.clone() {
                Field::Unsigned(number) => Field::Unsigned(number ^ 1),
                Field::String(mut bytes) => {
                    *bytes.last_mut().expect("a byte") ^= 1;
                    Field::String(bytes)
                }
                Field::Double(_) => unreachable!("ours has none"),
            };
            damaged.push((name(&SUMS, 3, at), other(changed)));
        }
    }
    damaged
}

/// A regression test: the error did not say which payload has another sub-filter.
#[test]
fn a_payload_with_another_sub_filter_is_named() {
    let (_server, mut client) = Server::start().with_client();
    for (key, items) in [("k", 15), ("short", 5)] {
        client.expect(&format!("BF.RESERVE {key} 0.01 10 LAYOUT classic"), "+OK");
        add_many(&mut client, &format!("BF.MADD {key}"), "item:", 0..items);
    }
    let equal = client.dump("k");
    let (type_name, encoding, mut fields) = decode(&equal).expect("a payload");
    // The capacity of the second sub-filter.
    let Field::Unsigned(capacity) = &mut fields[12] else { panic!("{fields:?}") };
    *capacity -= 1;
    let other = encode(&type_name, encoding, &fields);
    // A destination without a second sub-filter takes that of the first payload.
    let cases = [("k", [&equal, &other], 2), ("k", [&other, &equal], 1)];
    let shorter = ["short", "missing"].map(|key| [(key, [&equal, &other], 2), (key, [&other, &equal], 2)]);
    for (key, payloads, number) in cases.into_iter().chain(shorter.into_iter().flatten()) {
        let reply = client.call(&[b"BF.MERGEDUMP", key.as_bytes(), payloads[0], payloads[1]]);
        let error = error_text(&reply).unwrap_or_default();
        assert!(error.starts_with(&format!("ERR payload {number}: filters differ in shape: ")), "{error}");
    }
}

#[test]
fn a_damaged_field_is_named_and_nothing_changes() {
    let (mut server, mut client) = Server::start().with_client();
    let is_damaged = |golden: &Golden| golden.is_complete && golden.payload.len() < MOST;
    for golden in goldens().into_iter().filter(is_damaged) {
        client.expect("FLUSHALL", "+OK");
        assert_eq!(client.restore("k", &golden.payload), Value::Okay);
        let (digest, size) = (client.digest("k"), client.int("DBSIZE"));
        let dirty = client.info_number("rdb_changes_since_last_save");
        for (field, payload) in damaged_fields(&golden.payload) {
            for key in ["k", "missing"] {
                let mut command = golden.merge(key, &golden.payload);
                command.push(payload.clone());
                let error = error_text(&client.call(&command)).unwrap_or_default();
                let expected = format!("ERR payload 2: {field}: expected ");
                assert!(error.starts_with(&expected), "{}: {error}, not {expected}", golden.name);
            }
        }
        assert_eq!((client.digest("k"), client.int("DBSIZE")), (digest, size), "{}", golden.name);
        assert_eq!(client.info_number("rdb_changes_since_last_save"), dirty, "{}", golden.name);
    }
    server.assert_up();
}
