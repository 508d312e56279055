//! Makes random commands from the grammar of the module's commands.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use rollcall_fuzz::random::Random;

use crate::grammar::{Argument, Command, Kind, commands, tokens};
use crate::values;

/// A command as a list of words.
pub type Words = Vec<Vec<u8>>;

/// Makes random commands, and learns from the replies which keys each command family accepts.
pub struct Speaker {
    pub random: Random,
    pub commands: Vec<Command>,
    tokens: Vec<String>,
    /// For each key, the command families that the server accepted for it.
    served: BTreeMap<Vec<u8>, BTreeSet<String>>,
}

impl Speaker {
    /// Prepares to make commands of this module.
    pub fn new(seed: u64, client: &mut rollcall_testkit::Client, module: &str) -> Speaker {
        let commands = commands(client, module);
        let tokens = tokens(&commands);
        Speaker { random: Random::new(seed), commands, tokens, served: BTreeMap::new() }
    }

    /// A random command of the module, either valid or with some words changed.
    pub fn command(&mut self) -> Words {
        let index = self.random.below(self.commands.len());
        let mut words = self.sentence(index);
        if self.random.below(100) < 30 {
            for _ in 0..=self.random.up_to(4) {
                self.spoil(&mut words);
            }
        }
        words
    }

    /// Records whether the server accepted a command for its key.
    pub fn note(&mut self, words: &[Vec<u8>], error: Option<&str>) {
        let Some((family, key)) = self.first_key(words) else { return };
        match error {
            None => drop(self.served.entry(key).or_default().insert(family)),
            Some(text) if text.starts_with("WRONGTYPE") => {
                if let Some(families) = self.served.get_mut(&key) {
                    families.remove(&family);
                }
            }
            Some(_) => {}
        }
    }

    fn first_key(&self, words: &[Vec<u8>]) -> Option<(String, Vec<u8>)> {
        let name = String::from_utf8_lossy(words.first()?).to_lowercase();
        let command = self.commands.iter().find(|command| command.name == name)?;
        // If the command begins with a number of keys, the first key follows it.
        let position = command.arguments.iter().position(|argument| argument.kind == Kind::Key)?;
        Some((command.family().to_owned(), words.get(position + 1)?.clone()))
    }

    /// A key name, mostly of a key that this family accepts.
    pub fn key(&mut self, family: &str) -> Vec<u8> {
        let known: Vec<&Vec<u8>> =
            self.served.iter().filter(|(_, families)| families.contains(family)).map(|(key, _)| key).collect();
        if known.is_empty() || self.random.below(100) < 20 {
            return self.any_key();
        }
        (*self.random.of(&known)).clone()
    }

    pub fn any_key(&mut self) -> Vec<u8> {
        values::key(self.random.below(values::KEYS))
    }

    fn sentence(&mut self, index: usize) -> Words {
        let commands = std::mem::take(&mut self.commands);
        let command = &commands[index];
        let mut words = vec![command.name.clone().into_bytes()];
        if command.is_numbered() {
            self.say_numbered(command, &mut words);
        } else {
            command.arguments.iter().for_each(|argument| self.say(argument, command.family(), &mut words));
        }
        self.commands = commands;
        self.fit_width(&mut words);
        words
    }

    /// Makes most runs of items multiples of a small WIDTH.
    fn fit_width(&mut self, words: &mut Words) {
        let find = |name: &str| words.iter().position(|word| word.eq_ignore_ascii_case(name.as_bytes()));
        let (Some(width), Some(items)) = (find("WIDTH"), find("ITEMS")) else { return };
        if width >= items || self.random.one_in(4) {
            return;
        }
        let bytes = 1 + self.random.up_to(40);
        words[width + 1] = bytes.to_string().into_bytes();
        for run in &mut words[items + 1..] {
            let len = run.len().max(1).next_multiple_of(bytes);
            run.resize(len, b'x');
        }
    }

    /// Appends `numkeys key [key ...] [SINCE seconds [seconds ...]]`, with matching numbers of keys and spans.
    fn say_numbered(&mut self, command: &Command, words: &mut Words) {
        let keys = 1 + self.random.up_to(4);
        words.push(keys.to_string().into_bytes());
        words.extend((0..keys).map(|_| self.key(command.family())));
        let Some(since) = command.arguments[2..].iter().find(|_| self.random.one_in(3)) else { return };
        words.extend(since.token.clone().map(String::into_bytes));
        for _ in 0..if self.random.one_in(2) { keys } else { 1 } {
            let seconds = self.random.below(100);
            words.push(if self.random.one_in(4) { b"-".to_vec() } else { seconds.to_string().into_bytes() });
        }
    }

    fn say(&mut self, argument: &Argument, family: &str, words: &mut Words) {
        if argument.is_optional && !self.random.one_in(4) {
            return;
        }
        if let Some(token) = &argument.token {
            let is_lower = self.random.one_in(8);
            words.push(if is_lower { token.to_lowercase() } else { token.clone() }.into_bytes());
        }
        let times = match argument.is_multiple {
            true if self.random.one_in(20) => self.random.below(1_000),
            true => 1 + self.random.up_to(6),
            false => 1,
        };
        for _ in 0..times {
            match argument.kind {
                Kind::Token => {}
                Kind::OneOf if argument.parts.is_empty() => {}
                Kind::OneOf => {
                    let part = self.random.below(argument.parts.len());
                    self.say(&argument.parts[part], family, words);
                }
                Kind::Block => argument.parts.iter().for_each(|part| self.say(part, family, words)),
                Kind::Key => words.push(self.key(family)),
                Kind::String => words.push(values::item(&mut self.random)),
                Kind::Integer => words.push(values::integer(&mut self.random)),
                Kind::Double => words.push(values::double(&mut self.random)),
                Kind::UnixTime => {
                    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
                    words.push(values::unix_time(&mut self.random, now));
                }
            }
        }
    }

    /// Changes, removes or repeats a word after the first.
    fn spoil(&mut self, words: &mut Words) {
        let at = 1 + self.random.below(words.len());
        let other = 1 + self.random.below(words.len());
        let token = self.random.of(&self.tokens).clone().into_bytes();
        let any = values::any(&mut self.random);
        match self.random.below(8) {
            0 => words.truncate(at),
            1 if at < words.len() => drop(words.remove(at)),
            2 if at < words.len() => words[at] = any,
            3 if at < words.len() => words.insert(at, words[at].clone()),
            4 if at.max(other) < words.len() => words.swap(at, other),
            5 => words.insert(at, token),
            6 => words.extend([token, any]),
            _ => words.insert(at, any),
        }
    }
}
