//! Whether the controller can do its work: the host's objects are listed, and all members are known.

use controller_base::{
    error_text::format_error,
    list_progress::{ListProgress, ListState},
};
use reflector::Error;
use tokio::sync::watch;

use crate::messages;

/// The progress of listing the host's objects of `kind`, named in the plural.
pub(crate) fn list_progress(kind: &'static str, state: watch::Sender<ListState>) -> ListProgress {
    ListProgress::new(kind, failed_to_list, state)
}

fn failed_to_list(kind: &str, error: &Error) -> String {
    match error.code() {
        Some(404) => messages::crds_missing(kind),
        Some(403) => messages::may_not_list(kind, &format_error(error)),
        _ => messages::failed_to_list(kind, &format_error(error)),
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
        let progress = list_progress("FederatedReplicaSets", listed);
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
