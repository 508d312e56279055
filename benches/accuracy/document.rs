//! Writes all tables into target/, and the table and the plots of docs/accuracy.md. Only the text between two marks is
//! replaced.

use std::path::Path;
use std::{fs, io};

use crate::claims::{Findings, Pick, Table};
use rollcall_bench_output::markdown;
use rollcall_bench_output::plot;

const END: &str = "<!-- measured: end -->";

/// A section of the document.
pub struct Section {
    /// The name of the section in its marks.
    pub mark: &'static str,
    /// The subject of the section, for the table of all sections.
    pub title: &'static str,
    /// The results of the section.
    pub findings: Findings,
}

fn begin(mark: &str) -> String {
    format!("<!-- measured: {mark}, written by make accuracy -->")
}

/// Replaces the text between the marks with this name.
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

/// The figures of docs/accuracy.md: the mark of the section, a description of the figure, and which figure it is.
const FIGURES: [(&str, &str, Pick); 11] = [
    ("counters", "Error of a default counter, 50,000 members", Pick::Row(&["0.01", "50,000"], 0)),
    ("counters", "The same with a million", Pick::Row(&["0.01", "1,000,000"], 0)),
    ("counters", "Error of a counter of ERROR 0.0074, a million members", Pick::Row(&["0.0074", "1,000,000"], 0)),
    ("counters", "Counts within two of their standard errors, the worst row", Pick::Lowest),
    ("hyperloglog", "Error of ERROR 0.0074 over HyperLogLog's, the worst row", Pick::Highest),
    ("unions", "Error of a union of ERROR 0.01 and 0.02", Pick::Row(&["0.01 and 0.02"], 0)),
    ("differences", "Differences within two of their standard errors, the worst cell", Pick::Lowest),
    ("intersections", "Intersections of 2 to 8 counters likewise", Pick::Lowest),
    ("spans", "Spans of windows, and questions over them, likewise", Pick::Lowest),
    ("capacity", "Rate of full filters over the rate asked for, the worst cell", Pick::Highest),
    ("chains", "Rate of filters grown up to a hundredfold, likewise", Pick::Highest),
];

/// Writes the table of figures into docs/accuracy.md, and the plots into the same folder.
pub fn write_page(sections: &[Section]) -> io::Result<()> {
    let line = |&(mark, what, pick): &(&str, &str, Pick)| {
        let check = sections.iter().find(|section| section.mark == mark).and_then(|found| found.findings.pick(pick));
        let [claimed, measured] = check.map_or_else(Default::default, |check| [check.claimed(), check.brief()]);
        vec![what.to_owned(), claimed, measured]
    };
    let table = markdown::table(&["what", "claimed", "measured"], &FIGURES.iter().map(line).collect::<Vec<_>>());
    let page = fs::read_to_string("docs/accuracy.md")?;
    fs::write("docs/accuracy.md", replaced(&page, "figures", &table)?)?;
    write_plots(Path::new("docs/accuracy"), sections)
}

fn write_plots(folder: &Path, sections: &[Section]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut plots = sections.iter().flat_map(|section| &section.findings.plots);
    plots.try_for_each(|plot| plot::write(folder, plot).map_err(|error| io::Error::other(error.to_string())))
}

/// Writes all tables to `tables.md` in `folder`, and the plots next to it.
pub fn write(folder: &Path, sections: &[Section]) -> io::Result<()> {
    write_plots(folder, sections)?;
    let mut text = replaced(include_str!("tables.md"), "summary", &summary(sections))?;
    for Section { mark, findings, .. } in sections {
        let plots = findings.plots.iter().map(|plot| format!("![{}]({}.svg)\n", plot.title, plot.name));
        let parts: Vec<String> = findings.tables.iter().map(Table::markdown).chain(plots).collect();
        text = replaced(&text, mark, &parts.join("\n"))?;
    }
    fs::write(folder.join("tables.md"), text)
}
