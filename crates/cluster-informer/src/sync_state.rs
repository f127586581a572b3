//! Whether the view of a member cluster is up to date (F39).

use std::fmt;

use jiff::Timestamp;

/// Whether the view of a member cluster is up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncState {
    /// The first lists are not complete.
    NotSynced,
    /// The lists are complete and the watches are open.
    Synced,
    /// A watch was silent for longer than the time between two bookmarks, and is being reopened; or all is listed to make
    /// sure. Within seconds the controller knows whether the view is up to date.
    Unconfirmed,
    /// A watch is broken, or a new list is in progress.
    Stale {
        /// When the view was last up to date.
        since: Timestamp,
    },
}

impl SyncState {
    /// The state of a view that depends on both.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::NotSynced, _) | (_, Self::NotSynced) => Self::NotSynced,
            (Self::Stale { since: a }, Self::Stale { since: b }) => Self::Stale { since: a.min(b) },
            (stale @ Self::Stale { .. }, _) | (_, stale @ Self::Stale { .. }) => stale,
            (Self::Unconfirmed, _) | (_, Self::Unconfirmed) => Self::Unconfirmed,
            (Self::Synced, Self::Synced) => Self::Synced,
        }
    }
}

/// For logs.
impl fmt::Display for SyncState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSynced => f.write_str("not synced"),
            Self::Synced => f.write_str("synced"),
            Self::Unconfirmed => f.write_str("being confirmed"),
            Self::Stale { since } => write!(f, "stale since {since:.0}"),
        }
    }
}
