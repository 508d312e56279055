//! The table on a terminal, again and again.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::style::{Attribute, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{cursor, execute, queue};

use super::columns::{Column, printed, sort, summary};
use crate::failure::Failure;
use crate::server::Server;
use crate::watch::{Row, Scope, rows};

/// Lines of the screen that are no rows: a summary, the heads, and the keys.
const OTHER_LINES: u16 = 3;

/// The screen, given back as it was when this goes.
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

/// What is looked at.
pub struct View {
    column: Column,
    reverse: bool,
    /// Rows at most.
    limit: usize,
    /// Rows above the first that is shown.
    scrolled: usize,
}

impl View {
    /// From the first row on.
    pub fn new(column: Column, reverse: bool, limit: Option<u32>) -> Self {
        View { column, reverse, limit: limit.map_or(usize::MAX, |limit| limit as usize), scrolled: 0 }
    }

    /// What a key does; false to end.
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

/// Shows the table until the user ends it, and asks the server at each `interval`.
pub fn show(server: &mut Server, pattern: Option<&str>, interval: Duration, mut view: View) -> Result<(), Failure> {
    let scope = Scope::matching(pattern);
    let mut all = rows(server, &scope)?.rows;
    let cannot = |error: io::Error| Failure::of(format!("cannot use the terminal: {error}")).advise("use --once");
    let _screen = Screen::take().map_err(cannot)?;
    let mut asked = Instant::now();
    loop {
        sort(&mut all, view.column, view.reverse);
        let page = draw(&server.name(), &all, &mut view).map_err(cannot)?;
        let left = interval.saturating_sub(asked.elapsed());
        if poll(left).map_err(cannot)? {
            if let Event::Key(key) = read().map_err(cannot)?
                && key.kind != KeyEventKind::Release
            {
                let is_break = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
                if is_break || !view.press(key.code, page) {
                    return Ok(());
                }
            }
        } else {
            all = rows(server, &scope)?.rows;
            asked = Instant::now();
        }
    }
}

/// Draws the table. The rows that there is room for.
fn draw(server: &str, all: &[Row], view: &mut View) -> io::Result<usize> {
    let (width, height) = size()?;
    let page = usize::from(height.saturating_sub(OTHER_LINES)).max(1);
    let shown = &all[..all.len().min(view.limit)];
    view.scrolled = view.scrolled.min(shown.len().saturating_sub(page));
    let text = printed(&shown[view.scrolled..shown.len().min(view.scrolled + page)]);
    let cut = |line: &str| line.chars().take(usize::from(width)).collect::<String>();
    let mut out = io::stdout().lock();
    queue!(out, cursor::MoveTo(0, 0))?;
    let order = if view.reverse { ", smallest first" } else { "" };
    let by = view.column.head().trim_start_matches('>');
    let keys = format!("by {by}{order}   left, right: column   r: reverse   up, down: scroll   q: quit");
    let lines = [format!("{server}: {}", summary(all)), keys];
    for (at, line) in lines.iter().map(String::as_str).chain(text.lines()).enumerate() {
        let is_head = at == lines.len();
        queue!(out, cursor::MoveTo(0, u16::try_from(at).unwrap_or(u16::MAX)), Clear(ClearType::CurrentLine))?;
        queue!(out, SetAttribute(if is_head { Attribute::Reverse } else { Attribute::Reset }))?;
        write!(out, "{}", cut(line))?;
        queue!(out, SetAttribute(Attribute::Reset))?;
    }
    queue!(out, Clear(ClearType::FromCursorDown))?;
    out.flush()?;
    Ok(page)
}
