//! Compares the documents with the module. Every console example is run and its output compared. Every command,
//! option and field of INFO must be documented. The module `examples/demo`, which the programs in examples/ share, is
//! tested here too.
//!
//! `ROLLCALL_SERVER` and `ROLLCALL_MODULE` name the server and the module, as in the server tests.

mod console;
#[path = "../../examples/demo/mod.rs"]
mod demo;
mod library;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use console::Example;
use rollcall_testkit::{Server, pairs, text};

/// A document of the repository.
struct Document {
    /// The path from the root of the repository.
    name: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All documents: those at the root, in docs/, docs/tutorials/ and examples/.
fn documents() -> Vec<Document> {
    let mut names = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(PathBuf::from).to_vec();
    for folder in ["docs", "docs/tutorials", "examples"] {
        for entry in fs::read_dir(root().join(folder)).into_iter().flatten() {
            let name = Path::new(folder).join(entry.expect("an entry of the folder").file_name());
            if name.extension().is_some_and(|extension| extension == "md" || extension == "txt") {
                names.push(name);
            }
        }
    }
    names.sort();
    let read = |name: PathBuf| Document {
        text: fs::read_to_string(root().join(&name)).unwrap_or_else(|error| panic!("{}: {error}", name.display())),
        name: name.to_string_lossy().into_owned(),
    };
    names.into_iter().map(read).collect()
}

#[track_caller]
fn document<'a>(documents: &'a [Document], name: &str) -> &'a Document {
    documents.iter().find(|document| document.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn examples_print_what_is_shown() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for Document { name, text } in documents() {
        let examples = console::examples(&name, &text);
        count += examples.len();
        if !examples.is_empty() {
            wrong.extend(console::run(&name, &examples));
        }
    }
    println!("{count} examples");
    assert!(count > 100, "only {count} examples found");
    assert_none(&wrong);
}

#[test]
fn every_command_has_a_section_with_an_example() {
    let documents = documents();
    let list = document(&documents, "docs/commands.md");
    // Server tests compare this file with the module.
    let commands = fs::read(root().join("docs/commands.json")).expect("docs/commands.json");
    let commands: serde_json::Map<String, Json> = serde_json::from_slice(&commands).expect("JSON");
    let mut wrong = Vec::new();
    for (command, about) in &commands {
        let page = if command.starts_with("LC.") { "docs/counting.md" } else { "docs/bloom.md" };
        let anchor = command.to_lowercase().replace('.', "");
        let row = format!("| [`{command}`]({}#{anchor}) |", page.trim_start_matches("docs/"));
        if !list.text.lines().any(|line| line.starts_with(&row)) {
            wrong.push(format!("docs/commands.md: no row that begins {row}"));
        }
        let Some(section) = section(&document(&documents, page).text, command) else {
            wrong.push(format!("{page}: no section {command}"));
            continue;
        };
        let calls = |example: &Example| {
            let name = example.command.split_whitespace().next().unwrap_or_default();
            name.eq_ignore_ascii_case(command)
        };
        if !console::examples(page, &section).iter().any(calls) {
            wrong.push(format!("{page}: no example of {command} in its section"));
        }
        if !section.contains("**Reply**") {
            wrong.push(format!("{page}: no **Reply** in the section of {command}"));
        }
        let experts = for_experts(&document(&documents, page).text);
        for token in tokens(&about["arguments"]) {
            if !section.contains(token) && !experts.contains(token) {
                wrong.push(format!(
                    "{page}: {command} takes {token}, and neither its section nor that for experts says so"
                ));
            }
        }
    }
    assert_none(&wrong);
}

/// The text from the heading `### title` to the next heading of the same or a higher level.
fn section(text: &str, title: &str) -> Option<String> {
    let heading = format!("### {title}");
    let mut lines = text.lines().skip_while(|line| *line != heading);
    lines.next()?;
    let body = lines.take_while(|line| !line.starts_with("## ") && !line.starts_with("### "));
    Some(body.collect::<Vec<_>>().join("\n"))
}

/// The text in the section "For experts" before its first command, which lists options and fields that newcomers do not
/// need.
fn for_experts(text: &str) -> &str {
    let section = text.split("\n## For experts\n").nth(1).unwrap_or_default();
    section.split("\n##").next().unwrap_or_default()
}

/// The tokens in a list of arguments, including nested arguments.
fn tokens(arguments: &Json) -> Vec<&str> {
    let mut found = Vec::new();
    for argument in arguments.as_array().into_iter().flatten() {
        found.extend(argument["token"].as_str());
        found.extend(tokens(&argument["arguments"]));
    }
    found
}

