//! The lines of the story, on their way from the runner to a terminal or a pipe.

use tokio::sync::mpsc;

/// Lines that may wait to be shown: more than any step has, so that output never delays the story.
const BUFFERED_LINES: usize = 64;

/// How a line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineStyle {
    /// A step begins.
    Heading,
    /// Neutral.
    Plain,
    /// A success.
    Success,
    /// A failure.
    Failure,
    /// Less important.
    Dimmed,
}

/// One line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputLine {
    /// How it is shown.
    pub(crate) style: LineStyle,
    /// Its text; lines below a heading are indented by two spaces.
    pub(crate) text: String,
}

impl OutputLine {
    /// A line.
    pub(crate) fn new(style: LineStyle, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { style, text }
    }
}

/// Accepts lines of output.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(mpsc::Sender<OutputLine>);

impl Reporter {
    /// A reporter and the receiver of its lines.
    pub(crate) fn new() -> (Self, mpsc::Receiver<OutputLine>) {
        let (sender, receiver) = mpsc::channel(BUFFERED_LINES);
        (Self(sender), receiver)
    }

    /// Reports `lines`. Without a receiver the demo is about to end, and they are dropped.
    pub(crate) async fn report(&self, lines: impl IntoIterator<Item = OutputLine>) {
        for line in lines {
            let _ = self.0.send(line).await;
        }
    }
}
