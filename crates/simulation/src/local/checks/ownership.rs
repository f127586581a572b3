//! Nothing is written but what belongs to a set (C6, C7).

use sim_cluster::Change;

use super::{
    observed::Observed,
    pod::{controller, has_guard, text},
};
use crate::checks::{Invariant, Violation};

/// Kinds that belong to no set. The API server counts a pod in the status of a ResourceQuota when it is created.
const OTHERS: [&str; 4] = ["leases", "events", "namespaces", "resourcequotas"];

/// What is wrong with a write, whatever it changes.
pub(super) fn of_write(observed: &Observed, change: &Change) -> Option<Violation> {
    let kind = &*change.kind.plural;
    if OTHERS.contains(&kind) {
        return None;
    }
    let text = if kind == "localreplicasets" {
        of_set(change)
    } else if kind == "migrationrequests" {
        of_request(change)
    } else if loses_finalizer(change) {
        return None;
    } else {
        of_owned(observed, change)
    };
    let text = format!("{} {}: {}", change.kind.kind, change.name, text?);
    let invariant = Invariant::OnlyOurs;
    Some(Violation { invariant, text })
}

/// Of a set, only the status is written.
fn of_set(change: &Change) -> Option<String> {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return Some("is created or deleted".to_owned());
    };
    let fields = ["labels", "annotations", "finalizers", "ownerReferences"];
    let metadata = |field: &&str| old["metadata"][*field] != new["metadata"][*field];
    let is_other = old["spec"] != new["spec"] || fields.iter().any(metadata);
    is_other.then(|| "is changed beside its status".to_owned())
}

/// A request for a migration is made for a set, or its status is written.
fn of_request(change: &Change) -> Option<String> {
    let Some(new) = &change.new else {
        return Some("is deleted".to_owned());
    };
    let is_ours = controller(new).is_some_and(|(_, kind)| kind == "LocalReplicaSet");
    let is_other = match &change.old {
        Some(old) => old["spec"] != new["spec"],
        None => !is_ours,
    };
    is_other.then(|| "is changed beside its status, or made for nobody".to_owned())
}

/// Whether a pod that is being removed, or that belongs to nobody, loses the finalizer of shutdowns.
fn loses_finalizer(change: &Change) -> bool {
    let Some(old) = &change.old else {
        return false;
    };
    let is_removed = !old["metadata"]["deletionTimestamp"].is_null();
    let loses = change.new.as_ref().is_none_or(|new| !has_guard(new));
    change.kind.plural == "pods"
        && has_guard(old)
        && loses
        && (is_removed || controller(old).is_none())
}

/// What belongs to a set that exists, and may be changed.
fn of_owned(observed: &Observed, change: &Change) -> Option<String> {
    let controller =
        |object: Option<&sim_cluster::Object>| object.and_then(|object| controller(object));
    let (old, new) = (
        controller(change.old.as_ref()),
        controller(change.new.as_ref()),
    );
    let released = || {
        let uid = &change.old.as_ref()?["metadata"]["uid"];
        let pod = observed.pods.get(uid.as_str()?)?;
        pod.released_since(observed.lag.since())
    };
    let Some((uid, kind)) = old.or(new).or_else(released) else {
        // A set that was deleted without its pods leaves its PodDisruptionBudget to the next one of its name.
        if change.kind.plural == "poddisruptionbudgets" && change.name.starts_with("lrs-") {
            return None;
        }
        return Some("belongs to nobody".to_owned());
    };
    if kind != "LocalReplicaSet" {
        return Some(format!("belongs to a {kind}"));
    }
    let Some(set) = observed.sets.get(&uid) else {
        return Some("belongs to a set that never was".to_owned());
    };
    let since = observed.lag.since();
    if !set.spec.since(since).any(|spec| !spec.is_deleted) {
        return Some("belongs to a set that is being deleted".to_owned());
    }
    let is_pod = change.kind.plural == "pods";
    if is_pod && !set.spec.since(since).any(|spec| !spec.is_stopped) {
        return Some("belongs to a set that is stopped".to_owned());
    }
    let is_matching = change
        .new
        .as_ref()
        .or(change.old.as_ref())
        .is_some_and(|object| text(&object["metadata"]["name"]).contains(&set.name));
    (!is_matching && !is_pod).then(|| format!("is not named after {}", set.name))
}
