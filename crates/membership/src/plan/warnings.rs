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
    "no member would answer: the controller takes itself for disconnected, and changes nothing"
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
    let clusters = &question.status.clusters;
    let unready = clusters.iter().map(|cluster| {
        let with_node = cluster.replicas - cluster.unscheduled_replicas;
        (with_node - cluster.available_replicas).max(0)
    });
    let unready: i32 = unready.sum();
    if unready > 0 {
        warnings.push(format!(
            "{} not available now: the plan assumes that they become available",
            pluralize(unready, "replica")
        ));
    }
    warnings
}
