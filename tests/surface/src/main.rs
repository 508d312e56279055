//! Prints the public interface of rollcall-core, one line per item, from the JSON that rustdoc wrote. `make lint`
//! compares it with core/surface.txt. Derived and automatic impls are left out, and so is the module `unstable`, which
//! promises no stability. Fails if a type or module has functions, and neither it nor any of them has an example.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

const CRATE: &str = "rollcall_core::";
const UNSTABLE: &str = "rollcall_core::unstable";

/// A path without generic arguments, up to the arguments of a function or the type of a field.
fn without_generics(place: &str) -> String {
    let mut depth = 0;
    let is_outside = |c: &char| {
        depth += i32::from(*c == '<') - i32::from(*c == '>');
        depth == 0 && *c != '>'
    };
    let path: String = place.chars().take_while(|c| !"( ".contains(*c)).filter(is_outside).collect();
    path.trim_end_matches(':').to_owned()
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: rollcall-test-surface JSON")?;
    let docs: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let entry = |id: &dyn ToString| &docs["index"][id.to_string()];
    let api = public_api::Builder::from_rustdoc_json(&path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    let (mut lines, mut shown) = (Vec::new(), BTreeMap::new());
    for item in api.items() {
        let (line, own) = (item.to_string(), entry(&item.id().0));
        // For a trait, the line of the impl is enough. For other impls, the lines of the methods are enough.
        let of_trait = item.parent_id().is_some_and(|id| !entry(&id.0)["inner"]["impl"]["trait"].is_null());
        let of_methods = !own["inner"]["impl"].is_null() && own["inner"]["impl"]["trait"].is_null();
        // The item's owner: the first path, or for an impl the path after `for`.
        let place = line.rsplit_once(" for ").map_or(&*line, |(_, place)| place);
        let place = place.find(CRATE).map_or("", |start| &place[start..]).to_owned();
        let of_unstable = place.starts_with(UNSTABLE) || line.starts_with("impl") && line.contains(UNSTABLE);
        if of_trait || of_methods || of_unstable {
            continue;
        }
        let has_example = own["docs"].as_str().is_some_and(|text| text.contains("```"));
        let path = without_generics(&place);
        if !own["inner"]["function"].is_null() {
            *shown.entry(path.rsplit_once("::").map_or("", |(owner, _)| owner).to_owned()).or_insert(false) |=
                has_example;
        } else if has_example {
            shown.insert(path.to_owned(), true);
        }
        lines.push((place, line));
    }
    // Sorted by path, so that moving code within a file changes nothing.
    lines.sort();
    lines.dedup();
    lines.iter().for_each(|(_, line)| println!("{line}"));
    let without: Vec<_> = shown.iter().filter(|&(_, &has_example)| !has_example).collect();
    without.iter().for_each(|(owner, _)| eprintln!("no example: {owner}"));
    Ok(if without.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
