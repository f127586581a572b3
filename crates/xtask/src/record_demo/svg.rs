//! Screens as an animated SVG.
//!
//! Each row of the screen is a strip of all its states, one below the other, behind a window of one row. SMIL moves the strip
//! from state to state; browsers play it in an `img`, too. Viewers without animations show the last screen.

use std::{collections::HashMap, fmt::Write as _, time::Duration};

use super::screen::{Piece, Row, Screen, Style};

/// Pixels of a character cell.
const CELL: (u16, u16) = (8, 18);
/// Pixels around the screen, and of the title bar.
const PADDING: u16 = 14;
const TITLE: u16 = 30;
/// How long the last screen stays before the animation starts again.
const PAUSE: Duration = Duration::from_secs(6);
/// Colors 0 to 15 of the terminal that differ from the text's, as CSS classes.
const COLORS: [(u8, char, &str); 8] = [
    (1, 'r', "#f85149"),
    (2, 'g', "#3fb950"),
    (3, 'y', "#d29922"),
    (8, 'd', "#8b949e"),
    (9, 'r', "#f85149"),
    (10, 'g', "#3fb950"),
    (11, 'y', "#d29922"),
    (7, 'd', "#8b949e"),
];

/// The animation of `screens`.
pub(crate) fn animation(screens: &[Screen], columns: u16, rows: u16, title: &str) -> String {
    let total = screens.last().map_or(PAUSE, |last| last.at + PAUSE);
    let (width, height) = (
        columns * CELL.0 + 2 * PADDING,
        rows * CELL.1 + TITLE + PADDING,
    );
    let mut svg = opening(width, height, title);
    let mut symbols = Symbols::default();
    let mut strips = String::new();
    for row in 0..usize::from(rows) {
        strip(&mut strips, &mut symbols, screens, row, total);
    }
    let _ = writeln!(svg, "<defs>{}</defs>", symbols.definitions);
    let _ = writeln!(svg, "{strips}</svg>");
    svg
}

fn opening(width: u16, height: u16, title: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace\" \
         font-size=\"13.3\" fill=\"#e6edf3\">\n<title>{title}</title>\n<style>.b{{font-weight:700}}"
    );
    for (_, class, color) in &COLORS[..4] {
        let _ = write!(svg, ".{class}{{fill:{color}}}");
    }
    let (middle, dots) = (width / 2, TITLE / 2);
    let _ = writeln!(
        svg,
        "</style>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g fill=\"#30363d\"><circle cx=\"18\" cy=\"{dots}\" r=\"5\"/><circle cx=\"36\" cy=\"{dots}\" r=\"5\"/>\
         <circle cx=\"54\" cy=\"{dots}\" r=\"5\"/></g>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" class=\"d\">{title}</text>",
        dots + 5
    );
    svg
}

/// The rows that occur, each defined once.
#[derive(Default)]
struct Symbols {
    numbers: HashMap<Row, usize>,
    definitions: String,
}

impl Symbols {
    fn number(&mut self, row: &Row) -> usize {
        if let Some(number) = self.numbers.get(row) {
            return *number;
        }
        let number = self.numbers.len();
        self.numbers.insert(row.clone(), number);
        let _ = write!(self.definitions, "<g id=\"{number:x}r\">");
        for piece in row {
            draw(&mut self.definitions, piece);
        }
        self.definitions.push_str("</g>\n");
        number
    }
}

