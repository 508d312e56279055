//! `docs/commands.json`, the commands for programs, in the form of redis-doc's `commands.json`: what `COMMAND INFO` and
//! `COMMAND DOCS` reply, with each flag of a key or an argument as a field. `make commands` writes the file.

use std::fs;
use std::path::Path;

use redis::Value;
use serde_json::Value as Json;

use rollcall_testkit::{Client, Server, text};

fn json(value: &Value) -> Json {
    match value {
        Value::Int(number) => Json::from(*number),
        Value::Array(items) | Value::Set(items) => items.iter().map(json).collect(),
        Value::Map(fields) => fields.iter().map(|(name, value)| (text(name), json(value))).collect(),
        other => Json::from(text(other)),
    }
}

/// Makes each of an object's `flags` a field that is true, at every depth.
fn name_flags(value: &mut Json) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(name_flags),
        Json::Object(fields) => {
            fields.values_mut().for_each(name_flags);
            if let Some(Json::Array(flags)) = fields.remove("flags") {
                fields.extend(flags.into_iter().map(|flag| (flag.as_str().expect("a flag").to_owned(), true.into())));
            }
        }
        _ => {}
    }
}

/// The server's description of a command, in the form of redis-doc. The group is the command's own ACL category,
/// because the server calls the group of every module `module`.
fn described(client: &mut Client, name: &str) -> Json {
    let mut info = json(&client.cmd(&format!("COMMAND INFO {name}")));
    let mut command = json(&client.cmd(&format!("COMMAND DOCS {name}")))[name].take();
    assert_eq!(command["group"], "module", "{name}");
    command["group"] = if name.starts_with("lc.") { "counting" } else { "bloom" }.into();
    for (at, field) in [(1, "arity"), (2, "command_flags"), (6, "acl_categories"), (7, "hints"), (8, "key_specs")] {
        let mut value = info[0][at].take();
        // Sets have no order. Empty lists are left out.
        match &mut value {
            Json::Array(list) if list.is_empty() => continue,
            Json::Array(names) if names[0].is_string() => names.sort_by_key(Json::to_string),
            _ => {}
        }
        command[field] = value;
    }
    name_flags(&mut command);
    command
}

/// Removes a field from an object and all that is in it.
fn remove(value: &mut Json, field: &str) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(|item| remove(item, field)),
        Json::Object(fields) => {
            fields.remove(field);
            fields.values_mut().for_each(|value| remove(value, field));
        }
        _ => {}
    }
}

#[test]
fn commands_json_says_what_the_server_says() {
    let server = Server::start();
    let mut client = server.client3();
    let mut names: Vec<_> =
        client.list("COMMAND LIST FILTERBY MODULE rollcall").iter().map(|name| text(name).to_lowercase()).collect();
    // `commands_beside_names` compares RF.* with BF.*.
    names.retain(|name| !name.starts_with("rf."));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.json");
    let said: Json = names.iter().map(|name| (name.to_uppercase(), described(&mut client, name))).collect();
    let version = server.version();
    if std::env::var_os("ROLLCALL_WRITE_COMMANDS").is_some_and(|value| value == "1") {
        assert!(version.lists_acl_categories(), "this server does not report everything");
        let text = serde_json::to_string_pretty(&said).expect("JSON");
        fs::write(&path, text + "\n").expect("docs/commands.json");
    }
    let mut written: Json = serde_json::from_slice(&fs::read(&path).expect("docs/commands.json")).expect("JSON");
    // Older servers put the commands of modules into no categories, and Redis 7.0 reports no texts to display.
    if !version.has_acl_categories() {
        remove(&mut written, "acl_categories");
    }
    if (version.major, version.minor) == (7, 0) {
        remove(&mut written, "display_text");
    }
    let names = |commands: &Json| commands.as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(&written), names(&said), "run make commands");
    for name in names(&said).unwrap_or_default() {
        assert_eq!(written[&name], said[&name], "{name}: run make commands");
    }
}
