//! Runs a program in a pseudo-terminal and records what it prints, with times.

use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use pty_process::{Size, blocking::Command};

/// A program asks the terminal for the position of the cursor.
const CURSOR_QUERY: &[u8] = b"\x1b[6n";

/// What a program printed: the bytes, each chunk with the time since the start.
pub(super) type Recording = Vec<(Duration, Vec<u8>)>;

/// Runs `program` until it exits; fails if it does not succeed.
pub(super) fn record(program: Command, columns: u16, rows: u16) -> anyhow::Result<Recording> {
    let (mut terminal, inside) =
        pty_process::blocking::open().context("failed to open a pseudo-terminal")?;
    terminal.resize(Size::new(rows, columns))?;
    let mut child = program
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .spawn(inside)
        .context("failed to start the program")?;
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
        if chunk
            .windows(CURSOR_QUERY.len())
            .any(|bytes| bytes == CURSOR_QUERY)
        {
            let (row, column) = parser.screen().cursor_position();
            write!(terminal, "\x1b[{};{}R", row + 1, column + 1)?;
        }
        output.push((started.elapsed(), chunk.to_vec()));
    }
    ensure!(child.wait()?.success(), "the program failed");
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_in_a_terminal_that_answers_where_the_cursor_is() {
        let script =
            r"test -t 1 || exit 1; stty -icanon -echo; printf 'ab\033[6n'; head -c 6 | od -An -c";
        let program = Command::new("sh").args(["-c", script]);
        let output = record(program, 80, 24).expect("the program succeeds");
        let text: Vec<u8> = output.into_iter().flat_map(|(_, chunk)| chunk).collect();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("033   [   1   ;   3   R"), "{text}");
    }
}
