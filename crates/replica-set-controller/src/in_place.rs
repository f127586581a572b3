//! An update in place, step by step (L12). What follows if CPU or memory change is in [`resize`](crate::resize).
//!
//! ```text
//! gate open -> CloseGate -> not ready: out of endpoints -> Patch -> new container ids: restarted -> OpenGate -> ready
//! ```
//!
//! With `spec.drainSeconds`, a ready pod stays out of endpoints for so long before it is patched: see [`leave`](crate::leave).
//!
//! A pod without the gate is patched at once, and so is one in which nothing restarts. Whether the kubelet has
//! restarted a container is seen by the container's id: the tags of two images can have one image id.

use std::collections::BTreeMap;

use fedrs_api::UpdateRecord;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    change::{Change, Patch},
    leave::{self, NextStep},
    plan::{Action, PodWait, RemoveReason},
    pod::{Gate, InPlace, Pod},
    resize::{self, Container, ContainerResize, Resize, ResizeStatus, ResizeWait},
    set::Set,
    time::Next,
};

/// What a pod carries, in an annotation, since it was patched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceRecord {
    /// When it was patched.
    pub at: Timestamp,
    /// The containers to be restarted, with the ids that they had before.
    pub containers: BTreeMap<String, Option<String>>,
    /// The resources that containers get after that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resizes: BTreeMap<String, ContainerResize>,
    /// The generation of the pod that they are changed in: if a later one has others, somebody else has changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Since when its gate was closed so that clients left it: they need not do that again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<Timestamp>,
}

impl InPlaceRecord {
    /// The record to write together with `patch`. Write it only to the version of the pod that has these `containers`, and this
    /// generation.
    #[must_use]
    pub fn new(
        patch: &Patch,
        (containers, generation): (&[Container<'_>], Option<i64>),
        at: Timestamp,
    ) -> Self {
        let id_of = |name: &str| {
            let container = containers.iter().find(|container| container.name == name);
            container
                .and_then(|container| container.id)
                .map(str::to_owned)
        };
        let restarts = patch.new_images();
        let generation = generation.filter(|_| !patch.resizes.is_empty());
        Self {
            at,
            containers: restarts
                .map(|name| (name.to_owned(), id_of(name)))
                .collect(),
            resizes: patch.resizes.clone(),
            generation: generation.map(|before| before + i64::from(patch.changes_spec())),
            drained: None,
        }
    }

    /// How far the resize is.
    #[must_use]
    pub fn resize(&self, pod: &ResizeStatus<'_>) -> Resize {
        resize::state(&self.resizes, (self.at, self.generation), pod)
    }

    /// Whether the kubelet has restarted all of them, now that the resize is so far. `is_observed`: the status is about the current
    /// generation of the pod, if it says so at all. So a container that crashed just before the patch is not taken for restarted.
    #[must_use]
    pub fn state(
        &self,
        containers: &[Container<'_>],
        is_observed: bool,
        resize: Resize,
    ) -> InPlace {
        let is_restarted = |(name, before): (&String, &Option<String>)| {
            let container = containers.iter().find(|container| container.name == name);
            let id = container.and_then(|container| container.id);
            id.is_some() && id != before.as_deref()
        };
        // A container that a resize restarts has its new resources after that.
        let is_resized = matches!(resize, Resize::Settled | Resize::Infeasible)
            || !self.resizes.values().any(|resize| resize.restarts);
        let has_new_images =
            self.containers.is_empty() || is_observed && self.containers.iter().all(is_restarted);
        if is_resized && has_new_images {
            InPlace::Settled
        } else {
            InPlace::Restarting { since: self.at }
        }
    }
}

/// The next step of an update that is recorded like this.
pub(crate) fn next_step<'a>(
    set: &Set<'a>,
    pod: &'a Pod<'a>,
    recorded: &UpdateRecord,
    next: &mut Next,
    now: Timestamp,
) -> NextStep<'a> {
    let patch = match set.change(pod) {
        Some(Change::InPlace(patch)) => patch,
        recreated => {
            if recorded.recreate.is_none() {
                return NextStep::RecordRecreation;
            }
            let fields = match recreated {
                Some(Change::Recreate(fields)) => fields,
                _ => &[][..],
            };
            let reason = RemoveReason::Recreated { fields };
            return leave::remove(set, pod, reason, next, now);
        }
    };
    let restarts = patch.restarts().next().is_some();
    let leaving = restarts.then(|| leave::before(set, pod, next, now));
    if let Some(step) = leaving.flatten() {
        return step;
    }
    match pod.gate {
        Gate::Open if restarts => NextStep::Act(Action::CloseGate { pod }),
        Gate::Closed if restarts && pod.ready_since().is_some() => {
            NextStep::Wait(PodWait::OutOfEndpoints)
        }
        _ => NextStep::Act(Action::Patch { pod, patch }),
    }
}

/// What a pod without an update needs: a new one starts with the gate open, one that was updated gets the resources that it was
/// patched for, and the gate open again.
pub(crate) fn settle<'a>(pod: &'a Pod<'a>) -> Option<NextStep<'a>> {
    match (pod.gate, pod.in_place, pod.resize) {
        (_, _, Resize::Due { .. }) => Some(NextStep::Act(Action::Resize { pod })),
        (_, InPlace::Restarting { .. }, resize) => {
            let wait = match resize {
                Resize::Pending { wait, .. } if wait != ResizeWait::Kubelet => {
                    PodWait::Resize(wait)
                }
                _ => PodWait::Restart,
            };
            Some(NextStep::Wait(wait))
        }
        (Gate::Unset | Gate::Closed | Gate::Draining { .. }, InPlace::Settled, _) => {
            Some(NextStep::Act(Action::OpenGate { pod }))
        }
        (_, InPlace::Settled, Resize::Pending { wait, .. }) => {
            Some(NextStep::Wait(PodWait::Resize(wait)))
        }
        (Gate::Absent | Gate::Open, InPlace::Settled, Resize::Settled | Resize::Infeasible) => None,
    }
}
