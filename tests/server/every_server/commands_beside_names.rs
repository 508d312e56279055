//! Compares the metadata of each RF.* command with its BF.* command: documentation, flags and permissions.

use std::collections::BTreeSet;

use redis::Value;

use crate::metadata;
use rollcall_testkit::{Client, Server, Setup, error_text, field, pairs, show, text};

/// The names of the module's commands with this prefix.
fn names(client: &mut Client, prefix: &str) -> BTreeSet<String> {
    let all = client.cmd("COMMAND LIST FILTERBY MODULE rollcall");
    let (Value::Array(all) | Value::Set(all)) = all else { panic!("{}", show(&all)) };
    all.iter().map(|name| text(name).to_lowercase()).filter(|name| name.starts_with(prefix)).collect()
}

/// The fields of COMMAND INFO for a command, without its name and the module's own categories.
fn described(client: &mut Client, name: &str) -> Vec<String> {
    let info = client.list(&format!("COMMAND INFO {name}"));
    let Value::Array(rows) = &info[0] else { panic!("no {name}") };
    let categories = match &rows[6] {
        Value::Array(names) | Value::Set(names) => names.iter().map(text).collect::<BTreeSet<_>>(),
        other => panic!("{}", show(other)),
    };
    let own: Vec<_> = categories.iter().filter(|name| !["@bloom", "@filters"].contains(&name.as_str())).collect();
    let others = rows.iter().enumerate().filter(|(at, _)| ![0, 6].contains(at)).map(|(_, row)| show(row));
    others.chain([format!("{own:?}")]).collect()
}

/// The fields of COMMAND DOCS for a command.
fn documented(client: &mut Client, name: &str) -> Vec<String> {
    let docs = pairs(&client.cmd(&format!("COMMAND DOCS {name}")));
    let [(_, docs)] = &docs[..] else { panic!("no documentation of {name}") };
    ["summary", "since", "group", "complexity", "module", "arguments"].map(|label| show(&field(docs, label))).into()
}

#[test]
fn each_bf_command_has_an_rf_command() {
    let (_server, mut client) = Server::start().with_client();
    let filters = names(&mut client, "bf.");
    let twins: BTreeSet<_> = filters.iter().map(|name| name.replace("bf.", "rf.")).collect();
    assert_eq!(names(&mut client, "rf."), twins);
    assert_eq!(twins.len(), 17);
    let (_beside, mut other) = Server::with_args("commands beside").with_client();
    assert_eq!(names(&mut other, "rf."), twins);
    assert!(names(&mut other, "bf.").is_empty());
    for twin in &twins {
        let name = twin.replace("rf.", "bf.");
        assert_eq!(described(&mut client, twin), described(&mut client, &name), "{twin}");
        assert_eq!(described(&mut other, twin), described(&mut client, &name), "{twin}");
        let docs: Vec<_> = documented(&mut client, &name).iter().map(|text| text.replace("BF.", "RF.")).collect();
        assert_eq!(documented(&mut client, twin), docs, "{twin}");
        assert_eq!(documented(&mut other, twin), docs, "{twin}");
        // The server rejects wrong numbers of arguments by the arity that the module registered.
        other.expect(twin, "-*wrong number of arguments*");
    }
    let alone = Server::with_args("commands lc");
    assert_eq!(names(&mut alone.client(), "rf."), twins);
}

#[test]
fn categories_are_those_of_the_module_that_has_bf() {
    let server = Server::start();
    if !server.version().lists_acl_categories() {
        return;
    }
    let in_category = |client: &mut Client, category: &str, name: &str| {
        metadata::names(&client.cmd(&format!("ACL CAT {category}"))).contains(name)
    };
    let mut client = server.client();
    assert!(in_category(&mut client, "bloom", "rf.add"));
    assert!(in_category(&mut client, "filters", "rf.add"));
    assert!(!in_category(&mut client, "filters", "bf.add"));
    // Another module may have to create its own ACL category, so this module must not create it, whichever is loaded
    // first.
    for args in ["commands beside", "commands lc"] {
        let (server, mut client) = Server::with_args(args).with_client();
        assert!(error_text(&client.cmd("ACL CAT bloom")).is_some());
        assert!(in_category(&mut client, "filters", "rf.add"));
        let mut user = server.client_as("some", "~* -@all +@filters");
        user.expect("LC.ADD c a", "-NOPERM *");
        if args == "commands beside" {
            user.expect("RF.ADD f a", "1");
        }
    }
}

#[test]
fn a_user_may_be_given_one_name_alone() {
    for args in ["commands beside", "commands all"] {
        let server = Server::with_args(args);
        let mut user = server.client_as("adder", "~a:* -@all +rf.add");
        user.expect("RF.ADD a:f x", "1");
        user.expect("RF.ADD b:f x", "-NOPERM *");
        user.expect("RF.EXISTS a:f x", "-NOPERM *");
        // Additions by BF.ADD are replicated as RF.*. The user needs no permission for that name.
        if args == "commands all" {
            user.expect("BF.ADD a:f x", "-NOPERM *");
            server.client_as("old", "~* -@all +bf.add").expect("BF.ADD a:f y", "1");
        }
    }
}

#[test]
fn logs_and_statistics_show_the_name_as_sent() {
    let (server, mut client) =
        Setup::default().line("appendonly yes").line("slowlog-log-slower-than 0").start().with_client();
    client.expect("BF.ADD f a", "1");
    client.expect("CONFIG RESETSTAT", "+OK");
    let mut monitor = server.client();
    monitor.expect("MONITOR", "+OK");
    client.expect("BF.ADD f b", "1");
    let shown = text(&monitor.receive());
    assert!(shown.contains("\"BF.ADD\" \"f\" \"b\""), "{shown}");
    let slow = show(&client.cmd("SLOWLOG GET 1"));
    assert!(slow.contains("[\"BF.ADD\", \"f\", \"b\"]"), "{slow}");
    let calls = client.info("cmdstat_bf.add");
    assert!(calls.starts_with("calls=1,"), "{calls}");
    assert_eq!(client.info("cmdstat_rf.add"), "");
}
