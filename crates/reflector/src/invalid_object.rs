//! An object that can't be read. The list or watch continues without it.

use crate::{printable::printable, uid::Uid};

/// An object that could not be read, with as much of its metadata as could.
#[derive(Debug, thiserror::Error)]
#[error("invalid object{}: {}", self.name_with_space(), printable(&cause.to_string()))]
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
    #[source]
    pub cause: InvalidObjectCause,
}

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InvalidObjectCause {
    /// It is not JSON, or not of the expected type.
    #[error("{}{error}", prefix(.field))]
    Json {
        /// The path of what is wrong, as far as it is known: `spec.replicas`.
        field: String,
        /// What is wrong with it.
        #[source]
        error: serde_json::Error,
    },
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

impl InvalidObjectCause {
    /// What is no JSON object.
    pub(crate) fn json(error: serde_json::Error) -> Self {
        let field = String::new();
        Self::Json { field, error }
    }
}

/// A path before what is wrong with it.
fn prefix(field: &str) -> String {
    if matches!(field, "" | "." | "?") {
        String::new()
    } else {
        format!("{field}: ")
    }
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

    /// Its name after a space, if it is known.
    fn name_with_space(&self) -> String {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => printable(&format!(" {namespace}/{name}")),
            (None, Some(name)) => printable(&format!(" {name}")),
            (_, None) => String::new(),
        }
    }
}
