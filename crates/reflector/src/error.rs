//! Why a list or a watch failed.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    format_error::{format_error, is_credentials_error},
    printable::printable,
};

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Fetching a page of a list.
    List,
    /// Opening a watch, or reading from it.
    Watch,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Watch => "watch",
        })
    }
}

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} {path}: {kind}")]
pub struct Error {
    /// What failed.
    pub verb: Verb,
    /// The path of the collection.
    pub path: Arc<str>,
    /// The cause.
    #[source]
    pub kind: ErrorKind,
}

/// The cause of an [`Error`].
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// No connection, or it broke.
    #[error("{}", format_error(&**.0))]
    Connection(#[source] Box<kube::Error>),
    /// The API server answered with an HTTP error, or sent an `ERROR` event.
    #[error("{code} {reason}: {message}")]
    Status {
        /// HTTP status code.
        code: u16,
        /// Kubernetes' reason, such as `Expired`, or the standard phrase of the HTTP status.
        reason: String,
        /// The server's message.
        message: String,
        /// Whether the requested resourceVersion is newer than any that the server has (cause
        /// `ResourceVersionTooLarge`).
        version_too_large: bool,
    },
    /// The server did not respond in time.
    #[error("no response within {0:?}")]
    Timeout(Duration),
    /// A body larger than its limit.
    #[error("the response has more than {limit} bytes")]
    BodyTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The responses of one API server that are being read at the same time exceed their
    /// [budget](crate::ByteBudget).
    #[error("the responses that are being read have more than {bytes} bytes together")]
    TooManyBytes {
        /// The budget, in bytes.
        bytes: usize,
    },
    /// A list with more pages than its limit.
    #[error("the list has more than {limit} pages")]
    TooManyPages {
        /// The limit.
        limit: u32,
    },
    /// The handler has no room for more objects.
    #[error("there are more objects, or larger ones, than the limit")]
    TooManyObjects,
    /// A body that is not a list.
    #[error("the response is not a list: {}", printable(&.0.to_string()))]
    NotAList(#[source] serde_json::Error),
    /// An older version than before: the API server was restored from a snapshot.
    #[error("the resourceVersion went back from {} to {}", printable(.from), printable(.to))]
    WentBack {
        /// The version up to which events had arrived.
        from: String,
        /// The version that the API server has now.
        to: String,
    },
    /// The collection's path or selectors do not make a valid request.
    #[error("invalid request: {0}")]
    InvalidRequest(#[source] http::Error),
}

impl Error {
    /// Whether the watch may be unable to continue from its version, so that only a new list helps: the version is too old
    /// (410), newer than a restored server has (504), or nonsense, which makes no valid request or no server understands
    /// (400, 422 or 500); or there is no such collection any more (404), and what it had is gone if it returns. What a proxy
    /// answers, or a server that asks for patience, says nothing about the version.
    #[must_use]
    pub fn needs_relist(&self) -> bool {
        match &self.kind {
            ErrorKind::WentBack { .. } | ErrorKind::TooManyObjects => true,
            ErrorKind::Status {
                code,
                version_too_large,
                ..
            } => {
                let is_about_version = matches!(code, 400 | 410 | 422 | 500) || *version_too_large;
                *code == 404 || self.verb == Verb::Watch && is_about_version
            }
            // Only a list shows that there are fewer bytes by now.
            ErrorKind::InvalidRequest(_) | ErrorKind::TooManyBytes { .. } => {
                self.verb == Verb::Watch
            }
            _ => false,
        }
    }

    /// Whether a retry can succeed although nobody changes credentials, permissions, or the server's APIs. The reflector
    /// retries in any case, as somebody may.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match &self.kind {
            ErrorKind::Connection(source) => !is_credentials_error(source),
            ErrorKind::Status { code, .. } => {
                let is_retryable =
                    self.needs_relist() || matches!(code, 408 | 409 | 410 | 429 | 500..);
                is_retryable && *code != 404
            }
            ErrorKind::Timeout(_)
            | ErrorKind::TooManyBytes { .. }
            | ErrorKind::NotAList(_)
            | ErrorKind::WentBack { .. } => true,
            ErrorKind::BodyTooLarge { .. }
            | ErrorKind::TooManyPages { .. }
            | ErrorKind::TooManyObjects
            | ErrorKind::InvalidRequest(_) => false,
        }
    }

    /// Whether the server sent more than a limit allows.
    #[must_use]
    pub fn exceeds_limit(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::BodyTooLarge { .. }
                | ErrorKind::TooManyBytes { .. }
                | ErrorKind::TooManyPages { .. }
                | ErrorKind::TooManyObjects
        )
    }

    /// The HTTP status of the server's answer.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match &self.kind {
            ErrorKind::Status { code, .. } => Some(*code),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(verb: Verb, code: u16, version_too_large: bool) -> Error {
        let kind = ErrorKind::Status {
            code,
            reason: String::new(),
            message: String::new(),
            version_too_large,
        };
        Error {
            verb,
            path: "/api/v1/pods".into(),
            kind,
        }
    }

    #[test]
    fn only_a_watch_whose_version_is_unusable_needs_a_new_list() {
        let cases = [
            (Verb::Watch, 410, false, true),
            (Verb::Watch, 400, false, true),
            (Verb::Watch, 504, true, true),
            (Verb::Watch, 504, false, false),
            (Verb::Watch, 422, false, true),
            (Verb::Watch, 500, false, true),
            (Verb::Watch, 503, false, false),
            (Verb::List, 410, false, false),
            (Verb::Watch, 404, false, true),
            (Verb::List, 404, false, true),
            (Verb::Watch, 403, false, false),
        ];
        for (verb, code, version_too_large, expected) in cases {
            let error = status(verb, code, version_too_large);
            assert_eq!(error.needs_relist(), expected, "{error}");
        }
    }

    #[test]
    fn a_retry_helps_unless_somebody_has_to_change_something() {
        let cases = [
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (410, true),
            (429, true),
            (500, true),
            (503, true),
        ];
        for (code, expected) in cases {
            let error = status(Verb::List, code, false);
            assert_eq!(error.is_retryable(), expected, "{error}");
        }
        assert!(status(Verb::Watch, 400, false).is_retryable());
    }
}