#[test]
fn every_option_is_listed_with_its_default() {
    let (server, mut client) = Server::start().with_client();
    let documents = documents();
    let page = document(&documents, "docs/configuration.md");
    let mut options = pairs(&client.cmd("CONFIG GET rollcall.*"));
    if server.version().has_unprefixed_configs() {
        options.extend(pairs(&client.cmd("CONFIG GET bf-*")));
        options.extend(pairs(&client.cmd("CONFIG GET cf-*")));
    }
    assert!(options.len() >= 10, "{options:?}");
    let mut wrong = Vec::new();
    for (name, default) in options {
        let name = name.strip_prefix("rollcall.").unwrap_or(&name).to_owned();
        let row = format!("| `{name}` | `{}`", text(&default));
        if !page.text.lines().any(|line| line.starts_with(&row)) {
            wrong.push(format!("docs/configuration.md: no row that begins {row}"));
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_field_of_info_is_explained() {
    let server = Server::start();
    let info = server.client().text("INFO rollcall");
    let documents = documents();
    let page = document(&documents, "docs/operations.md");
    let fields: Vec<_> = info.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert!(fields.len() >= 30, "{info}");
    // The word may be in the first cell of a row, together with others.
    let first_cells: Vec<_> =
        page.text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    let missing = |field: &&str| !first_cells.iter().any(|cell| cell.contains(&format!("`{field}`")));
    let wrong: Vec<_> =
        fields.into_iter().filter(missing).map(|field| format!("docs/operations.md: no {field}")).collect();
    assert_none(&wrong);
}

#[test]
fn the_oldest_rust_is_that_of_the_manifest() {
    let documents = documents();
    let sentence = concat!("Rust (", env!("CARGO_PKG_RUST_VERSION"), " or later)");
    assert!(document(&documents, "README.md").text.contains(sentence), "README.md does not say {sentence}");
}

#[test]
fn the_map_of_the_tree_names_what_is_there() {
    let documents = documents();
    let paths = mapped(&document(&documents, "CONTRIBUTING.md").text);
    assert!(paths.len() > 10, "only {} paths found", paths.len());
    let missing = paths.iter().filter(|path| !root().join(path).exists());
    assert_none(&missing.map(|path| format!("CONTRIBUTING.md: no {path}")).collect::<Vec<_>>());
}

/// The paths in the file tree of a document, which is the first block under `## The tree`. Each line is a file or a
/// folder, indented by two spaces more than its parent folder.
fn mapped(text: &str) -> Vec<String> {
    let map = text.split("\n## The tree\n").nth(1).and_then(|text| text.split("```").nth(1)).unwrap_or_default();
    let mut found = Vec::new();
    let mut folders: Vec<&str> = Vec::new();
    for line in map.lines().skip(1) {
        let entry = line.trim_start();
        folders.truncate((line.len() - entry.len()) / 2);
        folders.push(entry.split(' ').next().unwrap_or_default());
        found.push(folders.concat());
    }
    found
}

/// `make bench` replaces text between marks, and finds a server's column by its heading.
#[test]
fn the_table_of_benchmarks_has_a_figure_of_every_row_on_every_server() {
    let documents = documents();
    let in_readme = &["Redis 8.2.3", "Redis 8.2.3 with huge pages"][..];
    let on_page = &["Redis 7.0.15", "Redis 8.2.3", "Redis 8.10.2", "Redis 8.2.3 without AVX-512"][..];
    for (page, part, rows, servers) in
        [("docs/benchmarks.md", "rows", 10, on_page), ("README.md", "speed", 6, in_readme)]
    {
        let mark = format!("<!-- measured: {part}, written by make bench -->");
        let after = document(&documents, page).text.split(&mark).nth(1).unwrap_or_default();
        let table = after.split("<!-- measured: end -->").next().unwrap_or_default();
        let lines: Vec<_> = table.lines().filter(|line| line.starts_with('|')).collect();
        assert!(lines.len() >= 2 + rows, "{page} has {} lines between its marks", lines.len());
        for server in servers {
            let column = lines[0].split('|').position(|head| head.trim() == *server);
            let column = column.unwrap_or_else(|| panic!("{page}: no column {server}"));
            let empty = |line: &&&str| line.split('|').nth(column).is_none_or(|cell| cell.trim().is_empty());
            // The rows of WIDTH are younger than the columns with AVX-512, as the page says.
            let is_due = |line: &&&str| server.ends_with("without AVX-512") || !line.contains("WIDTH");
            assert_none(
                &lines[2..]
                    .iter()
                    .filter(is_due)
                    .filter(empty)
                    .map(|line| format!("{page}: {line}"))
                    .collect::<Vec<_>>(),
            );
        }
    }
}

#[test]
fn links_lead_somewhere() {
    let documents = documents();
    let mut wrong = Vec::new();
    for Document { name, text } in &documents {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        for target in links(text) {
            if target.contains("://") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if path.is_empty() { root().join(name) } else { root().join(folder).join(path) };
            if !file.exists() {
                wrong.push(format!("{name}: {target} does not exist"));
            } else if !anchor.is_empty() {
                let there = fs::read_to_string(&file).unwrap_or_default();
                if !anchors(&there).contains(anchor) {
                    wrong.push(format!("{name}: {target}: no such heading"));
                }
            }
        }
    }
    assert_none(&wrong);
}

/// The form of <https://llmstxt.org>: a title, a quotation, and sections that are lists of links with a line each.
#[test]
fn llms_txt_leads_to_every_page() {
    let documents = documents();
    let Document { text, .. } = document(&documents, "docs/llms.txt");
    let mut lines = text.lines().filter(|line| !line.is_empty());
    assert!(lines.next().is_some_and(|title| title.starts_with("# ")));
    assert!(lines.next().is_some_and(|summary| summary.starts_with("> ")));
    let listed = lines.skip_while(|line| !line.starts_with("## "));
    let is_item = |line: &str| line.starts_with("- [") && line.contains("](") && line.contains("): ");
    assert_none(
        &listed.filter(|line| !line.starts_with("## ") && !is_item(line)).map(str::to_owned).collect::<Vec<_>>(),
    );
    let links = links(text);
    let pages = documents.iter().filter_map(|page| page.name.strip_prefix("docs/"));
    let missing = pages.filter(|page| *page != "llms.txt" && !links.iter().any(|link| link == page));
    assert_none(&missing.map(|page| format!("docs/llms.txt: no {page}")).collect::<Vec<_>>());
}

/// The targets of the links in a document, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let starts = line.match_indices("](").map(|(at, open)| at + open.len());
            found.extend(starts.filter_map(|at| Some(line[at..].split_once(')')?.0.to_owned())));
        }
    }
    found
}

/// The anchors of headings: in lower case, without punctuation, with dashes instead of spaces.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    found
}
