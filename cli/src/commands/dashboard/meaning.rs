//! The page that explains each finding and what to do about it. Its text is compiled into the tool.

use crate::health::Problem;

/// A copy of the section "Findings" of `docs/monitoring.md`. The published crate has no files from outside its folder.
const SECTION: &str = include_str!("findings.md");

/// The body of the page as HTML. The heading of each finding has the finding's code word as its anchor.
pub fn meaning() -> String {
    let section = SECTION.trim_start_matches("## Findings").trim();
    let blocks = section.split("\n\n").map(|block| match block.strip_prefix("### ") {
        Some(name) => format!("<h2 id=\"{0}\">{0}</h2>\n", escaped(name)),
        None => format!("<p>{}</p>\n", inline(block)),
    });
    format!("<h1>Findings</h1>\n{}", blocks.collect::<String>())
}

/// Formats code, links and emphasis of a paragraph as HTML. Links to findings stay links; other links become plain
/// text.
fn inline(text: &str) -> String {
    let mut html = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            html += &format!("<code>{}</code>", escaped(part));
            continue;
        }
        for (at, part) in escaped(part).split('*').enumerate() {
            html += if at == 0 {
                ""
            } else if at % 2 == 1 {
                "<em>"
            } else {
                "</em>"
            };
            html += part;
        }
    }
    links(&html)
}

fn links(html: &str) -> String {
    let Some((before, rest)) = html.split_once("](") else { return html.to_owned() };
    let (Some((before, words)), Some((target, after))) = (before.rsplit_once('['), rest.split_once(')')) else {
        return html.to_owned();
    };
    let is_finding = |name: &str| Problem::ALL.iter().any(|problem| problem.name() == name);
    let link = match target.strip_prefix('#') {
        Some(name) if is_finding(name) => format!("<a href=\"#{name}\">{words}</a>"),
        _ => words.to_owned(),
    };
    format!("{before}{link}{}", links(after))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_md_equals_its_section_of_the_document() {
        let document = include_str!("../../../../docs/monitoring.md");
        let start = document.find("## Findings\n").unwrap();
        let section = document[start..].split("\n## ").next().unwrap();
        assert!(
            section.trim_end() == SECTION.trim_end(),
            "findings.md is not the section: awk '/^## /{{f=/Findings/}}f' docs/monitoring.md"
        );
    }

    #[test]
    fn every_finding_has_its_place_and_no_markup_is_left() {
        let page = meaning();
        for problem in Problem::ALL {
            assert_eq!(page.matches(&format!("<h2 id=\"{}\">", problem.name())).count(), 1, "{}", problem.name());
        }
        assert_eq!(page.matches("<h2").count(), Problem::ALL.len());
        for left in ["](", "`", "*", "##", "http"] {
            assert!(!page.contains(left), "{left} is left in {page}");
        }
        for (open, close) in [("<p>", "</p>"), ("<em>", "</em>"), ("<code>", "</code>"), ("<a ", "</a>")] {
            assert_eq!(page.matches(open).count(), page.matches(close).count(), "{open}");
        }
    }

    #[test]
    fn paragraphs_are_text() {
        assert_eq!(inline("a < b, `<x>` and *so* on"), "a &lt; b, <code>&lt;x&gt;</code> and <em>so</em> on");
        assert_eq!(inline("[`top`](tool.md#top), [it](#full)"), "<code>top</code>, <a href=\"#full\">it</a>");
        assert_eq!(inline("[open](bloom.md"), "[open](bloom.md");
    }
}
