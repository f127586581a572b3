//! The event of an action's outcome (F38). Pure.

use fedrs_api::EventReason;

use crate::{check::Outcome, event::Event, messages};

/// The event of an outcome in `cluster`, if people should see it; `done` is the event of an action that was carried out.
pub(super) fn outcome_event(cluster: &str, done: &Event, outcome: &Outcome) -> Option<Event> {
    let with_message = |message| Event {
        message,
        ..done.clone()
    };
    Some(match outcome {
        Outcome::Written(_) => done.clone(),
        Outcome::Repaired { by, .. } => {
            with_message(messages::repaired(&done.message, by.as_deref()))
        }
        Outcome::Adopted { changed, .. } => Event::warning(
            EventReason::Overwritten,
            messages::adopted(cluster, changed),
        ),
        Outcome::Replaced { was } => {
            Event::warning(EventReason::Overwritten, messages::replaced(cluster, was))
        }
        Outcome::Rejected { message, .. } => Event::warning(
            EventReason::CreationRejected,
            messages::creation_rejected(cluster, message),
        ),
        Outcome::Failed(message) => Event::warning(
            EventReason::WriteRejected,
            messages::write_rejected(cluster, message),
        ),
        Outcome::PodsLabeled { pods, .. } if *pods > 0 => {
            with_message(messages::pods_labeled(&done.message, *pods))
        }
        Outcome::PodsLabeled { .. }
        | Outcome::Pending
        | Outcome::Conflict(_)
        | Outcome::Unknown(_) => return None,
    })
}
