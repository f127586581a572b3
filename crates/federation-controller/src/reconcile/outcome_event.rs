//! The events of actions' outcomes (F38). Pure.

use controller_base::{
    event::{Event, EventType},
    short_list::SHOWN,
};
use fedrs_api::{EventReason, LocalKind, names, pluralize};

use crate::check::Outcome;

/// The event of an outcome for a local workload of `kind` in `cluster`, if people should see it; `done` is the event of an action that was carried out.
pub(super) fn outcome_event(
    kind: LocalKind,
    cluster: &str,
    done: &Event,
    outcome: &Outcome,
) -> Option<Event> {
    let kind = kind.as_str();
    let done_with = |detail: &str| Event {
        message: format!("{}{detail}", done.message),
        ..done.clone()
    };
    Some(match outcome {
        Outcome::Written(_)
        | Outcome::PodsDraining { .. }
        | Outcome::Repaired { by: None, .. }
        | Outcome::Configured { by: None, .. }
        | Outcome::Scaled { by: None, .. } => done.clone(),
        Outcome::Repaired { by: Some(by), .. }
        | Outcome::Configured { by: Some(by), .. }
        | Outcome::Scaled { by: Some(by), .. }
            if by == names::FIELD_MANAGER =>
        {
            done_with(" (changed by fedrs itself, before a restart or by a second controller)")
        }
        Outcome::Repaired { by: Some(by), .. }
        | Outcome::Configured { by: Some(by), .. }
        | Outcome::Scaled { by: Some(by), .. } => done_with(&format!(" (changed by {by})")),
        Outcome::Adopted { changed, .. } => Event::warning(
            EventReason::Overwritten,
            format!("{cluster}: adopted an existing {kind} of this name: {changed}"),
        ),
        Outcome::Replaced { was } => Event::warning(
            EventReason::Overwritten,
            format!(
                "{cluster}: deleted an existing {kind} of this name ({was}) without its pods, because its selector is immutable"
            ),
        ),
        Outcome::Rejected { message, .. }
        | Outcome::TemplateRejected {
            message,
            creates: true,
        } => Event::warning(
            EventReason::CreationRejected,
            format!("{cluster} rejects the {kind}: {message}"),
        ),
        Outcome::TemplateRejected { message, .. } => Event::warning(
            EventReason::WriteRejected,
            format!("{cluster} rejects the template: {message}"),
        ),
        Outcome::Failed(message) => Event::warning(
            EventReason::WriteRejected,
            format!("{cluster} rejects a change of the {kind}: {message}"),
        ),
        Outcome::PodsLabeled { pods, .. } if *pods > 0 => {
            done_with(&format!(": {}", pluralize(*pods as u64, "pod")))
        }
        Outcome::PodsLabeled { .. }
        | Outcome::Pending
        | Outcome::Conflict(_)
        | Outcome::Unknown(_)
        | Outcome::TemplateUnknown(_) => return None,
    })
}

/// One event for what was done at once in several clusters. Warnings stay separate, so that repeated ones are counted.
pub(super) fn at_once(events: impl Iterator<Item = Event>) -> Vec<Event> {
    let mut merged: Vec<(Event, usize)> = Vec::new();
    for event in events {
        let is_same = |(other, _): &&mut (Event, usize)| {
            other.type_ == EventType::Normal && other.reason == event.reason
        };
        match merged.iter_mut().find(is_same) {
            Some((first, clusters)) => {
                *clusters += 1;
                if *clusters <= SHOWN {
                    first.message = format!("{}; {}", first.message, event.message);
                }
            }
            None => merged.push((event, 1)),
        }
    }
    let events = merged.into_iter().map(|(mut event, clusters)| {
        if clusters > SHOWN {
            let more = pluralize((clusters - SHOWN) as u64, "more cluster");
            event.message = format!("{}; and {more}", event.message);
        }
        event
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use cluster_informer::WorkloadState;
    use fedrs_api::RejectionKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn f38_texts_of_outcomes() {
        let live = json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1" },
            "spec": { "replicas": 5, "selector": {}, "template": {} },
        });
        let set = serde_json::from_value::<WorkloadState>(live).unwrap();
        let repaired = |by: Option<&str>| Outcome::Repaired {
            set: set.clone(),
            by: by.map(str::to_owned),
        };
        let outcomes = [
            Outcome::Written(set.clone()),
            repaired(None),
            repaired(Some("kubectl-scale")),
            repaired(Some(names::FIELD_MANAGER)),
            Outcome::Adopted {
                set: set.clone(),
                has_desired: true,
                changed: "replicas 2 to 5; template and labels".to_owned(),
            },
            Outcome::Replaced {
                was: "replicas 2, images web:1, selector app=old".to_owned(),
            },
            Outcome::Rejected {
                kind: RejectionKind::Rejected,
                message: "exceeded quota".to_owned(),
            },
            Outcome::Failed("admission webhook denied the request".to_owned()),
            Outcome::TemplateRejected {
                message: "must be between 1 and 65535".to_owned(),
                creates: false,
            },
            Outcome::PodsLabeled {
                pods: 1,
                spec_version: 1,
            },
        ];
        let done = Event::normal(EventReason::ScaledUp, "eu: scaled up from 3 to 5");
        let events = outcomes
            .map(|outcome| outcome_event(LocalKind::ReplicaSet, "eu", &done, &outcome).unwrap());
        let shown =
            events.map(|event| format!("{:?} {}: {}", event.type_, event.reason, event.message));
        insta::assert_snapshot!(shown.join("\n"));
        for outcome in [Outcome::Pending, Outcome::Conflict(String::new())] {
            assert_eq!(
                outcome_event(LocalKind::ReplicaSet, "eu", &done, &outcome),
                None
            );
        }
    }

    #[test]
    fn f38_what_is_done_at_once_is_one_event() {
        let created = |number: usize| {
            let text = format!("c{number}: created with 1 replica");
            Event::normal(EventReason::Created, text)
        };
        let full = |name: &str| Event::warning(EventReason::ClusterFull, name);
        let scaled = Event::normal(EventReason::ScaledUp, "b: scaled up from 1 to 2");
        let events = [created(1), full("a"), scaled, created(2), full("b")].into_iter();
        let messages = |events: Vec<Event>| -> Vec<String> {
            events.into_iter().map(|event| event.message).collect()
        };
        assert_eq!(
            messages(at_once(events)),
            [
                "c1: created with 1 replica; c2: created with 1 replica",
                "a",
                "b: scaled up from 1 to 2",
                "b",
            ]
        );
        let many = messages(at_once((0..12).map(created)));
        assert_eq!(many.len(), 1);
        assert!(
            many[0].ends_with("c7: created with 1 replica; and 4 more clusters"),
            "{many:?}"
        );
    }
}
