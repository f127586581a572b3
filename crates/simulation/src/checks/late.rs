//! A change of a local set that takes effect long after it was sent.

use sim_cluster::Change;

use super::{local_set::desired, observed::Observed};

/// F20: what was decided for another ReplicaSet, or for another spec, changes nothing.
pub(super) fn of_change(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    let name = &change.name;
    let (_, local) = observed.parts(name).find(|(other, _)| *other == member)?;
    let replicas = desired(change.new.as_ref());
    local.is_other_than_sent(replicas).then(|| {
        format!("{name} in {member} changed by a request that was sent for another generation")
    })
}
