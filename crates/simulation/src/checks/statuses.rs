//! What statuses say whenever they are written, also while replicas move.

use fedrs_api::MemberConditionType;
use serde_json::Value;
use sim_cluster::{Change, Object};

use super::observed::Observed;

/// Checks a status that the controller has written.
pub(super) fn on_host(observed: &Observed, change: &Change) -> Option<String> {
    match change.kind.plural.as_str() {
        "federatedreplicasets" | "federateddeployments" => {
            wrong_sum(&change.name, &change.new.as_ref()?["status"])
        }
        "memberclusters" => wrongly_drained(observed, change),
        _ => None,
    }
}

/// F6: the numbers of a set are the sums of those of its clusters.
fn wrong_sum(name: &str, status: &Value) -> Option<String> {
    let number = |object: &Value, field: &str| object[field].as_u64().unwrap_or(0);
    let clusters = || status["clusters"].as_array().into_iter().flatten();
    let fields = [
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
    ];
    fields.into_iter().find_map(|field| {
        let sum: u64 = clusters().map(|cluster| number(cluster, field)).sum();
        let shown = number(status, field);
        (shown != sum)
            .then(|| format!("{name}: the status shows {field} {shown}, and {sum} in its clusters"))
    })
}

/// A member that has been running replicas all the time, as far as it may be believed, is not drained.
fn wrongly_drained(observed: &Observed, change: &Change) -> Option<String> {
    let member = &change.name;
    let is_drained = |object: &Object| {
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| {
            condition["type"] == MemberConditionType::Drained.as_str()
                && condition["status"] == "True"
        })
    };
    let (old, new) = (change.old.as_ref()?, change.new.as_ref()?);
    if is_drained(old) || !is_drained(new) || observed.may_lie(member) {
        return None;
    }
    let since = observed.oldest_belief(member);
    observed.sets().find_map(|set| {
        let (_, local) = observed.parts(set).find(|(name, _)| name == member)?;
        let least = *local.ready.since(since).min()?;
        let least = least.min(*local.requested.since(since).min()?);
        let is_ours = local.is_taken.since(since).all(|is_taken| !is_taken)
            && local.is_labeled.since(since).all(|is_labeled| *is_labeled);
        (least > 0 && is_ours).then(|| {
            format!(
                "{member} is said to be drained, and has run {least} replicas of {set} all the time"
            )
        })
    })
}
