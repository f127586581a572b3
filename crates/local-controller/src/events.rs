//! The events of what was done: one for each kind of action, with the names of the pods, so that a set of a thousand pods does not
//! write thousands of them.

use controller_base::{event::Event, short_list::short_list};
use fedrs_api::{LocalEventReason as Reason, pluralize};
use replica_set_controller::{Action, RemoveReason};

use crate::execute::{Executed, Outcome};

/// The events of the actions of one step.
pub(crate) fn events(executed: &[Executed<'_>]) -> Vec<Event> {
    let mut kinds: Vec<(Reason, &'static str, Vec<&str>)> = Vec::new();
    let mut failures = Vec::new();
    for Executed { action, result } in executed {
        match result {
            Outcome::Done => {
                let Some((reason, text)) = text(action) else {
                    continue;
                };
                let name = name(action);
                match kinds
                    .iter_mut()
                    .find(|(known, of, _)| (*known, *of) == (reason, text))
                {
                    Some((_, _, pods)) => pods.push(name),
                    None => kinds.push((reason, text, vec![name])),
                }
            }
            Outcome::Rejected { message, .. } => {
                failures.push(failed(action, message));
            }
            Outcome::Outdated | Outcome::Taken | Outcome::Unanswered(_) => {}
        }
    }
    // A quota rejects all of them with about the same words.
    failures.sort_by(|a, b| a.reason.cmp(b.reason));
    failures.dedup_by(|a, b| a.reason == b.reason);
    let done = kinds.into_iter().map(|(reason, text, pods)| {
        let count = pluralize(pods.len() as u64, "pod");
        let names = short_list(pods.into_iter().map(str::to_owned), ", ").unwrap_or_default();
        Event::normal(reason, format!("{text} {count}: {names}"))
    });
    done.chain(failures).collect()
}

fn name<'a>(action: &'a Action<'_>) -> &'a str {
    match action {
        Action::Create { name, .. } => name,
        other => other.pod().map_or("", |pod| pod.name),
    }
}

/// What was done, if that is worth an event.
fn text(action: &Action<'_>) -> Option<(Reason, &'static str)> {
    Some(match action {
        Action::Create { .. } => (Reason::SuccessfulCreate, "Created"),
        Action::Remove { reason, .. } => match reason {
            RemoveReason::Surplus { .. } => (Reason::SuccessfulDelete, "Deleted"),
            RemoveReason::Crowded => (
                Reason::SuccessfulDelete,
                "Deleted, as no node has room for it and another one may fit,",
            ),
            RemoveReason::Evicted { .. } => (Reason::Evicted, "Evicted"),
            RemoveReason::Recreated { .. } => (
                Reason::Recreating,
                "Deleted, to be created again with the current template,",
            ),
        },
        Action::ForceRemove { .. } => (
            Reason::ForceDeleted,
            "Deleted by force, since it did not shut down in time,",
        ),
        Action::Patch { .. } => (Reason::UpdatedInPlace, "Updated in place"),
        Action::Resize { .. } => (Reason::Resized, "Changed CPU or memory of"),
        Action::Adopt { .. } => (Reason::Adopted, "Adopted"),
        Action::Release { .. } => (Reason::Released, "Released"),
        Action::AddFinalizer { .. }
        | Action::RemoveFinalizer { .. }
        | Action::CloseGate { .. }
        | Action::Drain { .. }
        | Action::OpenGate { .. } => return None,
    })
}

fn failed(action: &Action<'_>, message: &str) -> Event {
    let name = name(action);
    let (reason, verb) = match action {
        Action::Create { .. } => (Reason::FailedCreate, "create"),
        Action::Remove { .. } | Action::ForceRemove { .. } => (Reason::FailedDelete, "delete"),
        _ => (Reason::FailedUpdate, "update"),
    };
    Event::warning(reason, format!("Failed to {verb} pod {name}: {message}"))
}
