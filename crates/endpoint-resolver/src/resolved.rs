//! What is known of a set, for those who read it.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::endpoint::Endpoint;

/// The last good answer for a set, and how good it is now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resolved {
    /// The version of the endpoints. It grows with each change as long as one replica of the service answers.
    pub version: u64,
    /// All endpoints, by cluster and pod. Empty only if the service says so.
    pub endpoints: Arc<[Arc<Endpoint>]>,
    /// Members of which changes may be missing, as the service said last.
    pub stale_members: Vec<StaleMember>,
    /// Why the last attempt to confirm this answer failed; none if it is confirmed, or was not yet asked for.
    pub problem: Option<Problem>,
    pub(crate) confirmation: Confirmation,
    /// Whether the service sent it to this process; otherwise it is from disk.
    pub(crate) is_from_service: bool,
}

/// A member of which changes may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaleMember {
    /// Its name.
    pub cluster: String,
    /// None if its pods are not known at all.
    pub(crate) age: Option<Age>,
}

/// Why the last attempt to get an answer failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Problem {
    /// The class.
    pub reason: Reason,
    /// A sentence for people.
    pub message: String,
}

/// A class of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The service says: there is no such set.
    NotFound,
    /// The service says: the set is invalid, or its source does not exist.
    Invalid,
    /// The service says: not everything has been listed yet, or it is not known who may ask.
    Waiting,
    /// The service says: this client may not ask for the set.
    Forbidden,
    /// The service can't be reached, its stream broke, or its answer makes no sense.
    Unavailable,
}

/// When the service last said that an answer is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// It says so now: it reports each change of the set on an open stream.
    Live,
    /// It did.
    Past(Age),
}

/// A time that grows: what it was at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    pub(crate) then: Duration,
    pub(crate) at: Instant,
}

/// What is known of a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum View {
    /// No answer yet, and why not.
    Unknown(Option<Problem>),
    Known(Arc<Resolved>),
}

impl Resolved {
    /// For how long the service has not confirmed this answer.
    ///
    /// Zero while a stream is open on which the service has reported the set: it would report a change at once. A
    /// connection is closed when it has been silent for 15 s, pings included, so changes of the last 15 s may be missing.
    /// When the stream ends, or reports a problem of the set, the age begins to grow. It goes on growing over restarts of
    /// this process, by the clock of the machine; the file on disk may say up to 5 minutes too much after a crash.
    pub fn age(&self) -> Duration {
        match self.confirmation {
            Confirmation::Live => Duration::ZERO,
            Confirmation::Past(age) => age.at(Instant::now()),
        }
    }

    /// Whether the service reports changes of the set now.
    pub fn is_live(&self) -> bool {
        self.confirmation == Confirmation::Live
    }
}

impl StaleMember {
    /// For how long changes may be missing; none if the pods of the member are not known at all.
    pub fn age(&self) -> Option<Duration> {
        self.age.map(|age| age.at(Instant::now()))
    }
}

impl Problem {
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self {
            reason: Reason::Unavailable,
            message: message.into(),
        }
    }
}

impl Confirmation {
    /// The same when the service no longer says so.
    pub(crate) fn ended(self, now: Instant) -> Self {
        match self {
            Self::Live => Self::Past(Age {
                then: Duration::ZERO,
                at: now,
            }),
            past @ Self::Past(_) => past,
        }
    }
}

impl Age {
    fn at(self, now: Instant) -> Duration {
        self.then + now.saturating_duration_since(self.at)
    }
}

impl View {
    pub(crate) fn current(&self) -> Option<&Arc<Resolved>> {
        match self {
            Self::Unknown(_) => None,
            Self::Known(resolved) => Some(resolved),
        }
    }

    pub(crate) fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Unknown(problem) => problem.as_ref(),
            Self::Known(resolved) => resolved.problem.as_ref(),
        }
    }
}
