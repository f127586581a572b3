//! The demo on a terminal: a table that updates in place, below the scrolling lines of the story.
//!
//! The terminal is in raw mode meanwhile, so that echoed keys don't corrupt the table. Raw mode ends however the demo ends.

use std::{
    io::{self, Stdout, Write},
    time::Duration,
};

use ratatui::{
    Terminal, TerminalOptions, Viewport,
    backend::CrosstermBackend,
    buffer::Buffer,
    crossterm::{
        cursor,
        event::{self, Event, KeyCode, KeyModifiers},
        execute,
        terminal::{disable_raw_mode, enable_raw_mode},
    },
    style::Color,
    text::Line,
    widgets::{Paragraph, Widget},
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    messages::{HEADING, OutputLine},
    observer::Snapshot,
    table,
};

/// How often the table is redrawn.
const PERIOD: Duration = Duration::from_millis(80);

/// A terminal that shows the demo.
pub(crate) struct LiveView {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    colored: bool,
    _raw: RawMode,
}

/// Raw mode and a hidden cursor, until it is dropped.
struct RawMode;

impl RawMode {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // Dropping this restores the terminal, even if hiding the cursor fails.
        let raw = Self;
        execute!(io::stdout(), cursor::Hide)?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = execute!(io::stdout(), cursor::Show);
        let _ = disable_raw_mode();
    }
}

impl LiveView {
    /// Reserves lines for the table below the cursor.
    pub(crate) fn start(colored: bool) -> io::Result<Self> {
        restore_on_panic();
        let raw = RawMode::enter()?;
        let options = TerminalOptions {
            viewport: Viewport::Inline(table::HEIGHT),
        };
        let terminal = Terminal::with_options(CrosstermBackend::new(io::stdout()), options)?;
        Ok(Self {
            terminal,
            colored,
            _raw: raw,
        })
    }

    /// Shows lines and snapshots until the sender of the lines is dropped. Ctrl-C and q cancel `cancel`.
    pub(crate) async fn show(
        mut self,
        mut lines: mpsc::Receiver<OutputLine>,
        snapshots: watch::Receiver<Snapshot>,
        cancel: CancellationToken,
    ) -> io::Result<()> {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                line = lines.recv() => match line {
                    Some(line) => self.print(&line)?,
                    None => return self.finish(&snapshots),
                },
                _ = ticks.tick() => {
                    if stop_requested()? {
                        cancel.cancel();
                    }
                    self.draw(&snapshots)?;
                }
            }
        }
    }

    fn print(&mut self, line: &OutputLine) -> io::Result<()> {
        let width = usize::from(self.terminal.size()?.width.max(20));
        let wrapped = wrap(&line.to_string(), width - 1).into_iter();
        let mut lines: Vec<_> = wrapped.map(|text| Line::styled(text, line.style)).collect();
        if line.style == HEADING {
            lines.insert(0, Line::default());
        }
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let colored = self.colored;
        self.terminal
            .insert_before(height, |buffer| render(lines, buffer, colored))
    }

    fn draw(&mut self, snapshots: &watch::Receiver<Snapshot>) -> io::Result<()> {
        let lines = table::lines(&snapshots.borrow());
        let colored = self.colored;
        self.terminal
            .draw(|frame| render(lines, frame.buffer_mut(), colored))?;
        Ok(())
    }

    /// Leaves the last table on the screen and moves the cursor below it.
    fn finish(mut self, snapshots: &watch::Receiver<Snapshot>) -> io::Result<()> {
        self.draw(snapshots)?;
        let bottom = self.terminal.get_frame().area().bottom().saturating_sub(1);
        self.terminal.set_cursor_position((0, bottom))?;
        drop(self);
        writeln!(io::stdout())
    }
}

/// Writes `lines` to `buffer`, with or without their colors.
fn render(lines: Vec<OutputLine>, buffer: &mut Buffer, colored: bool) {
    Paragraph::new(lines).render(buffer.area, buffer);
    if !colored {
        for cell in &mut buffer.content {
            cell.fg = Color::Reset;
        }
    }
}

/// Restores the terminal before a panic prints its message.
fn restore_on_panic() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        drop(RawMode);
        default_hook(panic);
    }));
}

/// Whether the user pressed q, Ctrl-C or Ctrl-D. In raw mode Ctrl-C sends no signal.
fn stop_requested() -> io::Result<bool> {
    while event::poll(Duration::ZERO)? {
        if let Event::Key(key) = event::read()? {
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') => return Ok(true),
                KeyCode::Char('c' | 'd') if control => return Ok(true),
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Breaks `text` between words into lines of at most `width`. The lines after the first are indented by two more spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let indent = text.len() - text.trim_start().len();
    let mut lines = Vec::new();
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent + 2)));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words_and_stay_indented() {
        assert_eq!(
            wrap("  one two three four", 12),
            ["  one two", "    three", "    four"]
        );
        assert_eq!(wrap("short", 12), ["short"]);
        assert_eq!(
            wrap("  averyveryverylongword b", 10),
            ["  averyveryverylongword", "    b"]
        );
        assert_eq!(wrap("", 10), [""]);
    }
}
