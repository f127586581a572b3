//! What commands about members tell: what they did on standard output, a line for each step; warnings and errors
//! on standard error.

use std::{
    fmt::Display,
    io::{self, Write},
};

use crate::cluster_client::Side;

/// Where it is told.
pub struct Say {
    out: Box<dyn Write>,
    errors: Box<dyn Write>,
    /// What was told last of what is waited for: told once, not every time it is looked at.
    waiting: String,
}

impl Say {
    /// Tells the terminal.
    pub fn to_terminal() -> Self {
        Self {
            out: Box::new(io::stdout()),
            errors: Box::new(io::stderr()),
            waiting: String::new(),
        }
    }

    /// A step: what was done with an object of one side.
    pub fn step(&mut self, side: Side, object: impl Display, done: impl Display) {
        self.line(format_args!("{:<6}  {object} {done}", side.to_string()));
    }

    /// A line of its own.
    pub fn line(&mut self, text: impl Display) {
        // A reader that has gone is no reason to leave half of the work undone.
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }

    /// What is waited for, if that has changed.
    pub fn waiting(&mut self, what: &str) {
        if self.waiting != what {
            what.clone_into(&mut self.waiting);
            self.line(format_args!("waiting: {what}"));
        }
    }

    /// Something that is not as it should be, and that doesn't stop the command.
    pub fn warn(&mut self, text: impl Display) {
        let _ = writeln!(self.errors, "warning: {text}");
    }
}
