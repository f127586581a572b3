//! The lists of the host's objects: how far they are, and what a person has to do about a failure.

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
