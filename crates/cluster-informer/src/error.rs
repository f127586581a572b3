//! What can go wrong while listing and watching.

use std::{fmt, time::Duration};

/// What was being done when it went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Fetching a page of the list.
    List,
    /// Opening the watch, or reading from it.
    Watch,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Watch => "watch",
        })
    }
}

/// Why a list or a watch failed. All of it is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection, or it broke.
    #[error("failed to {doing}: {}", crate::chain::chain(&**source))]
    Connection {
        /// What was being done.
        doing: Doing,
        /// What the client says.
        source: Box<kube::Error>,
    },
    /// The API server refused, by an HTTP status or an `ERROR` event.
    #[error("failed to {doing}: {code} {reason}: {message}")]
    Refused {
        /// What was being done.
        doing: Doing,
        /// HTTP status code.
        code: u16,
        /// Kubernetes' word for it, such as `Expired`.
        reason: String,
        /// The server's explanation.
        message: String,
    },
    /// Nothing came in time.
    #[error("failed to {doing}: no answer within {after:?}")]
    Deadline {
        /// What was being done.
        doing: Doing,
        /// How long was waited.
        after: Duration,
    },
    /// A page that is larger than any honest one.
    #[error("failed to list: a page of more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A page that is no list.
    #[error("failed to read a list: {source}")]
    NoList {
        /// Where it stops to be one.
        source: serde_json::Error,
    },
    /// The watch's versions went back: the API server was restored from an older state.
    #[error("the watch went back from version {from} to {to}")]
    WentBack {
        /// Where the watch was.
        from: String,
        /// What it says now.
        to: String,
    },
    /// The address of the resource can't be written as a request.
    #[error("failed to {doing}: {source}")]
    Request {
        /// What was being done.
        doing: Doing,
        /// What is wrong with it.
        source: http::Error,
    },
}

impl Error {
    /// Whether the watch can't go on from where it was, so that only a new list helps: its version is too old
    /// (410), in the future of a restored server (504), or not understood (400).
    pub fn needs_list(&self) -> bool {
        match self {
            Self::Refused {
                doing: Doing::Watch,
                code: 400 | 410,
                ..
            }
            | Self::WentBack { .. } => true,
            Self::Refused {
                doing: Doing::Watch,
                code: 504,
                message,
                ..
            } => message.contains("Too large resource version"),
            _ => false,
        }
    }

    /// The HTTP status the server answered, if it did.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}
