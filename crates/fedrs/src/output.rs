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
