//! Changes of pods: only what has begun makes available pods unavailable (L14), no faster than the speed (L15), and the number of pods is
//! what a user wants (L13). Evictions through the API server share the budget (L20).

use serde_json::Value;
use sim_cluster::Change;
use tokio::time::Instant;

use super::{
    observed::Observed,
    pod::{controller, uid},
    pod_change::{Kind, is_start},
    set::Set,
};
use crate::checks::{Invariant, Violation};

/// What is wrong with a write of a pod. Counts the updates that begin to change their pods.
pub(super) fn of_pod(observed: &Observed, change: &Change) -> Option<Violation> {
    let object = change.new.as_ref().or(change.old.as_ref())?;
    let (owner, _) = controller(change.old.as_ref().unwrap_or(object)).or(controller(object))?;
    let set = observed.sets.get(&owner)?;
    let pod = uid(object);
    let found = match Kind::of(change) {
        Kind::Create => surplus(observed, &owner, set),
        Kind::Remove if set.has_begun(&pod) => None,
        // A copy is no replica.
        Kind::Remove if is_copy(set, object) => None,
        // A pod without a node takes nothing away: another one in its place may find a node.
        Kind::Remove
            if observed
                .pods
                .get(&pod)
                .is_some_and(|pod| pod.node.is_empty()) =>
        {
            None
        }
        Kind::Remove => dip(observed, (&owner, set), &pod),
        Kind::CloseGate | Kind::Update if set.record.updates.contains_key(&pod) => None,
        Kind::CloseGate | Kind::Update => {
            let facts = observed.pods.get(&pod)?;
            facts.is_ready_now().then(|| {
                let name = &facts.name;
                format!("{name} is updated, which was not recorded before")
            })
        }
        Kind::Other => None,
    };
    if let Some(text) = found {
        let text = format!("{}: {text}", set.name);
        let invariant = Invariant::Budget;
        return Some(Violation { invariant, text });
    }
    let text = too_fast(set, &pod, change)?;
    let invariant = Invariant::Speed;
    let text = format!("{}: {text}", set.name);
    Some(Violation { invariant, text })
}

/// Whether the pod is a copy that has not taken the place of the one that it was made for.
fn is_copy(set: &Set, object: &Value) -> bool {
    let mut evictions = set.record.evictions.values();
    evictions.any(|eviction| {
        let copy = eviction.copy.as_ref();
        !eviction.begun && copy.is_some_and(|copy| object["metadata"]["name"] == *copy.name)
    })
}

/// More pods than a user wants are created (L13).
fn surplus(observed: &Observed, owner: &str, set: &Set) -> Option<String> {
    let since = observed.lag.since();
    let most = set.spec.since(since).map(|spec| spec.replicas).max();
    let most = most.unwrap_or_default() + observed.most_copies();
    let pods = observed.pods_of(owner, set);
    // Those that have just come to the set otherwise may not be known.
    let known = pods.filter(|(_, pod)| {
        pod.is_live
            && pod.is_controlled_by(owner)
            && (pod.is_created_by_set || pod.changed <= since)
    });
    let count = known.count() + 1;
    (count > most).then(|| format!("{count} pods are created, of {most}"))
}

/// A pod is removed that is not one too many (L13), and whose removal was not recorded.
fn dip(observed: &Observed, (owner, set): (&str, &Set), removed: &str) -> Option<String> {
    let since = observed.lag.since();
    let least = set.spec.since(since).map(|spec| spec.replicas).min();
    let least = least.unwrap_or_default();
    // Those that somebody has just taken out of the set may still be counted. One that the controller has released is not among them.
    let pods = observed.pods_lately_of(owner, set, since);
    let others = pods.filter(|(uid, pod)| {
        let was_live = pod.is_live || pod.changed >= since && !pod.is_removed_by_set;
        *uid != removed && was_live
    });
    let count = others.count();
    (count < least).then(|| {
        format!("a pod is removed that is not one too many, which was not recorded: {count} are left of {least}")
    })
}

/// More updates begin than the speed allows (L15): in any time of this length, exactly.
fn too_fast(set: &Set, pod: &str, change: &Change) -> Option<String> {
    if !is_start(set, pod, change) {
        return None;
    }
    let speed = set.spec.now().speed?;
    let now = Instant::now();
    let recorded = set.recorded.get(pod).copied().unwrap_or(now);
    // What was recorded before the speed was changed is carried out as it was decided.
    if recorded <= set.speed_since {
        return None;
    }
    let others = set.starts.iter().filter(|(at, recorded)| {
        *recorded > set.speed_since && now.duration_since(*at) < speed.min_delay
    });
    let count = others.count() + 1;
    (count > speed.portion).then(|| {
        let (portion, delay) = (speed.portion, speed.min_delay.as_secs());
        format!("{count} updates begin within {delay} s, of {portion}")
    })
}

/// What is wrong with an eviction that the API server has granted to somebody, of a pod that was ready (L20).
pub(in crate::local) fn of_eviction(observed: &Observed, pod: &str) -> Option<Violation> {
    let facts = observed.pods.get(pod)?;
    let (owner, _) = facts.controller.as_ref()?;
    let set = observed.sets.get(owner)?;
    let budgets = observed.budgets.values();
    let mut ours = budgets.filter(|(of, _)| of.as_ref() == Some(owner));
    let (_, written) = ours.next()?;
    // What has failed since the PodDisruptionBudget was written is not known to it.
    let since = observed.lag.since().min(observed.lag.before(*written));
    // It counts pods of others that its selector matches, too: they come without the controller.
    let mut matching = observed.pods.values();
    let is_strange = |pod: &super::pod::Pod| {
        let is_ours = pod.is_controlled_by(owner) && pod.is_created_by_set;
        pod.labels["app"] == set.name && !is_ours && (pod.is_live || pod.changed >= since)
    };
    if matching.any(is_strange) {
        return None;
    }
    let pods = observed.pods_of(owner, set);
    let available = pods.filter(|(uid, facts)| {
        // The API server counts pods that are ready.
        *uid != pod
            && (facts.is_removed_by_others() || !set.has_begun(uid))
            && facts.may_be_available(since, std::time::Duration::ZERO)
    });
    let available = available.count();
    let is_allowed =
        |spec: &super::set::Spec| spec.replicas.saturating_sub(available) <= spec.limit;
    if set.spec.since(since).any(is_allowed) {
        return None;
    }
    let spec = set.spec.now();
    let text = format!(
        "{}: an eviction is granted, and {} of {} pods are unavailable; {} may be",
        set.name,
        spec.replicas.saturating_sub(available),
        spec.replicas,
        spec.limit
    );
    let invariant = Invariant::Budget;
    Some(Violation { invariant, text })
}
