//! Whether the collections that a controller watches are listed, for its readiness.

use reflector::Error;
use tokio::sync::watch;

/// Whether a kind has been listed, and why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListState {
    /// Whether a first list is complete.
    pub complete: bool,
    /// The last failure, while it lasts.
    pub error: Option<String>,
}

/// Publishes the [`ListState`] of one kind, and logs what a person has to do.
pub struct ListProgress {
    /// The kind, in the plural.
    kind: &'static str,
    explain: fn(&str, &Error) -> String,
    state: watch::Sender<ListState>,
}

impl ListProgress {
    /// For the objects of `kind`, named in the plural. `explain` says of the kind and a failure what a person has to do.
    pub fn new(
        kind: &'static str,
        explain: fn(&str, &Error) -> String,
        state: watch::Sender<ListState>,
    ) -> Self {
        Self {
            kind,
            explain,
            state,
        }
    }

    /// A list is complete.
    pub fn complete(&self) {
        self.state
            .send_if_modified(|state| !std::mem::replace(&mut state.complete, true));
    }

    /// The API server has answered: a failure is over.
    pub fn answered(&self) {
        self.state
            .send_if_modified(|state| state.error.take().is_some());
    }

    /// A list or a watch failed.
    pub fn failed(&self, error: &Error) {
        let message = (self.explain)(self.kind, error);
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
