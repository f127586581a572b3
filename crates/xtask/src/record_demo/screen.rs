//! What the terminal showed: from bytes with times to screens with times.

use std::time::Duration;

use vt100::{Color, Parser, Screen as Cells};

/// Chunks that follow each other sooner are one redraw.
const REDRAW: Duration = Duration::from_millis(15);
/// Screens are at least this far apart.
const PERIOD: Duration = Duration::from_millis(120);

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Style {
    /// Whether the text is a bar, and of which block.
    pub(super) bar: Option<char>,
    /// One of the 16 colors; the default color without.
    pub(super) color: Option<u8>,
    /// Whether it is bold.
    pub(super) bold: bool,
}

/// Text without a gap of two blanks, from a column on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    /// The first column.
    pub(super) column: u16,
    /// The text.
    pub(super) text: String,
    /// How it looks.
    pub(super) style: Style,
}

/// One row of a screen.
pub(super) type Row = Vec<Piece>;

/// A screen, and since when it was shown.
#[derive(Debug)]
pub(super) struct Screen {
    /// Since the start.
    pub(super) at: Duration,
    /// From top to bottom.
    pub(super) rows: Vec<Row>,
}

/// The screens that `output` produces on a terminal.
pub(super) fn screens(output: &[(Duration, Vec<u8>)], columns: u16, rows: u16) -> Vec<Screen> {
    let mut parser = Parser::new(rows, columns, 0);
    let mut screens: Vec<Screen> = Vec::new();
    for (index, (at, chunk)) in output.iter().enumerate() {
        parser.process(chunk);
        let pause = output
            .get(index + 1)
            .map(|(next, _)| next.saturating_sub(*at));
        let complete = pause.is_none_or(|pause| pause > REDRAW);
        let early = screens.last().is_some_and(|last| *at < last.at + PERIOD);
        // The next screen includes what changes soon after the last one, unless it comes late.
        let skipped = early && pause.is_some_and(|pause| pause < PERIOD);
        if !complete || skipped {
            continue;
        }
        let rows = rows_of(parser.screen());
        if screens.last().is_none_or(|last| last.rows != rows) {
            screens.push(Screen { at: *at, rows });
        }
    }
    screens
}

fn rows_of(cells: &Cells) -> Vec<Row> {
    let (rows, columns) = cells.size();
    (0..rows).map(|row| row_of(cells, row, columns)).collect()
}

fn row_of(cells: &Cells, row: u16, columns: u16) -> Row {
    let mut pieces = Row::new();
    let mut blanks = 2;
    for column in 0..columns {
        let cell = cells.cell(row, column);
        let text = cell.map_or("", |cell| cell.contents());
        let Some(cell) = cell.filter(|_| !text.trim().is_empty()) else {
            blanks += 1;
            continue;
        };
        let style = Style {
            bar: text.chars().find(|letter| "█░".contains(*letter)),
            color: match cell.fgcolor() {
                Color::Idx(color @ 0..=15) => Some(color),
                _ => None,
            },
            bold: cell.bold(),
        };
        match pieces.last_mut().filter(|last| {
            last.style == style && (blanks == 0 || blanks == 1 && style.bar.is_none())
        }) {
            Some(last) => {
                if blanks == 1 {
                    last.text.push(' ');
                }
                last.text.push_str(text);
            }
            None => pieces.push(Piece {
                column,
                text: text.to_owned(),
                style,
            }),
        }
        blanks = 0;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(column: u16, text: &str, color: Option<u8>, bold: bool) -> Piece {
        let style = Style {
            color,
            bold,
            ..Style::default()
        };
        Piece {
            column,
            text: text.to_owned(),
            style,
        }
    }

    #[test]
    fn text_is_split_at_gaps_and_changes_of_style() {
        let output = [(Duration::ZERO, b"a b   \x1b[1mc\x1b[0m\x1b[32md".to_vec())];
        let screens = screens(&output, 20, 2);
        let expected = vec![
            piece(0, "a b", None, false),
            piece(6, "c", None, true),
            piece(7, "d", Some(2), false),
        ];
        assert_eq!(screens[0].rows, [expected, Vec::new()]);
    }

    #[test]
    fn a_redraw_in_parts_is_one_screen_and_the_last_screen_is_kept() {
        let at = Duration::from_millis;
        let output = [
            (at(0), b"a".to_vec()),
            (at(5), b"b".to_vec()),
            (at(100), b"c".to_vec()),
            (at(150), b"d".to_vec()),
            (at(160), b"e".to_vec()),
        ];
        let screens = screens(&output, 20, 1);
        let shown: Vec<_> = screens
            .iter()
            .map(|screen| (screen.at, screen.rows[0][0].text.as_str()))
            .collect();
        assert_eq!(shown, [(at(5), "ab"), (at(160), "abcde")]);
    }
}
