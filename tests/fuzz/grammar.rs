//! The commands of a server's module and their arguments, as the server reports them. A new command is therefore tested
//! without a change here.

use redis::Value;

use rollcall_testkit::{Client, pairs, text};

/// A command of the module.
#[derive(Debug)]
pub struct Command {
    pub name: String,
    pub arguments: Vec<Argument>,
}

/// An argument, as `COMMAND DOCS` describes it.
#[derive(Debug)]
pub struct Argument {
    pub name: String,
    pub kind: Kind,
    /// The word before the value; for an argument without a value, the word that stands for it.
    pub token: Option<String>,
    pub is_optional: bool,
    pub is_multiple: bool,
    pub parts: Vec<Argument>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Key,
    String,
    Integer,
    Double,
    UnixTime,
    Token,
    OneOf,
    Block,
}

impl Command {
    /// Whether the first argument is the number of keys.
    pub fn is_numbered(&self) -> bool {
        self.arguments[0].name == "numkeys"
    }

    /// The prefix before the dot. All commands with the same prefix take the same keys.
    pub fn family(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(family, _)| family)
    }
}

/// All commands of a module.
pub fn commands(client: &mut Client, module: &str) -> Vec<Command> {
    let listed = client.list(&format!("COMMAND LIST FILTERBY MODULE {module}"));
    let mut names: Vec<String> = listed.iter().map(text).collect();
    names.sort();
    assert!(!names.is_empty(), "no commands of {module}");
    names.into_iter().map(|name| described(client, name)).collect()
}

fn described(client: &mut Client, name: String) -> Command {
    let docs = pairs(&client.call(&["COMMAND", "DOCS", &name]));
    let [(_, about)] = &docs[..] else { panic!("COMMAND DOCS {name} gave {docs:?}") };
    let arguments = arguments(about);
    assert!(!arguments.is_empty(), "{name} has no documented arguments");
    Command { name, arguments }
}

/// The arguments in the description of a command, or of an argument with parts.
fn arguments(about: &Value) -> Vec<Argument> {
    let Some(Value::Array(listed)) = value(about, "arguments") else { return Vec::new() };
    listed.iter().map(argument).collect()
}

fn argument(about: &Value) -> Argument {
    let kind = match text(&value(about, "type").expect("a type")).as_str() {
        "key" => Kind::Key,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "double" => Kind::Double,
        "unix-time" => Kind::UnixTime,
        "pure-token" => Kind::Token,
        "oneof" => Kind::OneOf,
        "block" => Kind::Block,
        other => panic!("an argument of the type {other}"),
    };
    let flags: Vec<String> = match value(about, "flags") {
        Some(Value::Array(flags) | Value::Set(flags)) => flags.iter().map(text).collect(),
        _ => Vec::new(),
    };
    let has = |flag: &str| flags.iter().any(|other| other == flag);
    Argument {
        name: text(&value(about, "name").expect("a name")),
        kind,
        token: value(about, "token").map(|token| text(&token)),
        is_optional: has("optional"),
        is_multiple: has("multiple"),
        parts: arguments(about),
    }
}

fn value(about: &Value, label: &str) -> Option<Value> {
    pairs(about).into_iter().find_map(|(name, value)| (name == label).then_some(value))
}

/// Every token of every argument.
pub fn tokens(commands: &[Command]) -> Vec<String> {
    fn collect(arguments: &[Argument], tokens: &mut Vec<String>) {
        for argument in arguments {
            tokens.extend(argument.token.clone());
            collect(&argument.parts, tokens);
        }
    }
    let mut tokens = Vec::new();
    commands.iter().for_each(|command| collect(&command.arguments, &mut tokens));
    tokens.sort();
    tokens.dedup();
    tokens
}
