//! Progress bars with rate and time left, on standard error. They are hidden if standard error is not a terminal.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::table;

/// A bar of `total` units named `what`; without a total, a spinner with the count and the rate.
pub fn bar(total: Option<u64>, what: &str) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), "{prefix} [{bar:30}] {human_pos} of {human_len}, {per_sec}, {eta} left")
        }
        None => (ProgressBar::new_spinner(), "{prefix} {spinner} {human_pos}, {per_sec}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // The library's own format of the rate has four decimals.
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}/s", table::count(state.per_sec() as i64));
    };
    let style = style.with_key("per_sec", rate);
    bar.with_style(style.progress_chars("=> ")).with_prefix(what.to_owned())
}