/// One row of the screen with all its states.
fn strip(svg: &mut String, symbols: &mut Symbols, screens: &[Screen], row: usize, total: Duration) {
    let (mut states, mut shown): (Vec<&Row>, Vec<(Duration, usize)>) = (Vec::new(), Vec::new());
    for screen in screens {
        let content = &screen.rows[row];
        let state = states.iter().position(|state| *state == content);
        let state = state.unwrap_or_else(|| {
            states.push(content);
            states.len() - 1
        });
        if shown.last().is_none_or(|(_, last)| *last != state) {
            shown.push((screen.at, state));
        }
    }
    if states.iter().all(|state| state.is_empty()) {
        return;
    }
    let top = usize::from(TITLE) + row * usize::from(CELL.1);
    let offset = |state: usize| match state * usize::from(CELL.1) {
        0 => "0 0".to_owned(),
        offset => format!("0 -{offset}"),
    };
    let last = shown.last().map_or(0, |(_, state)| *state);
    let _ = write!(
        svg,
        "<svg x=\"{PADDING}\" y=\"{top}\" height=\"{}\"><g transform=\"translate({})\">",
        CELL.1,
        offset(last)
    );
    if shown.len() > 1 {
        let mut times: Vec<_> = shown
            .iter()
            .map(|(at, _)| format!("{:.4}", at.as_secs_f64() / total.as_secs_f64()))
            .collect();
        "0".clone_into(&mut times[0]);
        let offsets: Vec<_> = shown.iter().map(|(_, state)| offset(*state)).collect();
        let _ = write!(
            svg,
            "<animateTransform attributeName=\"transform\" type=\"translate\" calcMode=\"discrete\" dur=\"{:.2}s\" \
             repeatCount=\"indefinite\" keyTimes=\"{}\" values=\"{}\"/>",
            total.as_secs_f64(),
            times.join(";").replace("0.", "."),
            offsets.join(";")
        );
    }
    for (state, content) in states
        .iter()
        .enumerate()
        .filter(|(_, content)| !content.is_empty())
    {
        let number = symbols.number(content);
        let _ = match state * usize::from(CELL.1) {
            0 => write!(svg, "<use href=\"#{number:x}r\"/>"),
            y => write!(svg, "<use href=\"#{number:x}r\" y=\"{y}\"/>"),
        };
    }
    svg.push_str("</g></svg>\n");
}

/// Text, or a bar: blocks are rectangles, which leave no gaps between rows in any font.
fn draw(svg: &mut String, piece: &Piece) {
    let is_bar = |text: &str| text.chars().all(|character| "█░".contains(character));
    let class = class(piece.style);
    if !is_bar(&piece.text) {
        let (x, y) = (piece.column * CELL.0, CELL.1 - 5);
        let text = piece.text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(svg, "<text x=\"{x}\" y=\"{y}\"{class}>{text}</text>");
        return;
    }
    let full = piece
        .text
        .chars()
        .filter(|character| *character == '█')
        .count();
    let all = piece.text.chars().count();
    let cell = usize::from(CELL.0);
    let x = usize::from(piece.column) * cell;
    let height = CELL.1 - 4;
    if full > 0 {
        let _ = write!(
            svg,
            "<path d=\"M{x} 2h{}v{height}h-{}z\"{class}/>",
            full * cell,
            full * cell
        );
    }
    if all > full {
        let (x, width) = (x + full * cell, (all - full) * cell);
        let _ = write!(
            svg,
            "<path d=\"M{x} 2h{width}v{height}h-{width}z\" opacity=\".35\"{class}/>"
        );
    }
}

fn class(style: Style) -> String {
    let color = COLORS
        .iter()
        .find(|(color, ..)| Some(*color) == style.color)
        .map(|(_, class, _)| class.to_string());
    let classes: Vec<_> = color
        .into_iter()
        .chain(style.bold.then(|| "b".to_owned()))
        .collect();
    if classes.is_empty() {
        String::new()
    } else {
        format!(" class=\"{}\"", classes.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(seconds: u64, texts: &[&str]) -> Screen {
        let row = |text: &&str| match *text {
            "" => Row::new(),
            text => vec![Piece {
                column: 0,
                text: text.to_owned(),
                style: Style::default(),
            }],
        };
        Screen {
            at: Duration::from_secs(seconds),
            rows: texts.iter().map(row).collect(),
        }
    }

    #[test]
    fn a_row_that_returns_to_a_state_has_it_once() {
        let screens = [
            screen(0, &["title", ""]),
            screen(1, &["title", "a < b"]),
            screen(2, &["title", ""]),
            screen(4, &["title", "██░"]),
        ];
        let svg = animation(&screens, 10, 2, "demo");
        assert_eq!(svg.matches("<animateTransform").count(), 1, "{svg}");
        assert!(
            svg.contains("keyTimes=\"0;.1000;.2000;.4000\" values=\"0 0;0 -18;0 0;0 -36\""),
            "{svg}"
        );
        assert!(svg.contains("a &lt; b") && svg.contains("<path"), "{svg}");
    }
}
