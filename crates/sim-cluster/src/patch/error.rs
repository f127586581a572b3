//! Why a patch cannot be applied.

/// A patch that can't be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// Not a patch of its format; a 400 with this message.
    #[error("{0}")]
    Malformed(String),
    /// A patch that does not fit the object: a 422 of reason `Invalid` with the message
    /// `the server rejected our request due to an error in our request` and no causes; this text is for logs.
    #[error("{0}")]
    Rejected(String),
    /// More operations than allowed; a 413 with this message.
    #[error("{0}")]
    TooLarge(String),
    /// A patch that the API server breaks on; a 500 with this message.
    #[error("{0}")]
    Broken(String),
}
