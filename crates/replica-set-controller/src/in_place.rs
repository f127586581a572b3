//! An update in place, step by step (L12).
//!
//! ```text
//! gate open -> CloseGate -> not ready: out of endpoints -> Patch -> new container ids: restarted -> OpenGate -> ready
//! ```
//!
//! A pod without the gate is patched at once, and so is one in which nothing restarts. Whether the kubelet has
//! restarted a container is seen by the container's id: the tags of two images can have one image id.

use std::collections::BTreeMap;

use fedrs_api::UpdateRecord;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    change::{Change, Patch},
    plan::{Action, PodWait, RemoveReason},
    pod::{Gate, InPlace, Pod},
};

/// What a pod carries, in an annotation, since it was patched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceRecord {
    /// When it was patched.
    pub at: Timestamp,
    /// The containers to be restarted, with the ids that they had before.
    pub containers: BTreeMap<String, Option<String>>,
}

/// A container as the status of a pod shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    /// The name.
    pub name: &'a str,
    /// The id; `None` if it has not been started.
    pub id: Option<&'a str>,
}

impl InPlaceRecord {
    /// The record to write together with `patch`. Write it only to the version of the pod that has these `containers`.
    #[must_use]
    pub fn new(patch: &Patch, containers: &[Container<'_>], at: Timestamp) -> Self {
        let id_of = |name: &str| {
            let container = containers.iter().find(|container| container.name == name);
            container
                .and_then(|container| container.id)
                .map(str::to_owned)
        };
        let restarts = patch.restarts();
        Self {
            at,
            containers: restarts
                .map(|name| (name.to_owned(), id_of(name)))
                .collect(),
        }
    }

    /// Whether the kubelet has restarted all of them. `is_observed`: the status is about the current generation of the pod, if it
    /// says so at all. So a container that crashed just before the patch is not taken for restarted.
    #[must_use]
    pub fn state(&self, containers: &[Container<'_>], is_observed: bool) -> InPlace {
        let is_restarted = |(name, before): (&String, &Option<String>)| {
            let container = containers.iter().find(|container| container.name == name);
            let id = container.and_then(|container| container.id);
            id.is_some() && id != before.as_deref()
        };
        if self.containers.is_empty() || is_observed && self.containers.iter().all(is_restarted) {
            InPlace::Settled
        } else {
            InPlace::Restarting { since: self.at }
        }
    }
}

/// The next step of an update that has begun.
pub(crate) enum NextStep<'a> {
    Act(Action<'a>),
    Wait(PodWait),
    /// The pod has to be recreated, which was not recorded.
    RecordRecreation,
}

/// The next step of an update that is recorded like this.
pub(crate) fn next_step<'a>(
    pod: &'a Pod<'a>,
    change: Option<&'a Change>,
    recorded: &UpdateRecord,
) -> NextStep<'a> {
    let patch = match change {
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
            return NextStep::Act(Action::Remove { pod, reason });
        }
    };
    let restarts = patch.restarts().next().is_some();
    match pod.gate {
        Gate::Open if restarts => NextStep::Act(Action::CloseGate { pod }),
        Gate::Closed if restarts && pod.ready_since().is_some() => {
            NextStep::Wait(PodWait::OutOfEndpoints)
        }
        _ => NextStep::Act(Action::Patch { pod, patch }),
    }
}

/// What a pod without an update needs: a new one starts with the gate open, and one that was updated gets it open again.
pub(crate) fn settle<'a>(pod: &'a Pod<'a>) -> Option<NextStep<'a>> {
    match (pod.gate, pod.in_place) {
        (_, InPlace::Restarting { .. }) => Some(NextStep::Wait(PodWait::Restart)),
        (Gate::Unset | Gate::Closed, InPlace::Settled) => {
            Some(NextStep::Act(Action::OpenGate { pod }))
        }
        (Gate::Absent | Gate::Open, InPlace::Settled) => None,
    }
}
