//! Compares the metadata of commands: the names, keys and flags that clients and proxies use for routing.

use redis::Value;

use super::sequences::Layout;
use rollcall_testkit::{Client, lines, optional_file, show, text};

/// A part of `COMMAND INFO` that may differ: its name, its index, and a check of the module's and RedisBloom's values.
type Part = (&'static str, usize, fn(&str, &Value, &Value) -> bool);

const READS: [&str; 6] = ["bf.exists", "bf.mexists", "bf.card", "bf.info", "bf.scandump", "bf.debug"];

fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) | Value::Set(items) => items.iter().map(text).collect(),
        other => panic!("expected names, got {}", show(other)),
    }
}

/// The flags without `fast`, sorted.
fn without_fast(value: &Value) -> Vec<String> {
    let mut flags: Vec<_> = names(value).into_iter().filter(|flag| flag != "fast").collect();
    flags.sort();
    flags
}

/// The name of the configuration for ACL categories, which only servers from 7.4 on support for modules.
const CATEGORIES: &str = "command-categories";

pub const METADATA: [Part; 5] = [
    // RedisBloom declares no number of arguments.
    ("command-arity", 1, |_, ours, theirs| *theirs == Value::Int(-1) && *ours != Value::Int(-1)),
    ("command-flags", 2, |_, ours, theirs| without_fast(ours) == without_fast(theirs)),
    (CATEGORIES, 6, |name, ours, theirs| {
        let access = if READS.contains(&name) { "@read" } else { "@write" };
        let has = |category: &str| names(ours).iter().any(|given| given == category);
        names(theirs).is_empty() && has("@bloom") && has(access) && names(ours).len() == 3
    }),
    // Replies about windowed filters change with time, which the command's tips say.
    ("command-tips", 7, |name, ours, theirs| {
        let changes_with_time = READS.contains(&name) && !["bf.scandump", "bf.debug"].contains(&name);
        names(theirs).is_empty() && changes_with_time && names(ours) == ["nondeterministic_output"]
    }),
    ("key-flags", 8, |name, ours, theirs| {
        let all = show(theirs).contains("+RW, +access, +update");
        let own = if READS.contains(&name) { "+RO, +access" } else { "+RW, +access, +insert" };
        all && show(ours).contains(own) && show(ours).replace(own, "+RW, +access, +update") == show(theirs)
    }),
];

/// The commands of RedisBloom's Bloom filters, each in a full call.
const COMMANDS: &str =
    "BF.RESERVE k 0.01 100; BF.ADD k i; BF.MADD k i j; BF.INSERT k ITEMS i; BF.EXISTS k i; BF.MEXISTS k i j; BF.CARD k
     BF.INFO k SIZE; BF.SCANDUMP k 0; BF.LOADCHUNK k 1 data; BF.DEBUG k";

fn info(client: &mut Client, name: &str) -> Vec<Value> {
    match client.list(&format!("COMMAND INFO {name}")).remove(0) {
        Value::Array(parts) => parts,
        other => panic!("COMMAND INFO {name} gave {}", show(&other)),
    }
}

#[test]
fn the_server_reports_the_same_of_the_commands() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let servers = super::runner::servers(&peer, Layout::Classic);
    let (mut one, mut other) = (servers.0.client(), servers.1.client());
    let mut seen = Vec::new();
    for call in lines(COMMANDS) {
        let name = call.split(' ').next().unwrap_or_default();
        let (ours, theirs) = (info(&mut one, name), info(&mut other, name));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (at, (a, b)) in ours.iter().zip(&theirs).enumerate().filter(|(_, (a, b))| a != b) {
            let part = METADATA.iter().find(|(_, place, _)| *place == at);
            let Some((difference, _, holds)) = part else {
                panic!("{name}, part {at}: ours {}, theirs {}", show(a), show(b));
            };
            assert!(holds(&text(&ours[0]), a, b), "{difference} of {name}: ours {}, theirs {}", show(a), show(b));
            seen.push(*difference);
        }
        let keys = format!("COMMAND GETKEYS {call}");
        assert_eq!(one.cmd(&keys), other.cmd(&keys), "{call}");
        one.cmd(call);
        other.cmd(call);
    }
    let has_categories = servers.0.version().has_acl_categories();
    for (name, ..) in METADATA.iter().filter(|(name, ..)| *name != CATEGORIES || has_categories) {
        assert!(seen.contains(name), "allowed, but not there any more: {name}");
    }
    // The statistics have the same names as RedisBloom's, because dashboards read them.
    let stats = |client: &mut Client| {
        let text = client.text("INFO commandstats");
        let names = text.lines().filter_map(|line| line.strip_prefix("cmdstat_bf.")?.split(':').next());
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort();
        names
    };
    let ours = stats(&mut one);
    assert_eq!(ours, stats(&mut other));
    assert_eq!(ours.len(), lines(COMMANDS).len());
    // The key's type has the same name as RedisBloom's.
    one.cmd("BF.ADD k i");
    other.cmd("BF.ADD k i");
    assert_eq!(one.cmd("TYPE k"), other.cmd("TYPE k"));
}
