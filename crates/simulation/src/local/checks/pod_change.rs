//! How writes of the controller change pods.

use fedrs_api::names;
use serde_json::Value;
use sim_cluster::Change;

use super::{
    pod::{has_condition, is_live, revision, uid},
    set::Set,
};

/// How a write of the controller changes a pod.
pub(super) enum Kind {
    Create,
    Remove,
    CloseGate,
    Update,
    Other,
}

impl Kind {
    pub(super) fn of(change: &Change) -> Self {
        match (change.old.as_deref(), change.new.as_deref()) {
            (None, _) => Self::Create,
            (Some(old), None) if is_live(old) => Self::Remove,
            (Some(old), Some(new)) if is_live(old) && !is_live(new) => Self::Remove,
            (Some(old), Some(new)) if is_gate_open(old) && !is_gate_open(new) => Self::CloseGate,
            (Some(old), Some(new)) if revision(old) != revision(new) => Self::Update,
            _ => Self::Other,
        }
    }
}

fn is_gate_open(pod: &Value) -> bool {
    has_condition(pod, names::IN_PLACE_UPDATE)
}

/// The pod that this change removes.
pub(super) fn removes(change: &Change) -> Option<String> {
    let removed = change.old.as_ref()?;
    (change.kind.plural == "pods" && matches!(Kind::of(change), Kind::Remove)).then(|| uid(removed))
}

/// Whether an update of the pod begins with this change, for the first time since it was recorded.
pub(super) fn is_start(set: &Set, pod: &str, change: &Change) -> bool {
    let is_evicted = (set.record.evictions.get(pod)).is_some_and(|eviction| eviction.begun);
    let is_update = matches!(
        Kind::of(change),
        Kind::Remove | Kind::CloseGate | Kind::Update
    );
    is_update && !is_evicted && set.record.updates.contains_key(pod) && !set.started.contains(pod)
}
