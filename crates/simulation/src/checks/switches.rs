//! What users have switched off: changes of a set that is paused or invalid (F4), and more replicas in a member that is
//! cordoned, drained, or does not take the namespace.

use sim_cluster::{Change, Object};
use tokio::time::Duration;

use super::{
    local_set::desired,
    observed::{FrsState, Observed},
};

/// Calls that a repair makes before its write: it waits for a slot, reads who has changed the set, and reads the set.
const CALLS: u32 = 3;

/// Checks a change of a local set that was not sent long before.
pub(super) fn of_change(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    let (name, decided_before) = (&change.name, observed.config().call_timeout * CALLS);
    let is_off = |state: &FrsState| match state {
        FrsState::Spec(Some(set)) => set.frs.paused,
        FrsState::Spec(None) => true,
        FrsState::Absent | FrsState::Deleted(_) => false,
    };
    if observed.states_within(name, decided_before).all(is_off) && !is_pause(change) {
        return Some(format!(
            "{name} in {member} is changed, but it is paused or invalid"
        ));
    }
    grows_closed(observed, member, change, decided_before)
}

/// Whether all that is changed is that the member's own controller stops rolling: a LocalReplicaSet has nothing lent any more.
fn is_pause(change: &Change) -> bool {
    let others = |object: &Object| {
        let mut spec = object["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("paused");
            spec.remove("deploymentStrategy");
        }
        spec
    };
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return false;
    };
    let strategy = &new["spec"]["deploymentStrategy"];
    let is_taken_back =
        *strategy == old["spec"]["deploymentStrategy"] || strategy["maxUnavailable"] == 0;
    new["spec"]["paused"] == true && is_taken_back && others(old) == others(new)
}

/// More replicas in a member that takes none.
fn grows_closed(
    observed: &Observed,
    member: &str,
    change: &Change,
    decided_before: Duration,
) -> Option<String> {
    let (name, now) = (&change.name, desired(change.new.as_ref()));
    let (_, local) = observed.parts(name).find(|(other, _)| *other == member)?;
    let since = observed.host_belief(decided_before);
    let since = since.min(observed.oldest_belief(member) - decided_before);
    let mut had = local
        .desired
        .since(since)
        .chain(local.requested.since(since));
    let grows = had.all(|had| now > *had);
    (grows && observed.is_closed_since(member, since))
        .then(|| format!("{name} in {member} grows to {now}, but the member is closed to it"))
}
