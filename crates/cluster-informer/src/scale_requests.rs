//! Requests to scale local ReplicaSets that may still be carried out, although no response says so.
//!
//! A request is closed by its response, by a state of the object with a higher generation, and after the longest time for
//! which an API server works on one. It outlives what is known of the member's objects.

use std::collections::BTreeMap;

use fedrs_api::WorkloadKey;
use jiff::Timestamp;
use reflector::Uid;

use crate::workload::WorkloadState;

/// One request to scale, or several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScaleRequest {
    /// The object that it is for.
    pub(crate) uid: Uid,
    /// The generation that it requires: it fails if the object has another one.
    pub(crate) generation: i64,
    /// The fewest `spec.replicas` that it sets.
    pub(crate) lowest: u32,
    /// The most `spec.replicas` that it sets.
    pub(crate) highest: u32,
    /// The time from which on no API server can still carry it out.
    pub(crate) until: Timestamp,
}

impl ScaleRequest {
    /// Whether it may still be carried out.
    fn is_open(&self, state: &WorkloadState, now: Timestamp) -> bool {
        self.generation == state.generation && now < self.until && self.uid == state.id()
    }
}

/// The requests of a member, or of one of its namespaces.
#[derive(Debug, Default)]
pub(crate) struct ScaleRequests(BTreeMap<WorkloadKey, Requests>);

#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    /// The latest one until its result is known.
    latest: Option<ScaleRequest>,
    /// What earlier ones may still do.
    earlier: Option<ScaleRequest>,
}

impl Requests {
    fn iter(self) -> impl Iterator<Item = ScaleRequest> {
        [self.latest, self.earlier].into_iter().flatten()
    }

    fn retain(&mut self, keep: impl Fn(&ScaleRequest) -> bool) {
        for request in [&mut self.latest, &mut self.earlier] {
            request.take_if(|request| !keep(request));
        }
    }

    fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }
}

impl ScaleRequests {
    /// A request is about to be sent at `now`.
    pub(crate) fn send(&mut self, key: &WorkloadKey, request: ScaleRequest, now: Timestamp) {
        self.0.retain(|_, requests| {
            requests.retain(|request| now < request.until);
            !requests.is_empty()
        });
        let requests = self.0.entry(key.clone()).or_default();
        let same = |other: &ScaleRequest| {
            other.uid == request.uid && other.generation == request.generation
        };
        let earlier = requests.iter().filter(same);
        *requests = Requests {
            latest: Some(request),
            earlier: earlier.reduce(|one, other| ScaleRequest {
                lowest: one.lowest.min(other.lowest),
                highest: one.highest.max(other.highest),
                until: one.until.max(other.until),
                ..one
            }),
        };
    }

    /// The member has rejected the latest request.
    pub(crate) fn reject(&mut self, key: &WorkloadKey, uid: Uid, generation: i64) {
        if let Some(requests) = self.0.get_mut(key) {
            let is_rejected =
                |request: &mut ScaleRequest| request.uid == uid && request.generation == generation;
            requests.latest.take_if(is_rejected);
        }
    }

    /// The object has reached this state, also after the member was restored to an earlier one: forgets the requests that fail.
    pub(crate) fn close(&mut self, state: &WorkloadState) {
        if let Some(requests) = self.0.get_mut(&state.key) {
            requests.retain(|request| {
                request.uid != state.id() || request.generation >= state.generation
            });
            if requests.is_empty() {
                self.0.remove(&state.key);
            }
        }
    }

    /// The fewest replicas that requests for this object set, whatever generation they require.
    pub(crate) fn lowest(&self, state: &WorkloadState) -> Option<u32> {
        let requests = self.0.get(&state.key).copied().unwrap_or_default();
        let of_object = requests.iter().filter(|request| request.uid == state.id());
        of_object.map(|request| request.lowest).min()
    }

    /// `state` with the replicas of the requests that may still be carried out at `now`.
    pub(crate) fn apply(&self, mut state: WorkloadState, now: Timestamp) -> WorkloadState {
        let requests = self.0.get(&state.key).copied().unwrap_or_default();
        for request in requests.iter() {
            if request.is_open(&state, now) {
                state.lowest_replicas = state.lowest_replicas.min(request.lowest);
                let scale_up = Some(request.highest).filter(|most| *most > state.replicas);
                state.open_scale_up = state.open_scale_up.max(scale_up);
            }
        }
        state
    }

    /// Moves the requests for objects in `namespace`, or for all, into `other`.
    pub(crate) fn move_to(&mut self, other: &mut Self, namespace: Option<&str>) {
        let is_moved = |key: &WorkloadKey| namespace.is_none_or(|name| &*key.namespace == name);
        let moved = self.0.extract_if(.., |key, _| is_moved(key));
        other.0.extend(moved);
    }
}
