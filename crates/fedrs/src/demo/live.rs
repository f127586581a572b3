//! The demo on a terminal: a table that updates in place, below the story's lines that scroll by.
//!
//! The terminal is in raw mode meanwhile, so that keys don't tear the table; it is put back however this ends.

use std::{
    io::{self, Stdout, Write},
    time::Duration,
};

use ratatui::{
    Terminal, TerminalOptions, Viewport,
    backend::CrosstermBackend,
    crossterm::{
        cursor,
        event::{self, Event, KeyCode, KeyModifiers},
        execute,
        terminal::{disable_raw_mode, enable_raw_mode},
    },
    style::{Color, Style},
    text::Line,
    widgets::{Paragraph, Widget},
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    observer::Scene,
    table::{self, Palette},
    telling::{Told, Tone},
};

/// How often the table is drawn.
const PERIOD: Duration = Duration::from_millis(80);
/// What can be done at any time.
const HINT: &str = "Ctrl-C ends the demo";

/// A terminal that is shown the demo.
pub(crate) struct Live {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    palette: Palette,
    _raw: RawMode,
}

/// Raw mode and a hidden cursor, as long as it lives.
struct RawMode;

impl RawMode {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on it is put back.
        let raw = Self;
        execute!(io::stdout(), cursor::Hide)?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = execute!(io::stdout(), cursor::Show);
        let _ = disable_raw_mode();
    }
}

impl Live {
    /// Makes room for the table below the cursor.
    pub(crate) fn start(palette: Palette) -> io::Result<Self> {
        put_back_on_panic();
        let raw = RawMode::enter()?;
        let options = TerminalOptions {
            viewport: Viewport::Inline(table::HEIGHT),
        };
        let terminal = Terminal::with_options(CrosstermBackend::new(io::stdout()), options)?;
        Ok(Self {
            terminal,
            palette,
            _raw: raw,
        })
    }

    /// Shows lines and scenes until nobody tells any more. Ctrl-C and q cancel `cancel`.
    pub(crate) async fn show(
        mut self,
        mut told: mpsc::Receiver<Told>,
        scenes: watch::Receiver<Scene>,
        cancel: CancellationToken,
    ) -> io::Result<()> {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                line = told.recv() => match line {
                    Some(line) => self.tell(&line)?,
                    None => return self.finish(&scenes),
                },
                _ = ticks.tick() => {
                    if asked_to_end()? {
                        cancel.cancel();
                    }
                    self.draw(&scenes)?;
                }
            }
        }
    }

    fn tell(&mut self, told: &Told) -> io::Result<()> {
        let width = usize::from(self.terminal.size()?.width.max(20));
        let style = self.style(told.tone);
        let mut lines: Vec<_> = wrap(&told.text, width - 1)
            .into_iter()
            .map(|line| Line::styled(line, style))
            .collect();
        if told.tone == Tone::Heading {
            lines.insert(0, Line::default());
        }
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        self.terminal.insert_before(height, |buffer| {
            let area = buffer.area;
            Paragraph::new(lines).render(area, buffer);
        })
    }

    fn style(&self, tone: Tone) -> Style {
        match tone {
            Tone::Heading => Palette::bold(),
            Tone::Plain => Style::new(),
            Tone::Good => self.palette.paint(Color::Green),
            Tone::Bad => self.palette.paint(Color::Red),
            Tone::Aside => self.palette.paint(Color::DarkGray),
        }
    }

    fn draw(&mut self, scenes: &watch::Receiver<Scene>) -> io::Result<()> {
        let lines = table::lines(&scenes.borrow(), HINT, self.palette);
        self.terminal
            .draw(|frame| frame.render_widget(Paragraph::new(lines), frame.area()))?;
        Ok(())
    }

    /// Leaves the last table where it is, and the cursor below it.
    fn finish(mut self, scenes: &watch::Receiver<Scene>) -> io::Result<()> {
        self.draw(scenes)?;
        let bottom = self.terminal.get_frame().area().bottom().saturating_sub(1);
        self.terminal.set_cursor_position((0, bottom))?;
        drop(self);
        writeln!(io::stdout())
    }
}

/// A panic's message must be readable.
fn put_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        drop(RawMode);
        before(panic);
    }));
}

/// In raw mode Ctrl-C is a key like any other.
fn asked_to_end() -> io::Result<bool> {
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

/// Breaks `text` between words into lines of at most `width`; what follows the first is indented like it, and
/// two more.
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
    fn long_lines_are_broken_between_words_and_stay_indented() {
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
