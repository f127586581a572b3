//! Runs a program in a pseudo-terminal and records what it prints, with times.

use std::{
    fs::File,
    io::{self, Read, Write},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context;
use rustix::{
    fs::{Mode, OFlags},
    pty::{self, OpenptFlags},
    termios::{self, Winsize},
};

/// A program asks the terminal for the position of the cursor.
const CURSOR_QUERY: &[u8] = b"\x1b[6n";

/// What a program printed.
pub(crate) struct Recording {
    /// The bytes, each chunk with the time since the start.
    pub(crate) output: Vec<(Duration, Vec<u8>)>,
    /// Whether the program exited with status 0.
    pub(crate) success: bool,
}

/// Runs `program` until it exits.
pub(crate) fn record(mut program: Command, columns: u16, rows: u16) -> anyhow::Result<Recording> {
    let (mut terminal, inside) = open(columns, rows).context("failed to open a pseudo-terminal")?;
    program
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(inside.try_clone()?)
        .stdout(inside.try_clone()?)
        .stderr(inside);
    let mut child = program.spawn().context("failed to start the program")?;
    // Reading ends when the last copy of the program's end is closed.
    drop(program);
    let started = Instant::now();
    let mut parser = vt100::Parser::new(rows, columns, 0);
    let mut output = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = match terminal.read(&mut buffer) {
            Ok(0) => break,
            // Linux: the program has closed its end.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                break;
            }
            read => read?,
        };
        let chunk = &buffer[..length];
        parser.process(chunk);
        // The demo writes the query by itself and flushes it: it is never split.
        if contains(chunk, CURSOR_QUERY) {
            let (row, column) = parser.screen().cursor_position();
            write!(terminal, "\x1b[{};{}R", row + 1, column + 1)?;
        }
        output.push((started.elapsed(), chunk.to_vec()));
    }
    let success = child.wait()?.success();
    Ok(Recording { output, success })
}

/// Both ends of a new pseudo-terminal: the terminal's and the program's.
fn open(columns: u16, rows: u16) -> io::Result<(File, File)> {
    let outside = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    pty::grantpt(&outside)?;
    pty::unlockpt(&outside)?;
    let name = pty::ptsname(&outside, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let inside = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    termios::tcsetwinsize(&inside, size)?;
    Ok((outside.into(), inside.into()))
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}
