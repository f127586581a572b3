//! The event of an action's outcome (F38). Pure.

use fedrs_api::{EventReason, names, pluralize};

use crate::{check::Outcome, event::Event};

/// The event of an outcome in `cluster`, if people should see it; `done` is the event of an action that was carried out.
pub(super) fn outcome_event(cluster: &str, done: &Event, outcome: &Outcome) -> Option<Event> {
    let done_with = |detail: &str| Event {
        message: format!("{}{detail}", done.message),
        ..done.clone()
    };
    Some(match outcome {
        Outcome::Written(_)
        | Outcome::Repaired { by: None, .. }
        | Outcome::Scaled { by: None, .. } => done.clone(),
        Outcome::Repaired { by: Some(by), .. } | Outcome::Scaled { by: Some(by), .. }
            if by == names::FIELD_MANAGER =>
        {
            done_with(" (changed by fedrs itself, before a restart or by a second controller)")
        }
        Outcome::Repaired { by: Some(by), .. } | Outcome::Scaled { by: Some(by), .. } => {
            done_with(&format!(" (changed by {by})"))
        }
        Outcome::Adopted { changed, .. } => Event::warning(
            EventReason::Overwritten,
            format!("{cluster}: adopted an existing ReplicaSet of this name: {changed}"),
        ),
        Outcome::Replaced { was } => Event::warning(
            EventReason::Overwritten,
            format!(
                "{cluster}: deleted an existing ReplicaSet of this name ({was}) without its pods, because its selector is immutable"
            ),
        ),
        Outcome::Rejected { message, .. }
        | Outcome::TemplateRejected {
            message,
            creates: true,
        } => Event::warning(
            EventReason::CreationRejected,
            format!("{cluster} rejects the ReplicaSet: {message}"),
        ),
        Outcome::TemplateRejected { message, .. } => Event::warning(
            EventReason::WriteRejected,
            format!("{cluster} rejects the template: {message}"),
        ),
        Outcome::Failed(message) => Event::warning(
            EventReason::WriteRejected,
            format!("{cluster} rejects a change of the ReplicaSet: {message}"),
        ),
        Outcome::PodsLabeled { pods, .. } if *pods > 0 => {
            done_with(&format!(": {}", pluralize(*pods as u64, "pod")))
        }
        Outcome::PodsLabeled { .. }
        | Outcome::Pending
        | Outcome::Conflict(_)
        | Outcome::Unknown(_) => return None,
    })
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
                generation: 1,
            },
        ];
        let done = Event::normal(EventReason::ScaledUp, "eu: scaled up from 3 to 5");
        let events = outcomes.map(|outcome| outcome_event("eu", &done, &outcome).unwrap());
        let shown =
            events.map(|event| format!("{:?} {}: {}", event.type_, event.reason, event.message));
        insta::assert_snapshot!(shown.join("\n"));
        for outcome in [Outcome::Pending, Outcome::Conflict(String::new())] {
            assert_eq!(outcome_event("eu", &done, &outcome), None);
        }
    }
}
