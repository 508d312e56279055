//! Joins the Rust examples of docs/clients.md into one function, because they build on each other. src/documents.rs
//! runs it.

use std::path::Path;
use std::{env, fs};

const DOCUMENT: &str = "../../../docs/clients.md";
const ADDRESS: &str = "\"redis://127.0.0.1:6379/?protocol=resp3\"";

fn main() {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    let text = fs::read_to_string(DOCUMENT).expect("docs/clients.md");
    let mut body = String::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```rust" => inside = true,
            "```" => inside = false,
            _ if inside => {
                body.push_str(line);
                body.push('\n');
            }
            _ => {}
        }
    }
    assert_eq!(body.matches(ADDRESS).count(), 1, "the examples connect once");
    assert!(body.matches("assert").count() > 15, "the examples check what they do");
    let body = body.replace(ADDRESS, "crate::ways::url(true)");
    let function = format!("fn examples() -> redis::RedisResult<()> {{\n{body}Ok(())\n}}\n");
    let folder = env::var("OUT_DIR").expect("cargo's folder");
    fs::write(Path::new(&folder).join("examples.rs"), function).expect("a file");
}
