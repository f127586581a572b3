//! Whether the controller can do its work: the host's objects are listed, and all members are known.

use reflector::Error;
use tokio::sync::watch;

use crate::{error_text::format_error, messages};

/// Whether a kind has been listed from the host, and why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListState {
    /// Whether a first list is complete.
    pub complete: bool,
    /// The last failure, while it lasts.
    pub error: Option<String>,
}

/// Publishes the [`ListState`] of one kind, and logs what a person has to do.
pub(crate) struct ListProgress {
    /// The kind, in the plural.
    kind: &'static str,
    state: watch::Sender<ListState>,
}

impl ListProgress {
    /// For the objects of `kind`, named in the plural.
    pub(crate) fn new(kind: &'static str, state: watch::Sender<ListState>) -> Self {
        Self { kind, state }
    }

    /// A list is complete.
    pub(crate) fn complete(&self) {
        self.state
            .send_if_modified(|state| !std::mem::replace(&mut state.complete, true));
    }

    /// The host has answered: a failure is over.
    pub(crate) fn answered(&self) {
        self.state
            .send_if_modified(|state| state.error.take().is_some());
    }

    /// A list or a watch failed.
    pub(crate) fn failed(&self, error: &Error) {
        let message = match error.code() {
            Some(404) => messages::crds_missing(self.kind),
            Some(403) => messages::may_not_list(self.kind, &format_error(error)),
            _ => messages::failed_to_list(self.kind, &format_error(error)),
        };
        self.state.send_if_modified(|state| {
            let changed = state.error.as_deref() != Some(&message);
            if changed {
                tracing::warn!("{message}");
                state.error = Some(message);
            }
            changed
        });
    }
}

/// Whether the controller can do its work, for `/readyz`.
#[derive(Clone)]
pub struct Readiness {
    lists: [watch::Receiver<ListState>; 4],
    complete: watch::Receiver<bool>,
}

impl Readiness {
    /// Of the lists of FederatedReplicaSets, MemberClusters and Namespaces; `complete` says whether all members are known.
    pub(crate) fn new(
        lists: [watch::Receiver<ListState>; 4],
        complete: watch::Receiver<bool>,
    ) -> Self {
        Self { lists, complete }
    }

    /// `Ok` once FederatedReplicaSets and members are known.
    pub fn check(&self) -> Result<(), NotReady> {
        for state in &self.lists {
            let state = state.borrow();
            if state.error.is_some() {
                return Err(NotReady::Host);
            }
            if !state.complete {
                return Err(NotReady::Listing);
            }
        }
        if *self.complete.borrow() {
            Ok(())
        } else {
            Err(NotReady::Members)
        }
    }

    /// Waits until everything is known; `false` if the controller ends before.
    pub(crate) async fn wait(&mut self) -> bool {
        for state in &mut self.lists {
            if state.wait_for(|state| state.complete).await.is_err() {
                return false;
            }
        }
        self.complete.wait_for(|complete| *complete).await.is_ok()
    }
}

/// Why the controller can't do its work yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// The host's objects can't be read.
    #[error("cannot list the host's objects: see the log")]
    Host,
    /// The first lists are not complete.
    #[error("the controller has not listed the host's objects yet")]
    Listing,
    /// Some sources of members have not been read.
    #[error("the controller has not read all members yet")]
    Members,
}

#[cfg(test)]
mod tests {
    use reflector::{ErrorKind, Verb};

    use super::*;

    #[test]
    fn a_failure_of_the_host_ends_with_its_next_answer() {
        let (listed, sets) = watch::channel(ListState::default());
        let progress = ListProgress::new("FederatedReplicaSets", listed);
        let complete = ListState {
            complete: true,
            error: None,
        };
        let (_listed, others) = watch::channel(complete);
        let (_complete, all_known) = watch::channel(true);
        let readiness = Readiness::new([sets, others.clone(), others.clone(), others], all_known);
        assert_eq!(readiness.check(), Err(NotReady::Listing));
        progress.complete();
        assert_eq!(readiness.check(), Ok(()));
        progress.failed(&Error {
            verb: Verb::Watch,
            path: "/apis".into(),
            kind: ErrorKind::Timeout(std::time::Duration::from_secs(1)),
        });
        assert_eq!(readiness.check(), Err(NotReady::Host));
        // The watch continues, without another list.
        progress.answered();
        assert_eq!(readiness.check(), Ok(()));
    }
}
