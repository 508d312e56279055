//! Tests RDB files with damage inside a value of this module: the server does not start, and its log names the damage.

use std::fs;

use rollcall_testkit::{Server, Setup};

/// Starts a server with an RDB file. If the server does not start, the error is its log.
fn start_with(rdb: &[u8]) -> Result<Server, String> {
    // The file has no checksum of its own, so only the module's checksums can detect the damage.
    Setup::default().line("rdbchecksum no").line("rdbcompression no").file("dump.rdb", rdb).try_start()
}

/// An RDB file with one key, and the offsets at which the value begins and ends.
fn saved(make: &str) -> (Vec<u8>, usize, usize) {
    let (server, mut client) = Setup::default().line("rdbchecksum no").line("rdbcompression no").start().with_client();
    let make = make.replace('?', "the-key-to-damage");
    client.run(&make);
    server.save();
    let rdb = fs::read(server.dir().join("dump.rdb")).expect("the RDB file");
    let name = b"the-key-to-damage";
    let start = rdb.windows(name.len()).position(|window| window == name).expect("the key") + name.len();
    // The id of the module's type takes nine bytes. The value is followed by its end mark and the file's checksum.
    (rdb.clone(), start + 9, rdb.len() - 9)
}

const VALUES: [&str; 4] = [
    "BF.INSERT ? CAPACITY 20 ITEMS a b c d e f",
    "LC.ADD ? a b c d e f",
    "LC.INSERT ? EXACT 0 ITEMS a b c d e f g h",
    "LC.INSERT ? ERROR 0.25 EXACT 0 ITEMS a b c d e f g h i j k l m n o p q",
];

#[test]
fn damaged_values_are_rejected_with_a_line() {
    let mut wrong = Vec::new();
    for make in VALUES {
        let (rdb, start, end) = saved(make);
        for place in 0..16 {
            let at = start + (end - 1 - start) * place / 16;
            let mut damaged = rdb.clone();
            damaged[at] ^= 1 << (place % 8);
            match start_with(&damaged) {
                Ok(_) => wrong.push(format!("{make}: byte {at} of {start}..{end} went unnoticed")),
                Err(log) if log.contains("crashed") || log.contains("signal:") => wrong.push(format!("{make}: {log}")),
                // The server itself may detect damage to its own bytes, such as an opcode or a length.
                Err(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
