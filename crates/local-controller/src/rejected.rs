//! What a request that failed means for the next ones of its pod.

use jiff::Timestamp;
use replica_set_controller::{Action, Pod};

use crate::{
    execute::Outcome,
    memory::{Memory, RefusedPatch},
};

/// Remembers what became of a request for a pod.
pub(crate) fn remember_pod(
    action: &Action<'_>,
    pod: &Pod<'_>,
    result: &Outcome,
    target: u32,
    memory: &mut Memory,
    now: Timestamp,
) {
    let (code, message) = match result {
        Outcome::Done | Outcome::Outdated | Outcome::Taken => {
            memory.failing.remove(pod.uid);
            return;
        }
        Outcome::Rejected { code, message } => (*code, message),
        Outcome::Unanswered(message) => (0, message),
    };
    if let (true, Some(from)) = (is_impossible(action, code, message), pod.revision) {
        let message = message.clone();
        let patch = RefusedPatch {
            from,
            target,
            message,
        };
        memory.refuse(pod.uid, patch);
    }
    let is_removal = matches!(action, Action::Remove { .. } | Action::ForceRemove { .. });
    memory.fail(pod.uid, is_removal, message.clone(), now);
}

/// Whether the API server can't make the change in a running pod (L12).
fn is_impossible(action: &Action<'_>, code: u16, message: &str) -> bool {
    match (action, code) {
        (Action::Patch { .. }, 422) | (Action::Resize { .. }, 404 | 422) => true,
        // Its role does not let the controller use the subresource. A pod that no quota has room for would not be created.
        (Action::Resize { .. }, 403) => !message.contains("exceeded quota"),
        _ => false,
    }
}
