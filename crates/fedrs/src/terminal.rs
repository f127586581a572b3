//! What the terminal can show, and questions to the user.

use std::{
    env,
    io::{self, BufRead, IsTerminal, Write},
};

use anyhow::{Context, bail};

use crate::output::print_line;

/// Whether output may have colors: <https://no-color.org>.
pub(crate) fn allows_color() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether output can be updated in place.
pub(crate) fn can_redraw() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdout().is_terminal() && !is_dumb
}

/// Whether output can be updated in place, and keys can be read.
#[cfg(feature = "demo")]
pub(crate) fn is_interactive() -> bool {
    can_redraw() && io::stdin().is_terminal()
}

/// The columns and rows of the terminal that output goes to; 80 and 24 if it does not say.
pub(crate) fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let known = size.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Asks the user whether to continue, and prints that nothing was changed if not. Fails if standard input is not a terminal.
pub(crate) fn confirm() -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("standard input is not a terminal: confirm with --yes. No changes were made");
    }
    let mut out = io::stdout();
    out.write_all(b"Continue? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("failed to read the answer")?;
    let is_confirmed = matches!(answer.trim(), "y" | "Y" | "yes");
    if !is_confirmed {
        print_line("No changes were made.");
    }
    Ok(is_confirmed)
}
