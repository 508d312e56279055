//! docs/accuracy.md: the text is written by hand, what stands between two marks by the program.

use std::path::Path;
use std::{fs, io};

use crate::claims::{Findings, Table};
use rollcall_bench_output::markdown;
use rollcall_bench_output::plot;

const END: &str = "<!-- measured: end -->";

/// A section of the document.
pub struct Section {
    /// The name in its marks.
    pub mark: &'static str,
    /// What it is about, in the table of all.
    pub title: &'static str,
    /// What was found.
    pub findings: Findings,
}

fn begin(mark: &str) -> String {
    format!("<!-- measured: {mark}, written by make accuracy -->")
}

/// Puts `text` between the marks of this name.
fn replaced(document: &str, mark: &str, text: &str) -> io::Result<String> {
    let begin = begin(mark);
    let parts = document.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| io::Error::other(format!("the document has no {begin} with an end")))?;
    Ok(format!("{before}{begin}\n\n{text}\n{END}{after}"))
}

/// The table of all sections.
pub fn summary(sections: &[Section]) -> String {
    let mut lines = Vec::new();
    for section in sections {
        let summary = section.findings.summary();
        let furthest = if summary.furthest.is_finite() { format!("{:+.1}", summary.furthest) } else { "-".to_owned() };
        let verdict = match summary.broken.len() {
            0 if summary.claims == 0 => "-".to_owned(),
            0 => "holds".to_owned(),
            rows => format!("**{rows} rows do not hold**"),
        };
        lines.push(vec![section.title.to_owned(), summary.claims.to_string(), furthest, verdict]);
    }
    markdown::table(&["what", "figures with a claim", "furthest that holds, standard errors beyond", "verdict"], &lines)
}

/// Writes the document, with the text of `template`, and the plots into the folder of its name.
pub fn write(template: &Path, document: &Path, sections: &[Section]) -> io::Result<()> {
    let folder = document.with_extension("");
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    fs::create_dir_all(&folder)?;
    let mut text = replaced(&fs::read_to_string(template)?, "summary", &summary(sections))?;
    for Section { mark, findings, .. } in sections {
        let mut parts: Vec<String> = findings.tables.iter().map(Table::markdown).collect();
        for plot in &findings.plots {
            plot::write(&folder, plot).map_err(|error| io::Error::other(error.to_string()))?;
            parts.push(format!("![{}]({name}/{}.svg)\n", plot.title, plot.name));
        }
        text = replaced(&text, mark, &parts.join("\n"))?;
    }
    fs::write(document, text)
}
