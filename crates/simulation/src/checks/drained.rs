//! What the controller says about drains.

use fedrs_api::MemberConditionType;
use sim_cluster::{Change, Object};

use super::observed::Observed;

/// A member that has been running replicas all the time, as far as it may be believed, is not drained.
pub(super) fn on_host(observed: &Observed, change: &Change) -> Option<String> {
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
    if change.kind.plural != "memberclusters" || is_drained(old) || !is_drained(new) {
        return None;
    }
    if observed.may_lie(member) {
        return None;
    }
    let since = observed.oldest_belief(member);
    observed.sets().find_map(|set| {
        let (_, local) = observed.parts(set).find(|(name, _)| name == member)?;
        let least = *local.ready.since(since).min()?;
        let least = least.min(*local.requested.since(since).min()?);
        let is_ours = local.is_taken.since(since).all(|is_taken| !is_taken);
        (least > 0 && is_ours).then(|| {
            format!(
                "{member} is said to be drained, and has run {least} replicas of {set} all the time"
            )
        })
    })
}
