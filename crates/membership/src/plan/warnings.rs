//! What the user should know about a plan, as text.

use federation_controller::forecast::{End, Forecast, Question, WhatIf};
use fedrs_api::{MemberCluster, MemberConditionType, MemberReason, conditions, pluralize};
use kube::ResourceExt;

/// About members whose state the controller does not know, or does not trust yet.
pub(super) fn of_members(members: &[MemberCluster], what_if: &WhatIf) -> Vec<String> {
    let members = members.iter();
    let named = members.filter(|member| !what_if.lost.contains(&member.name_any()));
    named.filter_map(of_member).collect()
}

fn of_member(member: &MemberCluster) -> Option<String> {
    let name = member.name_any();
    let status = member.status.as_ref();
    let is_lost = status.is_some_and(|status| status.internal.lost);
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let Some(ready) = conditions::find(conditions, MemberConditionType::Ready) else {
        return Some(format!(
            "{name}: the controller has not observed the member yet: it gets no replicas in this plan"
        ));
    };
    if ready.reason == MemberReason::Stabilizing.as_str() {
        return Some(format!(
            "{name}: the member was lost and has returned: replicas elsewhere stay until it has been healthy for long enough"
        ));
    }
    let holds = |type_| conditions::is_true(conditions, type_);
    let failing = [MemberConditionType::Ready, MemberConditionType::Synced]
        .into_iter()
        .find(|type_| !holds(*type_))?;
    let why = conditions::find(conditions, failing);
    let why = why.map_or_else(String::new, |condition| {
        format!(" ({}: {})", condition.reason, condition.message)
    });
    Some(if is_lost {
        format!("{name}: the member is lost{why}: it gets no replicas until it answers again")
    } else {
        format!("{name}: the state of the member is unknown{why}: its replicas stay as they are")
    })
}

/// About members of which none would answer.
pub(super) fn disconnected() -> String {
    "no member would answer: the controller would consider itself disconnected and change nothing"
        .to_owned()
}

/// About one set.
pub(super) fn of_set(question: &Question<'_>, forecast: &Forecast, observed: bool) -> Vec<String> {
    let mut warnings = forecast.warnings.clone();
    if !observed {
        warnings.push(
            "the controller has not observed the latest spec yet: the plan begins with what it last published"
                .to_owned(),
        );
    }
    match forecast.end {
        // About the members, not about this set.
        End::AtRest | End::Disconnected => {}
        End::Paused => {
            warnings.push("the set is paused: nothing changes until it is resumed".to_owned());
        }
        End::Moving => warnings.push(format!(
            "replicas still move after {}: the plan shows what is desired",
            pluralize(forecast.steps, "step")
        )),
    }
    let status = question.status;
    if status.current_revision != status.update_revision {
        warnings.push(
            "a rollout is in progress: replicas leave a cluster after its part of the rollout"
                .to_owned(),
        );
    }
    let unready = question.status.clusters.iter().map(|cluster| {
        let with_node = i64::from(cluster.replicas) - i64::from(cluster.unscheduled_replicas);
        (with_node - i64::from(cluster.available_replicas)).max(0)
    });
    let unready: i64 = unready.sum();
    if unready > 0 {
        warnings.push(format!(
            "{} not available now: the plan assumes that this changes",
            pluralize(unready, "replica")
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn member(name: &str, lost: bool, conditions: &[(&str, &str, &str, &str)]) -> MemberCluster {
        let condition = |(type_, status, reason, message): &(&str, &str, &str, &str)| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster", "metadata": { "name": name },
            "spec": {}, "status": { "conditions": conditions, "internal": { "lost": lost } },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn f39_members_of_unknown_state_are_named() {
        let synced = ("Synced", "True", "Synced", "all is watched");
        let ready = ("Ready", "True", "Healthy", "the API server answers");
        let unreachable = ("Ready", "False", "Unreachable", "connection refused");
        let members = [
            member("new", false, &[]),
            member("healthy", false, &[ready, synced]),
            member("away", false, &[unreachable, synced]),
            member("lost", true, &[unreachable, synced]),
            member("asked", false, &[unreachable, synced]),
            member(
                "stale",
                false,
                &[ready, ("Synced", "False", "Stale", "the watch is down")],
            ),
            member(
                "back",
                false,
                &[("Ready", "True", "Stabilizing", "it answers"), synced],
            ),
        ];
        let what_if = WhatIf {
            lost: ["asked".to_owned()].into(),
            ..WhatIf::default()
        };
        let mut warnings = of_members(&members, &what_if);
        warnings.push(disconnected());
        insta::assert_snapshot!(warnings.join("\n"));
    }
}
