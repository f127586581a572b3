//! What happened in a run: a line for each event, with its simulated time.

use std::fmt;

use tokio::time::{Duration, Instant};

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A step of the plan.
    Step,
    /// A write of the controller.
    Write,
    /// The pods that run.
    Pods,
    /// The controller starts or ends.
    Process,
    /// A phase of the run.
    Phase,
    /// An invariant that did not hold.
    Violation,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// Since the start of the run.
    pub at: Duration,
    /// What it is about.
    pub topic: Topic,
    /// What happened.
    pub text: String,
}

/// All events of a run, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    start: Instant,
    lines: Vec<TraceLine>,
}

impl Trace {
    /// An empty trace that begins now.
    pub(crate) fn starting() -> Self {
        Self {
            start: Instant::now(),
            lines: Vec::new(),
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, topic: Topic, text: String) {
        self.lines.push(TraceLine {
            at: self.start.elapsed(),
            topic,
            text,
        });
    }

    /// The lines, in order.
    pub fn lines(&self) -> &[TraceLine] {
        &self.lines
    }

    /// Since the start of the run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

impl fmt::Display for TraceLine {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.as_secs_f64();
        let mark = match self.topic {
            Topic::Step => ">",
            Topic::Violation => "!",
            _ => " ",
        };
        write!(to, "{seconds:>9.3} s {mark} {}", self.text)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines
            .iter()
            .try_for_each(|line| writeln!(to, "{line}"))
    }
}
