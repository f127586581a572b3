//! Why a request is not answered whoever asks.

use super::cache::HostAway;

/// Nobody who may ask for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Nothing says who it is, or what says so is not valid.
    #[error("Unauthorized: needs a valid bearer token, or a client certificate")]
    NotAuthenticated,
    /// The host can't be asked.
    #[error(transparent)]
    HostAway(#[from] HostAway),
}
