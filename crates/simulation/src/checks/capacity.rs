//! What the controller says about capacities.

use sim_cluster::Change;

use super::observed::Observed;

/// F34: a cluster that has run some replicas all the time, as far as it may be believed, has a capacity for them.
pub(super) fn on_host(observed: &Observed, change: &Change) -> Option<String> {
    if !observed.is_set(change) {
        return None;
    }
    let (old, new) = (change.old.as_ref()?, change.new.as_ref()?);
    let capacity = |object: &sim_cluster::Object, name: &str| {
        let clusters = object["status"]["clusters"].as_array()?;
        clusters.iter().find(|cluster| cluster["name"] == name)?["capacity"].as_u64()
    };
    observed.parts(&change.name).find_map(|(member, part)| {
        let now = capacity(new, member)?;
        if capacity(old, member) == Some(now)
            || observed.may_lie_about_nodes(member)
            || observed.was_restored(member)
        {
            return None;
        }
        let since = observed.oldest_belief(member);
        // A list shows no pods of a ReplicaSet that was released, until they have their labels again.
        if part.is_labeled.since(since).any(|labeled| !labeled) {
            return None;
        }
        let ready = part.ready.since(since).min()?;
        // Pods without the label look as if they were gone.
        let seen = part.placed.since(since).min()?;
        let runs = *part.desired.since(since).min()?.min(ready).min(seen);
        (now < runs).then(|| {
            let name = &change.name;
            format!(
                "{name}: a capacity of {now} in {member}, where {runs} replicas ran all the time"
            )
        })
    })
}
