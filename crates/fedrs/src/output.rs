//! What commands print: one text, or the progress of an operation.

use std::{
    fmt::Display,
    io::{self, Write},
    ops::Range,
    process::ExitCode,
};

use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use federation_controller::printable_lines;
use jiff::Timestamp;
use membership::progress::{Progress, Reporter, Warning};
use serde::Serialize;

/// A format for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// `value` as text, with a newline at the end. Its keys must be strings.
    pub(crate) fn serialize(self, value: &impl Serialize) -> String {
        const SERIALIZABLE: &str = "output consists of objects with string keys";
        let text = match self {
            Self::Json => serde_json::to_string_pretty(value).expect(SERIALIZABLE),
            Self::Yaml => serde_saphyr::to_string(value).expect(SERIALIZABLE),
        };
        text.trim_end().to_owned() + "\n"
    }
}

/// A table of columns for people, with a newline at the end. Each cell is one line. Aligns the columns `numbers` to the
/// right. On a narrow terminal, text wraps; a pipe has no width.
pub(crate) fn table(header: &[&str], numbers: Range<usize>, rows: Vec<Vec<String>>) -> String {
    arranged(ContentArrangement::Dynamic, header, numbers, rows)
}

/// A time in a table, in whole seconds; empty if there is none.
pub(crate) fn time(time: Option<Timestamp>) -> String {
    time.map_or_else(String::new, |time| format!("{time:.0}"))
}

/// `time`, and how far it is from `now`: `2026-11-01T00:01:00Z (in 1m5s)`.
pub(crate) fn shown_time(time: Timestamp, now: Timestamp) -> String {
    let seconds = time.duration_since(now).as_secs();
    let (days, hours) = (seconds.abs() / 86_400, seconds.abs() / 3600 % 24);
    let (minutes, rest) = (seconds.abs() / 60 % 60, seconds.abs() % 60);
    let length = match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => format!("{minutes}m{rest}s"),
        (0, ..) => format!("{hours}h{minutes}m"),
        _ => format!("{days}d{hours}h"),
    };
    if seconds > 0 {
        format!("{time:.0} (in {length})")
    } else {
        format!("{time:.0} (passed {length} ago)")
    }
}

/// A table as [`table()`] makes it, with one line for each row on any terminal.
pub(crate) fn wide_table(header: &[&str], numbers: Range<usize>, rows: Vec<Vec<String>>) -> String {
    arranged(ContentArrangement::Disabled, header, numbers, rows)
}

fn arranged(
    arrangement: ContentArrangement,
    header: &[&str],
    numbers: Range<usize>,
    rows: Vec<Vec<String>>,
) -> String {
    let of_row = |row: Vec<String>| row.into_iter().map(in_one_line).collect::<Vec<_>>();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(arrangement)
        .set_header(header)
        .add_rows(rows.into_iter().map(of_row));
    for number in numbers {
        let column = table.column_mut(number);
        let column = column.expect("the header has this column");
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n", table.trim_fmt())
}

/// Prints `text` to standard output. Objects of clusters may contain escape sequences, which no terminal gets. A reader that
/// stops early is not an error.
pub(crate) fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(printable_lines(text).as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: failed to write to standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints lines to standard output, as [`print()`] does. An operation continues even if the reader has gone.
pub(crate) fn print_line(text: impl Display) {
    let mut out = io::stdout();
    let text = printable_lines(&text.to_string());
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints lines to standard error, as [`print()`] does.
pub(crate) fn print_error(text: impl Display) {
    let text = printable_lines(&text.to_string());
    let _ = writeln!(io::stderr(), "{text}");
}

/// `text` in one printable line: a message of a cluster must not look like progress of its own.
pub(crate) fn in_one_line(text: impl Display) -> String {
    printable_lines(&text.to_string()).replace('\n', " ")
}

/// Prints the progress of an operation to standard output, and warnings to standard error.
pub(crate) struct TerminalReporter;

impl Reporter for TerminalReporter {
    fn progress(&mut self, progress: Progress) {
        print_line(in_one_line(progress));
    }

    fn warn(&mut self, warning: Warning) {
        print_error(format_args!("warning: {}", in_one_line(warning)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_with_its_distance() {
        for (time, expected) in [
            ("2026-11-01T00:01:01Z", "2026-11-01T00:01:01Z (in 1s)"),
            ("2026-11-01T00:03:05Z", "2026-11-01T00:03:05Z (in 2m5s)"),
            ("2026-11-01T02:03:00Z", "2026-11-01T02:03:00Z (in 2h2m)"),
            ("2026-11-04T01:01:00Z", "2026-11-04T01:01:00Z (in 3d1h)"),
            (
                "2026-11-01T00:01:00Z",
                "2026-11-01T00:01:00Z (passed 0s ago)",
            ),
            (
                "2026-11-01T00:00:00Z",
                "2026-11-01T00:00:00Z (passed 1m0s ago)",
            ),
        ] {
            assert_eq!(
                shown_time(
                    time.parse().unwrap(),
                    "2026-11-01T00:01:00Z".parse().unwrap()
                ),
                expected
            );
        }
    }
}
