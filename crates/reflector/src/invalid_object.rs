//! An object that can't be read. The list or watch continues without it.

use std::fmt;

use crate::uid::Uid;

/// An object that could not be read, with as much of its metadata as could.
#[derive(Debug)]
pub struct InvalidObject {
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its uid.
    pub uid: Option<Uid>,
    /// Whether the event says that the object was deleted, or no longer matches the selectors.
    pub deleted: bool,
    /// What is wrong with it.
    pub cause: InvalidObjectCause,
}

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InvalidObjectCause {
    /// It is not JSON, or not of the expected type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It is larger than [`Limits::object_bytes`](crate::Limits::object_bytes).
    #[error("the object has more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Its event is longer than [`Limits::watch_line_bytes`](crate::Limits::watch_line_bytes).
    #[error("the watch event has more than {limit} bytes")]
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl InvalidObject {
    /// An object of which not even the metadata could be read.
    pub(crate) fn without_metadata(cause: InvalidObjectCause) -> Self {
        Self {
            namespace: None,
            name: None,
            uid: None,
            deleted: false,
            cause,
        }
    }
}

impl fmt::Display for InvalidObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid object")?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}")?,
            (None, Some(name)) => write!(f, " {name}")?,
            (_, None) => {}
        }
        write!(f, ": {}", self.cause)
    }
}

impl std::error::Error for InvalidObject {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
