//! Shows the table on a terminal and refreshes it.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::style::{Attribute, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{cursor, execute, queue};

use super::columns::{Column, fitted, sort, summary, wrapped};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::server::Server;
use crate::watch::{Asked, Nodes, Row, SERVER, Scope, rows, server_row};

/// Time between two checks for a signal while waiting for a key press.
const LOOK: Duration = Duration::from_millis(250);

/// The terminal in raw mode with a screen of its own. Dropping it restores the terminal.
struct Screen;

impl Screen {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Screen;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), cursor::Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// The user's choices: the column to sort by, the number of rows, and the scroll position.
pub struct View {
    column: Column,
    reverse: bool,
    /// The largest number of rows of keys.
    limit: usize,
    /// Number of rows scrolled past above the first visible one.
    scrolled: usize,
}

impl View {
    /// A view that begins at the first row.
    pub fn new(column: Column, reverse: bool, limit: Option<u32>) -> Self {
        View { column, reverse, limit: limit.map_or(usize::MAX, |limit| limit as usize), scrolled: 0 }
    }

    /// Handles a key press; returns false to end.
    fn press(&mut self, code: KeyCode, page: usize) -> bool {
        let at = Column::ALL.iter().position(|column| *column == self.column).unwrap_or(0);
        let columns = Column::ALL.len();
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Right | KeyCode::Char('>') => self.column = Column::ALL[(at + 1) % columns],
            KeyCode::Left | KeyCode::Char('<') => self.column = Column::ALL[(at + columns - 1) % columns],
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Down => self.scrolled = self.scrolled.saturating_add(1),
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled = self.scrolled.saturating_add(page),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(page),
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        true
    }
}

/// Shows the table until the user ends it, asking the servers at each `interval`. A server that stops answering is
/// named above the table, and asked again.
/// `is_alone` says that other nodes of a cluster are not asked.
pub fn show(
    mut nodes: Nodes,
    is_alone: bool,
    pattern: Option<&str>,
    interval: Duration,
    mut view: View,
) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let mut seen = look(&mut nodes, is_alone, pattern);
    if seen.servers.is_empty()
        && let Some(failure) = seen.failures.pop()
    {
        return Err(failure);
    }
    let cannot = |error: io::Error| Failure::new(format!("cannot use the terminal: {error}")).advise("use --once");
    let _screen = Screen::take().map_err(cannot)?;
    let mut asked = Instant::now();
    loop {
        sort(&mut seen.rows, view.column, view.reverse);
        let page = draw(&seen, &mut view).map_err(cannot)?;
        while !poll(LOOK.min(interval.saturating_sub(asked.elapsed()))).map_err(cannot)? {
            if interrupt.check().is_err() {
                return Ok(());
            }
            if asked.elapsed() >= interval {
                seen = look(&mut nodes, is_alone, pattern);
                asked = Instant::now();
                break;
            }
        }
        // Further key presses that have arrived are handled without waiting.
        if poll(Duration::ZERO).map_err(cannot)?
            && let Event::Key(key) = read().map_err(cannot)?
            && key.kind != KeyEventKind::Release
        {
            let is_break = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            if is_break || !view.press(key.code, page) {
                return Ok(());
            }
        }
    }
}

/// The last answers of all servers.
struct Seen {
    /// The servers that answered.
    servers: Vec<String>,
    rows: Vec<Row>,
    /// The failures of the servers whose keys are not known.
    failures: Vec<Failure>,
}

fn look(nodes: &mut Nodes, is_alone: bool, pattern: Option<&str>) -> Seen {
    let mut seen = Seen { servers: Vec::new(), rows: Vec::new(), failures: Vec::new() };
    let scope = Scope::matching(pattern);
    let question = |server: &mut Server| Ok((server_row(server, 0, is_alone), rows(server, &scope)?.rows));
    for Asked { server, answer, .. } in nodes.ask(question) {
        match answer {
            Ok((of_server, of_keys)) => {
                seen.servers.push(server);
                seen.rows.extend(of_server.into_iter().chain(of_keys));
            }
            Err(failure) => seen.failures.push(failure),
        }
    }
    seen
}

/// Draws the table, and returns the number of rows that fit, which is one page to scroll.
fn draw(seen: &Seen, view: &mut View) -> io::Result<usize> {
    let (width, height) = size()?;
    let (width, height) = (usize::from(width), usize::from(height));
    let order = if view.reverse { ", smallest first" } else { "" };
    let by = view.column.head().trim_start_matches('>');
    let mut lines = vec![format!("{}: {}", seen.servers.join(" "), summary(&seen.rows))];
    if seen.servers.is_empty() {
        lines.clear();
    }
    for failure in &seen.failures {
        let what = if failure.is_down() { "no answer: " } else { "" };
        lines.extend(wrapped(&format!("{what}{}. Asking again", failure.text()), width));
    }
    lines.push(format!("by {by}{order}   left, right: column   r: reverse   up, down: scroll   q: quit"));
    let limit = view.limit.saturating_add(seen.rows.iter().filter(|row| row.kind == SERVER).count());
    let shown = &seen.rows[..seen.rows.len().min(limit)];
    view.scrolled = view.scrolled.min(shown.len().saturating_sub(1));
    let heads = lines.len();
    let most = height.saturating_sub(heads);
    // A row takes at least one line, so no more than `height` rows fit; the widths of columns follow from the visible
    // rows.
    let end = shown.len().min(view.scrolled + height);
    let table = fitted(&shown[view.scrolled..end], view.column, width);
    let mut out = io::stdout().lock();
    queue!(out, cursor::MoveTo(0, 0))?;
    let (mut page, mut used) = (0, 0);
    for (at, block) in table.into_iter().enumerate() {
        // The first row is always shown, as far as it fits.
        if at > 1 && used + block.len() > most {
            break;
        }
        page = at;
        used += block.len();
        lines.extend(block);
    }
    for (at, line) in lines.iter().take(height).enumerate() {
        queue!(out, cursor::MoveTo(0, u16::try_from(at).unwrap_or(u16::MAX)), Clear(ClearType::CurrentLine))?;
        queue!(out, SetAttribute(if at == heads { Attribute::Reverse } else { Attribute::Reset }))?;
        write!(out, "{}", line.chars().take(width).collect::<String>())?;
        queue!(out, SetAttribute(Attribute::Reset))?;
    }
    queue!(out, Clear(ClearType::FromCursorDown))?;
    out.flush()?;
    Ok(page.max(1))
}
