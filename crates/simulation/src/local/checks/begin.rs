//! What begins, when it is stored in the status of a set: within the budget (L14, L20), and not while updates are switched off (L8, C4).
//!
//! The status is written at the version of the set that it was decided from. So the spec is known exactly; pods may have changed
//! since.

use std::collections::BTreeSet;

use fedrs_api::LocalRecord;
use sim_cluster::Change;

use super::{
    migrations::{before_copy, too_soon},
    observed::Observed,
    pod::uid,
    set::{Set, has_begun, record},
};
use crate::checks::{Invariant, Violation};

pub(super) fn of_status(observed: &Observed, change: &Change) -> Option<Violation> {
    let new = change.new.as_deref()?;
    let uid = uid(new);
    let set = observed.sets.get(&uid)?;
    let record = record(new)?;
    let begin = begins(set, &record);
    if let Some(text) = too_soon(observed, set, &record) {
        let invariant = Invariant::Speed;
        return Some(Violation { invariant, text });
    }
    if begin.is_empty() {
        return None;
    }
    if let Some(text) = before_copy(observed, (&uid, set), &record) {
        let invariant = Invariant::Budget;
        return Some(Violation { invariant, text });
    }
    let name = &set.name;
    let updates: Vec<_> = record
        .updates
        .keys()
        .filter(|pod| !set.record.updates.contains_key(*pod))
        .collect();
    let spec = set.spec.now();
    // That nothing takes the place of a pod which others have removed is recorded, too.
    let is_live = |uid: &&&str| observed.pods.get(**uid).is_some_and(|pod| pod.is_live);
    let count = begin.iter().filter(is_live).count();
    let is_still = count > 0 && (spec.is_stopped || spec.is_deleted);
    if (spec.is_paused && !updates.is_empty()) || is_still {
        return Some(Violation {
            invariant: Invariant::Switches,
            text: format!("{name}: {count} updates or evictions begin, which are switched off"),
        });
    }
    let since = observed.lag.since();
    let pods: Vec<_> = observed.pods_lately_of(&uid, set, since).collect();
    // A pod that is not available uses the budget anyway (L22).
    let is_forced = |pod: &str| (record.evictions.get(pod)).is_some_and(|of| of.forced);
    let costs = pods.iter().any(|(pod, facts)| {
        let begins = begin.contains(pod) && !is_forced(pod);
        begins && facts.is_available(since, spec.min_ready)
    });
    let available = pods
        .iter()
        .filter(|(pod, _)| !has_begun(&record, pod))
        .filter(|(_, facts)| facts.may_be_available(since, spec.min_ready))
        .count();
    let unavailable = spec.replicas.saturating_sub(available);
    (costs && unavailable > spec.limit).then(|| Violation {
        invariant: Invariant::Budget,
        text: format!(
            "{name}: {} updates or evictions begin, and {unavailable} of {} pods are unavailable; {} may be",
            begin.len(),
            spec.replicas,
            spec.limit
        ),
    })
}

/// The pods whose updates or evictions begin with this record.
fn begins<'r>(set: &Set, record: &'r LocalRecord) -> BTreeSet<&'r str> {
    let uids = record.updates.keys().chain(record.evictions.keys());
    uids.map(String::as_str)
        .filter(|uid| has_begun(record, uid) && !set.has_begun(uid))
        .collect()
}
