//! Tests every publicly known defect of RedisBloom, by name, on a server with this module. Each attack must be
//! rejected, leave no key behind, and not harm the server.
//!
//! `core/tests/redisbloom/forged.rs` tests the same defects and more, field by field, without a server.

use redis::Value;
use rollcall_core::unstable::bloom::Rules;

use rollcall_fuzz::payload::encode;
use rollcall_fuzz::redisbloom_values::Field::{self, String as Bytes, Unsigned};
use rollcall_fuzz::redisbloom_values::{Dump, HeaderOf, dump_of, grown};
use rollcall_testkit::{Client, Server, Setup, error_text, optional_file, show};

/// A server that must reject forged data and stay unharmed.
struct Victim {
    server: Server,
    client: Client,
}

impl Victim {
    fn start() -> Victim {
        let server = Server::start();
        let client = server.client();
        Victim { server, client }
    }

    fn restore(&mut self, fields: &[Field]) -> Value {
        self.client.restore("key", &encode("MBbloom--", 4, fields))
    }

    /// Checks that RESTORE of this value is rejected.
    #[track_caller]
    fn rejects_value(&mut self, what: &str, fields: &[Field]) {
        let reply = self.restore(fields);
        let error = error_text(&reply).unwrap_or_else(|| panic!("{what}: RESTORE gave {}", show(&reply)));
        assert!(error.starts_with("ERR Bad data format"), "{what}: {error}");
        self.is_unharmed(what);
    }

    fn load(&mut self, iterator: u64, chunk: &[u8]) -> Value {
        self.client.call(&[b"BF.LOADCHUNK", b"key".as_slice(), iterator.to_string().as_bytes(), chunk])
    }

    /// Checks that BF.LOADCHUNK of this header is rejected.
    #[track_caller]
    fn rejects_header(&mut self, what: &str, header: &[u8]) {
        let reply = self.load(1, header);
        let error = error_text(&reply).unwrap_or_else(|| panic!("{what}: BF.LOADCHUNK gave {}", show(&reply)));
        let too_large = error.starts_with("ERR the filter needs ") && error.contains(" bytes, more than ");
        assert!(error == "ERR received bad data" || too_large, "{what}: {error}");
        self.is_unharmed(what);
    }

    /// Checks that the rejected value left no key behind, and that a filter can be created with its name.
    #[track_caller]
    fn is_unharmed(&mut self, what: &str) {
        self.client.expect("EXISTS key", "0");
        self.client.expect("BF.MADD key a b", "[1, 1]");
        self.client.expect("BF.EXISTS key a", "1");
        self.client.expect("DEL key", "1");
        assert_eq!(self.client.int("DBSIZE"), 0, "{what}");
        self.server.assert_up();
    }

    /// Checks that every command that needs the bits of a partially loaded filter fails.
    #[track_caller]
    fn waits_for_more(&mut self) {
        for line in ["BF.ADD key a", "BF.MADD key a b", "BF.INSERT key ITEMS a", "BF.EXISTS key a", "BF.INFO key"] {
            let error = self.client.error(line);
            assert!(error.starts_with("ERR filter is still loading: "), "{line}: {error}");
        }
        self.server.assert_up();
    }
}

fn honest() -> HeaderOf {
    HeaderOf::of(&grown())
}

