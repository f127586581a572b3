//! What a set leaves behind when its finalizer is removed (F5): nothing with labels of fedrs, where the controller could see it.

use std::collections::BTreeMap;

use federation_controller::clock::SLEW_DIVISOR;
use sim_cluster::{Api, Change, Object};
use tokio::time::Duration;

use super::{
    local_set::{belongs_to_others, is_labeled},
    observed::Observed,
};
use crate::{set_kind, sim_federation::NAMESPACE};

/// The longest pause after lists that failed, and the next list.
const LIST_PAUSE: Duration = Duration::from_secs(45);

/// Checks a change of the host by which the controller may remove the finalizer of a deleted set.
pub(crate) fn of_release(
    observed: &Observed,
    members: &BTreeMap<String, Api>,
    change: &Change,
) -> Option<String> {
    let is_release = observed.is_set(change) && change.new.is_none();
    let name = &change.name;
    let since = observed.deleted_since(name).filter(|_| is_release)?;
    // What cannot be reached by then stays behind, and the controller says so.
    let deadline = observed.config().deletion_deadline;
    let earliest = since.checked_sub(deadline).unwrap_or(since);
    // The controller's clock may be ahead: then its time passes faster.
    let passed = since.elapsed().mul_f64(1.0 + 1.0 / f64::from(SLEW_DIVISOR));
    if passed >= deadline || observed.has_host_clock_jumped_since(earliest) {
        return None;
    }
    let is_left = |set: &Object| {
        let is_leaving = set["metadata"].get("deletionTimestamp").is_some();
        is_labeled(set) && !is_leaving && !belongs_to_others(set)
    };
    let mut known = observed.parts(name).filter(|(member, local)| {
        observed.is_known_since(member, since)
            // Until it is listed again nothing is known of it.
            && !observed.has_lied_within(member, LIST_PAUSE)
            && !local.has_in_flight()
            // What another controller gives back is seen a moment later.
            && !local.is_taken.since(observed.oldest_belief(member)).any(|is_taken| *is_taken)
    });
    known.find_map(|(member, _)| {
        let kind = set_kind::local(observed.kind(name));
        let set = members[member].get(kind, NAMESPACE, name);
        let set = set.ok().filter(is_left)?;
        let labels = &set["metadata"]["labels"];
        Some(format!(
            "the finalizer of {name} is removed, but {member} has its ReplicaSet with {labels}"
        ))
    })
}
