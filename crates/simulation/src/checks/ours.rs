//! What the controller may change: what belongs to a set, and what a set adopts (F29, F30).

use fedrs_api::{SetKind, annotations::POD_DELETION_COST};
use serde_json::Value;
use sim_cluster::{Change, Object, kinds};

use super::{
    local_set::{OTHER_FEDERATION, is_of_other_federation},
    observed::{Observed, of_users},
};
use crate::sim_federation::NAMESPACE;

/// The namespace of a set that a trial creates: nothing but its owner is checked.
pub(crate) const GUESTS: &str = "guests";
/// The prefix of labels and annotations of fedrs.
const PREFIX: &str = "fedrs.dev/";

/// Checks a change of the host.
pub(super) fn on_host(change: &Change) -> Option<String> {
    let what = format!("{} {} on the host", change.kind.kind, change.name);
    match change.kind.plural.as_str() {
        "events" | "leases" | "memberclusters" | "secrets" | "controllerrevisions" => None,
        "federatedreplicasets" | "federateddeployments" | "maintenances" | "availabilitysets" => {
            let (Some(old), Some(new)) = (&change.old, &change.new) else {
                // The last finalizer of a deleted object was removed.
                return None;
            };
            let is_same = old["spec"] == new["spec"]
                && old["metadata"]["labels"] == new["metadata"]["labels"]
                && of_users(old) == of_users(new);
            (!is_same).then(|| format!("{what}: the controller changed more than the status"))
        }
        "namespaces" if change.old.is_none() => None,
        _ => Some(format!("{what}: not for the controller to change")),
    }
}

/// Checks a change of a member.
pub(super) fn in_member(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    let what = format!("{} {} in {member}", change.kind.kind, change.name);
    if change.kind == *kinds::NAMESPACES && change.old.is_none() {
        return None;
    }
    if change.kind == *kinds::REPLICA_SETS && is_of_deployment(observed, change) {
        return changed_more_than_labels(&what, change);
    }
    if [&*kinds::REPLICA_SETS, &*kinds::DEPLOYMENTS].contains(&&change.kind) {
        let is_known = observed.is_local_set(change) && change.namespace == NAMESPACE;
        if !is_known && change.namespace != GUESTS {
            return Some(format!("{what}: no set has its name"));
        }
        let owner = |set| controller_of(set).or_else(|| other_federation(set));
        let owner = change.old.as_ref().and_then(owner);
        return owner.map(|owner| format!("{what}: belongs to {owner}"));
    }
    if change.kind == *kinds::PODS {
        return changed_more_than_labels(&what, change);
    }
    Some(format!("{what}: not for the controller to change"))
}

fn changed_more_than_labels(what: &str, change: &Change) -> Option<String> {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return Some(format!("{what}: created or deleted"));
    };
    (others(old) != others(new)).then(|| format!("{what}: changed in more than fedrs may change"))
}

/// Whether a ReplicaSet is of the local Deployment of a set.
fn is_of_deployment(observed: &Observed, change: &Change) -> bool {
    let set = change.old.as_ref().or(change.new.as_ref());
    let owner = set.map(|set| &set["metadata"]["ownerReferences"][0]);
    let owner = owner.filter(|owner| owner["kind"] == "Deployment");
    let owner = owner.and_then(|owner| owner["name"].as_str());
    owner.is_some_and(|name| {
        observed.has_set(name) && observed.kind(name) == SetKind::FederatedDeployment
    })
}

/// The other federation that an object belongs to.
fn other_federation(object: &Object) -> Option<String> {
    is_of_other_federation(object).then(|| format!("the federation {OTHER_FEDERATION}"))
}

/// The controller among the owners of an object.
fn controller_of(object: &Object) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    let text = |field: &str| controller[field].as_str().unwrap_or_default().to_owned();
    Some(format!("{} {}", text("kind"), text("name")))
}

/// An object without what fedrs may change in it: its own labels and annotations, and which pods go first.
fn others(object: &Object) -> Value {
    let mut object = Value::clone(object);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        for field in ["labels", "annotations"] {
            let texts = metadata.get_mut(field).and_then(Value::as_object_mut);
            let is_empty = texts.is_none_or(|texts| {
                texts.retain(|key, _| !key.starts_with(PREFIX) && key != POD_DELETION_COST);
                texts.is_empty()
            });
            if is_empty {
                metadata.remove(field);
            }
        }
    }
    object
}
