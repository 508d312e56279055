//! Tests the download program of docs/library.md with a server. `cargo test --doc` checks that the programs of the page
//! compile.

use std::collections::BTreeSet;

use rollcall_core::bloom::BitLayout;

use rollcall_testkit::Server;

/// The program of the page that downloads a filter, copied verbatim.
#[allow(dead_code)]
mod page {
    include!("download.rs");

    pub fn download_as_there(server: &mut redis::Connection, key: &str) -> BloomFilter {
        download(server, key).expect("the page's function loads what a server gives")
    }
}

#[test]
fn the_program_is_the_one_of_the_page() {
    let page = include_str!("../../docs/library.md");
    assert!(page.contains(concat!("```rust,no_run\n", include_str!("download.rs"), "```\n")));
}

#[test]
fn filters_of_both_layouts_are_downloaded_as_the_page_does() {
    for (name, layout) in [("lines", BitLayout::Lines), ("classic", BitLayout::Classic)] {
        let (server, mut client) = Server::with_args(&format!("bf-layout {name}")).with_client();
        client.expect("BF.RESERVE contacts 0.01 100", "+OK");
        for number in 0..500 {
            client.cmd(&format!("BF.ADD contacts user:{number}"));
        }
        let url = format!("redis://127.0.0.1:{}/", server.port());
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        let filter = page::download_as_there(&mut connection, "contacts");
        assert_eq!(filter.layout(), layout);
        assert_eq!(filter.num_items() as i64, client.int("BF.CARD contacts"));
        let mut answers = BTreeSet::new();
        for number in 0..2000 {
            let item = format!("user:{number}");
            let answer = filter.may_contain(item.as_bytes());
            assert_eq!(i64::from(answer), client.int(&format!("BF.EXISTS contacts {item}")), "{name}: {item}");
            answers.insert(answer);
        }
        assert_eq!(answers.len(), 2);
    }
}
