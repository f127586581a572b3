//! Screens as an animated SVG.
//!
//! The screens are one below the other, behind a window of one screen. SMIL moves them from one to the next; browsers play it
//! in an `img`, too. Viewers without animations show the last screen. Each row that occurs is defined once.

use std::{collections::HashMap, fmt::Write as _, time::Duration};

use super::screen::{Piece, Row, Screen};

/// Pixels of a character cell.
const CELL: (u16, u16) = (8, 18);
/// Pixels around the screen, and of the title bar.
const PADDING: u16 = 14;
const TITLE: u16 = 30;
/// How long the last screen stays before the animation starts again.
const PAUSE: Duration = Duration::from_secs(6);
const FONT: &str =
    "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace";

/// The animation of `screens`.
pub(super) fn animation(screens: &[Screen], columns: u16, rows: u16, title: &str) -> String {
    let total = screens.last().map_or(PAUSE, |last| last.at + PAUSE);
    let (width, height) = (columns * CELL.0, rows * CELL.1);
    let tops: Vec<_> = (0..screens.len())
        .map(|number| number * usize::from(height))
        .collect();
    let (mut definitions, mut strip) = (String::new(), String::new());
    let mut known: HashMap<&Row, usize> = HashMap::new();
    for (screen, top) in screens.iter().zip(&tops) {
        for (number, row) in screen.rows.iter().enumerate() {
            if row.is_empty() {
                continue;
            }
            let next = known.len();
            let id = *known.entry(row).or_insert_with(|| {
                let pieces: String = row.iter().map(draw).collect();
                let _ = writeln!(definitions, "<g id=\"r{next}\">{pieces}</g>");
                next
            });
            let y = top + number * usize::from(CELL.1);
            let _ = write!(strip, "<use href=\"#r{id}\" y=\"{y}\"/>");
        }
        strip.push('\n');
    }
    let times = screens
        .iter()
        .map(|screen| format!("{:.4}", screen.at.as_secs_f64() / total.as_secs_f64()));
    // The first screen is shown from the start.
    let times: Vec<_> = std::iter::once("0".to_owned())
        .chain(times.skip(1))
        .collect();
    let offsets: Vec<_> = tops.iter().map(|top| format!("0 -{top}")).collect();
    let (outer_width, outer_height) = (width + 2 * PADDING, height + TITLE + PADDING);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {outer_width} {outer_height}" width="{outer_width}" height="{outer_height}" role="img" font-family="{FONT}" font-size="13.3" fill="#e6edf3">
<title>{title}</title>
<rect width="{outer_width}" height="{outer_height}" rx="8" fill="#0d1117"/>
<g fill="#30363d"><circle cx="18" cy="15" r="5"/><circle cx="36" cy="15" r="5"/><circle cx="54" cy="15" r="5"/></g>
<text x="{middle}" y="20" text-anchor="middle" fill="#8b949e">{title}</text>
<defs>{definitions}</defs>
<svg x="{PADDING}" y="{TITLE}" width="{width}" height="{height}"><g transform="translate({last})">
<animateTransform attributeName="transform" type="translate" calcMode="discrete" dur="{seconds:.2}s" repeatCount="indefinite" keyTimes="{times}" values="{offsets}"/>
{strip}</g></svg>
</svg>
"##,
        middle = outer_width / 2,
        last = offsets.last().map_or("0 0", String::as_str),
        seconds = total.as_secs_f64(),
        times = times.join(";"),
        offsets = offsets.join(";"),
    )
}

/// Text, or a bar: blocks are rectangles, which have the same width in any font.
fn draw(piece: &Piece) -> String {
    let x = piece.column * CELL.0;
    let mut style = match piece.style.color {
        Some(1 | 9) => " fill=\"#f85149\"",
        Some(2 | 10) => " fill=\"#3fb950\"",
        Some(3 | 11) => " fill=\"#d29922\"",
        Some(7 | 8) => " fill=\"#8b949e\"",
        _ => "",
    }
    .to_owned();
    if piece.style.bold {
        style.push_str(" font-weight=\"700\"");
    }
    let Some(block) = piece.style.bar else {
        let text = piece.text.replace('&', "&amp;").replace('<', "&lt;");
        return format!("<text x=\"{x}\" y=\"13\"{style}>{text}</text>");
    };
    if block == '░' {
        style.push_str(" opacity=\".35\"");
    }
    let width = piece.text.chars().count() * usize::from(CELL.0);
    format!("<rect x=\"{x}\" y=\"2\" width=\"{width}\" height=\"14\"{style}/>")
}

#[cfg(test)]
mod tests {
    use super::{super::screen::screens, *};

    #[test]
    fn a_row_is_defined_once_and_shown_on_each_screen_that_has_it() {
        let at = Duration::from_secs;
        let output = [
            (at(0), b"title".to_vec()),
            (at(1), b"\r\n\x1b[31ma < b".to_vec()),
            (at(4), "\r\x1b[K██░".as_bytes().to_vec()),
        ];
        let svg = animation(&screens(&output, 10, 2), 10, 2, "demo");
        assert_eq!(svg.matches("<g id=\"r").count(), 3, "{svg}");
        assert_eq!(svg.matches("<use href=\"#r0\"").count(), 3, "{svg}");
        for part in [
            "keyTimes=\"0;0.1000;0.4000\" values=\"0 -0;0 -36;0 -72\"",
            "<text x=\"0\" y=\"13\" fill=\"#f85149\">a &lt; b</text>",
            "<rect x=\"0\" y=\"2\" width=\"16\" height=\"14\" fill=\"#f85149\"/>\
             <rect x=\"16\" y=\"2\" width=\"8\" height=\"14\" fill=\"#f85149\" opacity=\".35\"/>",
        ] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
    }
}
