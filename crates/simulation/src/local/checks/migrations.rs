//! Pods lose the finalizer once they have stopped, and nothing takes their place before (M11); migrations do not follow each other too soon
//! (M14).

use fedrs_api::{LocalRecord, ShutdownTimeout, ValidMethod};
use serde_json::Value;
use sim_cluster::Change;

use super::{
    observed::Observed,
    pod::{controller, has_guard, is_held, uid},
    pod_change::Kind,
    set::Set,
};
use crate::checks::{Invariant, Violation};

/// What is wrong with a write of a pod.
pub(super) fn of_pod(observed: &Observed, change: &Change) -> Option<Violation> {
    let policy = observed.policy.as_ref()?;
    let on_timeout = policy.shutdown?.on_timeout;
    let text = match Kind::of(change) {
        Kind::Remove if policy.method == ValidMethod::Manual => without_person(observed, change),
        Kind::Create if on_timeout == ShutdownTimeout::HandsUp => taken_place(observed, change),
        Kind::Other if on_timeout != ShutdownTimeout::Evict => unproved(observed, change),
        _ => None,
    };
    let invariant = Invariant::Proof;
    Some(Violation {
        invariant,
        text: text?,
    })
}

/// What is wrong with a write of a request: it says that a pod was not migrated which was.
pub(super) fn of_request(observed: &Observed, change: &Change) -> Option<Violation> {
    let is_cancelled = |object: &Value| object["status"]["phase"] == "Cancelled";
    let new = change.new.as_deref().filter(|new| is_cancelled(new))?;
    let old = change.old.as_deref().filter(|old| !is_cancelled(old))?;
    let status = &old["status"];
    let pod = observed.pods.get(status["podUid"].as_str()?)?;
    let set = (observed.sets.values()).find(|set| set.name == status["replicaSet"])?;
    let is_there = |spec: &super::set::Spec| !spec.is_deleted;
    let is_there = set.spec.since(observed.lag.since()).all(is_there);
    (is_there && pod.is_migrated()).then(|| Violation {
        invariant: Invariant::TrueStatus,
        text: format!(
            "{}: the migration of {} is said to be cancelled ({}), and it was evicted",
            change.name, pod.name, new["status"]["message"]
        ),
    })
}

/// A pod that may run loses the finalizer: its kubelet has not said that it has stopped, and its machine is not destroyed.
fn unproved(observed: &Observed, change: &Change) -> Option<String> {
    let old = change.old.as_deref()?;
    let is_let_go = change.new.as_deref().is_none_or(|new| !has_guard(new));
    let pod = observed.pods.get(&uid(old))?;
    if !is_let_go || !is_held(old) || observed.destroyed.contains(&pod.node) {
        return None;
    }
    // Nobody waits for a pod of a set that is gone.
    let set = controller(old).and_then(|(owner, _)| observed.sets.get(&owner))?;
    let is_wanted = |spec: &super::set::Spec| !spec.is_deleted;
    let is_wanted = set.spec.since(observed.lag.since()).all(is_wanted);
    is_wanted.then(|| format!("{} loses its finalizer, and may still run", pod.name))
}

/// A pod is moved that a person has to shut down (M7): its deadline has not passed, and its machine is not destroyed.
fn without_person(observed: &Observed, change: &Change) -> Option<String> {
    let old = change.old.as_deref()?;
    let (owner, _) = controller(old)?;
    let record = &observed.sets.get(&owner)?.record;
    let pod = observed.pods.get(&uid(old))?;
    let eviction = record.evictions.get(&uid(old))?;
    let is_move = eviction.begun && !eviction.forced && !record.updates.contains_key(&uid(old));
    let is_known = observed.destroyed.contains(&pod.node);
    let is_running = super::pod::is_live(old);
    (is_move && is_running && !is_known)
        .then(|| format!("{} is removed, and no person has shut it down", pod.name))
}

/// A pod is created though as many pods as there should be run, or may.
fn taken_place(observed: &Observed, change: &Change) -> Option<String> {
    let (owner, _) = controller(change.new.as_deref()?)?;
    let set = observed.sets.get(&owner)?;
    let since = observed.lag.since();
    let most = set.spec.since(since).map(|spec| spec.replicas).max();
    let most = most.unwrap_or_default() + observed.most_copies();
    let pods = observed.pods_of(&owner, set).filter(|(_, pod)| {
        let is_known = pod.is_created_by_set || pod.changed <= since;
        let may_run = pod.is_live || pod.is_held && !observed.destroyed.contains(&pod.node);
        may_run && is_known && pod.is_controlled_by(&owner)
    });
    let held = observed.pods_of(&owner, set);
    let held = held
        .filter(|(_, pod)| pod.is_held && pod.changed <= since)
        .count();
    let count = pods.count() + 1;
    (held > 0 && count > most).then(|| {
        let name = &set.name;
        format!("{name}: a pod is created, and {held} pods that are removed may still run: {count} of {most}")
    })
}

/// The eviction of a pod begins before its copy is available (M3), and its deadline has not passed.
pub(super) fn before_copy(
    observed: &Observed,
    (owner, set): (&str, &Set),
    record: &LocalRecord,
) -> Option<String> {
    let since = observed.lag.since();
    let min_ready = set.spec.now().min_ready;
    let is_available = |name: &str| {
        let mut pods = observed.pods_lately_of(owner, set, since);
        pods.any(|(_, pod)| pod.name == name && pod.may_be_available(since, min_ready))
    };
    let begun = record.evictions.iter();
    let mut begun = begun.filter(|(uid, eviction)| {
        let is_running = observed.pods.get(*uid).is_some_and(|pod| pod.is_live);
        eviction.begun && !eviction.forced && !set.has_begun(uid) && is_running
    });
    begun.find_map(|(_, eviction)| {
        let copy = &eviction.copy.as_ref()?.name;
        let name = &set.name;
        (!is_available(copy))
            .then(|| format!("{name}: a pod is removed, and its copy {copy} is not available"))
    })
}

/// Migrations of running pods begin too soon after another one.
pub(super) fn too_soon(observed: &Observed, set: &Set, record: &LocalRecord) -> Option<String> {
    let between = observed.policy.as_ref()?.min_between;
    let (before, now) = (set.record.migrated.any?, record.migrated.any?);
    let is_new = |uid: &&String| !set.has_begun(uid);
    let begun = record.evictions.iter();
    let mut begun = begun.filter(|(uid, eviction)| eviction.begun && is_new(uid));
    let is_forced = begun.any(|(_, eviction)| eviction.forced);
    let passed = now.duration_since(before);
    let is_too_soon = now != before && passed.as_secs() < i64::try_from(between.as_secs()).ok()?;
    (is_too_soon && !is_forced)
        .then(|| format!("{}: a pod migrates {passed:#} after another one", set.name))
}