/// What is damaged, and a function that damages it.
type Damage<T> = (&'static str, fn(&mut T));

/// Known defects, each with a change of the fields of an RDB value that shows it.
const VALUES: [Damage<Vec<Field>>; 11] = [
    ("CVE-2026-25589: more bits than bytes", |f| f[8] = Unsigned(1 << 40)),
    ("CVE-2026-25589: bits that overflow", |f| f[8] = Unsigned(u64::MAX - 7)),
    ("CVE-2026-25589: hashes that do not follow", |f| f[6] = Unsigned(1 << 32)),
    ("Redis 8.0.5 and 8.2.3: a value that ends early", |f| f.truncate(5)),
    ("Redis 8.0.5 and 8.2.3: a value without its last bitmap", |f| f.truncate(f.len() - 2)),
    ("Redis 8.0.5 and 8.2.3: another kind of field", |f| f[3] = Bytes(b"text".to_vec())),
    ("Redis 8.2.8: no bitmap", |f| f[FIRST_DATA] = Bytes(Vec::new())),
    ("Redis 8.2.8: a bitmap that is too long", |f| f[FIRST_DATA] = Bytes(vec![0; 1 << 20])),
    ("Redis 8.2.8: a shift by the width of a number", |f| f[9] = Unsigned(64)),
    ("MOD-15943: one sub-filter too many", |f| f[1] = Unsigned(4)),
    ("MOD-15943: a number of sub-filters that overflows", |f| f[1] = Unsigned(1 << 60)),
];

/// Known defects, each with a change of the header of a dump, and of the RDB value with the same fields.
const HEADERS: [Damage<HeaderOf>; 10] = [
    ("Redis 8.0.5 and 8.2.3: more bits than bytes", |h| h.links[0].bits += 64),
    ("Redis 8.0.5 and 8.2.3: more bits, in the newest sub-filter", |h| h.links[2].bits = 1 << 40),
    ("Redis 8.0.5 and 8.2.3: a rate that is no number", |h| h.links[0].error_rate = f64::NAN),
    ("Redis 8.0.5 and 8.2.3: bits an item that are no number", |h| h.links[0].bits_per_item = f64::NAN),
    ("Redis 8.0.5 and 8.2.3: no capacity", |h| h.links[2].capacity = 0),
    ("Redis 8.0.5 and 8.2.3: an option that is none", |h| h.options = u32::MAX),
    ("Redis 8.0.5 and 8.2.3: 32-bit hashes", |h| h.options = Rules::NOROUND),
    ("Redis 8.0.5 and 8.2.3: an empty chain", |h| (h.count, h.links) = (0, Vec::new())),
    ("Redis 8.0.5 and 8.2.3: an empty chain that claims items", |h| (h.size, h.count, h.links) = (9, 0, Vec::new())),
    ("Redis 8.0.5 and 8.2.3: an empty chain that claims to have one", |h| (h.count, h.links) = (1, Vec::new())),
];

/// The index of the first bitmap in the fields of [`HeaderOf::rdb`].
const FIRST_DATA: usize = 10;

#[test]
fn known_defects_are_rejected() {
    let mut victim = Victim::start();
    for (what, damage) in VALUES {
        let mut fields = honest().rdb();
        damage(&mut fields);
        victim.rejects_value(what, &fields);
    }
    for (what, damage) in HEADERS {
        let mut header = honest();
        damage(&mut header);
        victim.rejects_header(what, &header.bytes());
        victim.rejects_value(what, &header.rdb());
    }
}

/// Checks the assumption of all other tests: values and dumps that were not damaged are accepted.
#[test]
fn undamaged_values_and_dumps_are_accepted() {
    let mut victim = Victim::start();
    assert_eq!(victim.restore(&honest().rdb()), Value::Okay);
    victim.client.expect("BF.INFO key FILTERS", "[3]");
    victim.client.expect("DEL key", "1");
    let dump: Dump = dump_of(&grown());
    for (iterator, chunk) in &dump {
        assert_eq!(victim.load(*iterator, chunk), Value::Okay);
    }
    victim.client.expect("BF.CARD key", &grown().num_items().to_string());
}

#[test]
fn mod_12225_rejected_values_leave_no_memory_behind() {
    let mut victim = Victim::start();
    // The bitmap is read before the wrong field is reached.
    let mut header = honest();
    (header.links[0].bytes, header.links[0].bits) = (1 << 20, 1 << 23);
    let mut fields = header.rdb();
    fields.truncate(FIRST_DATA + 2);
    victim.rejects_value("before", &fields);
    let before = victim.client.info_number("used_memory");
    for _ in 0..200 {
        assert!(error_text(&victim.restore(&fields)).is_some());
    }
    let grown = victim.client.info_number("used_memory") - before;
    assert!(grown < 20 << 20, "200 MiB were rejected, {grown} bytes stayed");
}

/// This defect was reported for LOADCHUNK of RedisBloom's Cuckoo filters. Earlier releases of its Bloom filters
/// accepted such chunks too.
#[test]
fn cve_2024_25115_a_chunk_that_reaches_past_the_end() {
    let dump: Dump = dump_of(&grown());
    let len: usize = dump[1..].iter().map(|(_, chunk)| chunk.len()).sum();
    let mut victim = Victim::start();
    assert_eq!(victim.load(1, &dump[0].1), Value::Okay);
    let long = vec![0xff; len + 8];
    for iterator in [0, 2, 9, len as u64, len as u64 + 1, len as u64 + 9, 1 << 32, i64::MAX as u64, u64::MAX] {
        for size in [1, 7, 8, 100, len + 1, len + 8] {
            let chunk = &long[..size];
            // The only acceptable chunk begins the payload, and does not reach beyond its end.
            if iterator == size as u64 + 1 && size <= len {
                continue;
            }
            assert!(error_text(&victim.load(iterator, chunk)).is_some(), "{size} bytes at {iterator}");
        }
    }
    victim.waits_for_more();
    for (iterator, chunk) in &dump[1..] {
        assert_eq!(victim.load(*iterator, chunk), Value::Okay);
    }
    // The dump is complete, so any further chunk is beyond its end.
    for iterator in [1, 2, len as u64 + 1, len as u64 + 2, len as u64 + 9] {
        victim.client.expect(&format!("BF.LOADCHUNK key {iterator} 12345678"), "-ERR received bad data");
    }
    victim.client.expect("BF.CARD key", &grown().num_items().to_string());
    victim.server.assert_up();
}

/// Data of a Cuckoo filter is sent to BF.LOADCHUNK and RESTORE as if it were a Bloom filter.
#[test]
fn chunks_and_values_of_a_cuckoo_filter() {
    let mut victim = Victim::start();
    // Items, buckets, deletions and filters have 8 bytes each. Bucket size, iterations and expansion have 2.
    let numbers = [3u64, 512, 0, 1].map(u64::to_le_bytes).concat();
    let header = [numbers, [2u16, 20, 1].map(u16::to_le_bytes).concat()].concat();
    victim.rejects_header("a header of a Cuckoo filter", &header);
    victim.rejects_value("fields of a Cuckoo filter", &[1, 512, 3, 0, 2, 20, 1].map(Unsigned));
    let reply = victim.client.restore("key", &encode("MBbloomCF", 4, &[1, 512, 3].map(Unsigned)));
    assert!(error_text(&reply).is_some(), "{}", show(&reply));
    victim.is_unharmed("a Cuckoo filter's own type");

    // Repeats the test with a Cuckoo filter of RedisBloom itself.
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let (_theirs, mut client) = Setup::default().without_module().module_before(&peer).start().with_client();
    client.expect("CF.RESERVE cuckoo 1000", "+OK");
    client.expect("CF.ADD cuckoo a", "1");
    let mut iterator = 0;
    loop {
        let reply = client.list(&format!("CF.SCANDUMP cuckoo {iterator}"));
        let [Value::Int(next), Value::BulkString(chunk)] = &reply[..] else { break };
        victim.rejects_header("a chunk of a Cuckoo filter", chunk);
        if *next == 0 {
            break;
        }
        iterator = *next;
    }
    assert!(iterator > 1, "two chunks came");
    let payload = client.dump("cuckoo");
    let reply = victim.client.restore("key", &payload);
    assert!(error_text(&reply).is_some(), "{}", show(&reply));
    victim.is_unharmed("a Cuckoo filter's payload");
}
