//! Whether a controller can do its work: what it watches is listed, and it knows all clusters.

use std::sync::Arc;

use tokio::sync::watch;

use crate::list_progress::ListState;

/// Whether the controller can do its work, for `/readyz`.
#[derive(Clone)]
pub struct Readiness {
    lists: Arc<[watch::Receiver<ListState>]>,
    complete: watch::Receiver<bool>,
}

impl Readiness {
    /// Of these lists; `complete` says whether all members are known.
    #[must_use]
    pub fn new(
        lists: impl Into<Arc<[watch::Receiver<ListState>]>>,
        complete: watch::Receiver<bool>,
    ) -> Self {
        Self {
            lists: lists.into(),
            complete,
        }
    }

    /// `Ok` once everything is known.
    pub fn check(&self) -> Result<(), NotReady> {
        for state in &*self.lists {
            let state = state.borrow();
            if state.error.is_some() {
                return Err(NotReady::Lists);
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
    pub async fn wait(&mut self) -> bool {
        for state in &*self.lists {
            let mut state = state.clone();
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
    /// Objects can't be read.
    #[error("cannot list objects: see the log")]
    Lists,
    /// The first lists are not complete.
    #[error("the controller has not listed all objects yet")]
    Listing,
    /// Some sources of members have not been read.
    #[error("the controller has not read all members yet")]
    Members,
}

#[cfg(test)]
mod tests {
    use reflector::{ErrorKind, Verb};

    use super::*;
    use crate::list_progress::ListProgress;

    #[test]
    fn a_failure_ends_with_its_next_answer() {
        let (listed, sets) = watch::channel(ListState::default());
        let progress = ListProgress::new("sets", |kind, error| format!("{kind}: {error}"), listed);
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
        progress.failed(&reflector::Error {
            verb: Verb::Watch,
            path: "/apis".into(),
            kind: ErrorKind::Timeout(std::time::Duration::from_secs(1)),
        });
        assert_eq!(readiness.check(), Err(NotReady::Lists));
        // The watch continues, without another list.
        progress.answered();
        assert_eq!(readiness.check(), Ok(()));
    }
}
