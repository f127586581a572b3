//! The local ReplicaSet of a set in one member, over time.

use fedrs_api::{SetKind, labels, names};
use serde_json::Value;
use sim_cluster::Object;
use tokio::time::{Duration, Instant};

use super::reach::{Reach, is_rolling};
use crate::{crash::DelayedRequest, history::History, set_kind::template_of};

/// A federation that is not the one of the controller.
pub(crate) const OTHER_FEDERATION: &str = "other";
/// How long an API server takes to carry out a request.
const HANDLING: Duration = Duration::from_millis(3);
/// Times in statuses are in whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// A change that has been sent and takes effect later.
pub(super) struct InFlight {
    pub(super) request: DelayedRequest,
    /// The uid and the generation of the ReplicaSet when it was sent.
    object: (String, i64),
    /// Until when the controller has to expect it; none for as long as it takes.
    expected_until: Option<Instant>,
}

/// A local set over time.
pub(crate) struct LocalSet {
    /// The kind of its set.
    pub(super) kind: SetKind,
    /// The uid of the ReplicaSet, while there is one.
    pub(super) uid: String,
    /// Its generation.
    pub(super) generation: i64,
    /// `spec.replicas`.
    pub(crate) desired: History<u64>,
    /// What the controller wrote there last: others may have changed it since.
    pub(crate) requested: History<u64>,
    /// When others last changed the replicas, or deleted the ReplicaSet.
    pub(super) edited: Option<Instant>,
    /// Whether it is being deleted, so that its pods may end at any time.
    pub(super) is_terminating: bool,
    /// Whether it belongs to a controller of the member, or to another federation.
    pub(crate) is_taken: History<bool>,
    /// Whether it has the label of fedrs: it does until it is released.
    pub(super) is_labeled: History<bool>,
    /// What the status of the FederatedReplicaSet says is desired.
    pub(crate) planned: History<u64>,
    /// When a status of the FederatedReplicaSet last said that the state of the member is not known.
    pub(crate) called_unknown: Option<Instant>,
    /// Pods that are ready, and run.
    pub(crate) ready: History<u64>,
    /// Pods that say that they are ready, also those that do not run for want of power.
    pub(super) reported_ready: History<u64>,
    /// `status.availableReplicas`.
    pub(crate) counted: History<u64>,
    /// Pods with the label of fedrs on nodes that work.
    pub(crate) placed: History<u64>,
    /// Of a Deployment: what its controller may do with its strategy.
    pub(super) reach: History<Reach>,
    /// The fewest and the most of its replicas that are not available.
    pub(super) missing: History<(u64, u64)>,
    /// Its pods beyond its replicas, twice.
    pub(super) surplus: History<(u64, u64)>,
    /// Its template.
    pub(super) template: History<String>,
    /// Its template if all pods that can run have it and are available, else empty.
    pub(super) complete: History<String>,
    /// Whether all of its pods have its template, as far as it has observed.
    is_rolled: bool,
    /// Changes that have been sent and take effect later.
    pub(super) in_flight: Vec<InFlight>,
}

impl LocalSet {
    /// A set that does not exist yet.
    pub(super) fn new(kind: SetKind) -> Self {
        Self {
            kind,
            uid: String::new(),
            generation: 0,
            desired: History::starting(0),
            requested: History::starting(0),
            edited: None,
            is_terminating: false,
            is_taken: History::starting(false),
            is_labeled: History::starting(false),
            planned: History::starting(0),
            called_unknown: None,
            ready: History::starting(0),
            reported_ready: History::starting(0),
            counted: History::starting(0),
            placed: History::starting(0),
            reach: History::starting(Reach::default()),
            missing: History::starting((0, 0)),
            surplus: History::starting((0, 0)),
            template: History::starting(String::new()),
            complete: History::starting(String::new()),
            is_rolled: false,
            in_flight: Vec::new(),
        }
    }

    /// Records the current state of the ReplicaSet.
    pub(super) fn put(&mut self, set: Option<&Object>) {
        let now = desired(set);
        self.uid = set.map(uid_of).unwrap_or_default();
        self.generation = set.map(generation_of).unwrap_or_default();
        let is_scaled = now != *self.desired.now();
        self.desired.put(now);
        let is_ours = set.is_none_or(|set| is_written_by_fedrs(set));
        if is_scaled && is_ours {
            self.requested.put(now);
        }
        // The controller deletes only what has no replicas, as long as the FederatedReplicaSet exists.
        if is_scaled && (set.is_none() || !is_ours) {
            self.edited = Some(Instant::now());
        }
        let deleted = set.and_then(|set| set["metadata"].get("deletionTimestamp"));
        self.is_terminating = deleted.is_some();
        self.is_taken
            .put(set.is_some_and(|set| belongs_to_others(set)));
        self.is_labeled.put(set.is_some_and(|set| is_labeled(set)));
        let counted = set.and_then(|set| set["status"]["availableReplicas"].as_u64());
        self.counted.put(counted.unwrap_or(0));
        if self.kind == SetKind::FederatedDeployment {
            self.put_rollout(set);
        }
    }

    /// Records how far the rollout of a Deployment is.
    fn put_rollout(&mut self, set: Option<&Object>) {
        let pods = set
            .and_then(|set| set["status"]["replicas"].as_u64())
            .unwrap_or(0);
        let surplus = pods.saturating_sub(*self.desired.now());
        self.surplus.put((surplus, surplus));
        self.reach.put(set.map(Reach::of).unwrap_or_default());
        let template = set.map(|set| template_of(&set["spec"]["template"]));
        self.template.put(template.unwrap_or_default());
        self.is_rolled = set.is_some_and(|set| !is_rolling(set));
        self.compare();
    }

    /// Compares the replicas with the pods that run.
    pub(super) fn compare(&mut self) {
        let (desired, counted, ready) =
            (*self.desired.now(), *self.counted.now(), *self.ready.now());
        let missing = |available| desired.saturating_sub(available);
        self.missing
            .put((missing(counted.max(ready)), missing(counted.min(ready))));
        let can_run = desired.min(*self.placed.now());
        let is_complete = self.is_rolled && counted >= can_run;
        self.complete.put(if is_complete {
            self.template.now().clone()
        } else {
            String::new()
        });
    }

    /// Of a Deployment that may count as rolling, as it has been at some time since `oldest`, or had a loan then: how many the controller
    /// may see with a node, or was to have, unless what is requested has had time to get a node. The others stay until the rollout has
    /// ended, and are replaced beside it.
    pub(super) fn held_without_node(
        &self,
        oldest: Instant,
        was_lent: bool,
        timeout: Option<Duration>,
    ) -> Option<u64> {
        let is_rolling = self.kind == SetKind::FederatedDeployment
            && (was_lent || self.complete.since(oldest).any(String::is_empty));
        let age = self.desired.changed().elapsed() + SECOND;
        let had_time = timeout.is_some_and(|timeout| age >= timeout);
        let planned = self.planned.since(oldest).filter(|_| !had_time);
        let placed = self.placed.since(oldest).min();
        placed.max(planned.max()).copied().filter(|_| is_rolling)
    }

    /// Whether it exists, and is the controller's to write.
    pub(super) fn is_ours(&self) -> bool {
        !self.uid.is_empty()
            && !self.is_terminating
            && !self.is_taken.now()
            && *self.is_labeled.now()
    }

    /// No request that is on its way counts any more.
    pub(super) fn forget_in_flight(&mut self) {
        for sent in &mut self.in_flight {
            sent.expected_until = Some(Instant::now());
        }
    }

    /// Requests that are on their way count until then, if they arrive before; others do not count any more.
    pub(super) fn expect_in_flight_until(&mut self, time: Instant) {
        for sent in &mut self.in_flight {
            let until = if sent.request.arrives < time {
                time
            } else {
                Instant::now()
            };
            let earlier = sent.expected_until.unwrap_or(until);
            sent.expected_until = Some(until.min(earlier));
        }
    }

    /// Records that a change is on its way.
    pub(super) fn put_in_flight(&mut self, request: DelayedRequest) {
        self.in_flight.push(InFlight {
            request,
            object: (self.uid.clone(), self.generation),
            expected_until: None,
        });
    }

    /// The changes that may take effect now.
    fn arrived(&self) -> impl Iterator<Item = &InFlight> {
        let now = Instant::now();
        let sent = self.in_flight.iter();
        sent.filter(move |sent| sent.request.arrives <= now)
    }

    /// Whether a change may take effect now.
    pub(super) fn has_arrived(&self) -> bool {
        self.arrived().next().is_some()
    }

    /// Whether changes to so many `replicas` that take effect now were all sent to another ReplicaSet, or to one with another
    /// spec.
    pub(super) fn is_other_than_sent(&self, replicas: u64) -> bool {
        // A cluster that is slow or hangs carries them out later, and others as well.
        let is_now = |sent: &&InFlight| {
            let requested = sent.request.replicas;
            sent.request.arrives.elapsed() <= HANDLING && requested.is_none_or(|to| to == replicas)
        };
        // The controller writes at this moment, and may have written that as well.
        if self.requested.changed().elapsed() <= HANDLING {
            return false;
        }
        let mut now = self.arrived().filter(is_now).peekable();
        let is_other =
            |sent: &InFlight| (&*sent.object.0, sent.object.1) != (&*self.uid, self.generation);
        now.peek().is_some() && now.all(is_other)
    }

    /// Whether a change of it has been sent and not taken effect.
    pub(super) fn has_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The fewest replicas that are requested, or will be once all requests that the controller has to expect have arrived. It
    /// may not have seen what others have changed since `oldest`.
    pub(crate) fn fewest_requested(&self, oldest: Instant) -> u64 {
        let expected = self.in_flight.iter().filter(|sent| {
            let until = sent.expected_until;
            until.is_none_or(|until| until > Instant::now())
        });
        let replicas = expected.filter_map(|sent| sent.request.replicas);
        let is_unseen = self.edited.is_some_and(|edited| edited >= oldest);
        let most = self.desired.since(oldest).max().filter(|_| is_unseen);
        let now = most.unwrap_or(self.desired.now());
        replicas.fold(*now, u64::min)
    }
}

/// `spec.replicas` of a local set.
pub(crate) fn desired(set: Option<&Object>) -> u64 {
    set.and_then(|set| set["spec"]["replicas"].as_u64())
        .unwrap_or(0)
}

/// `status.readyReplicas` of a local set.
pub(super) fn ready(set: Option<&Object>) -> u64 {
    set.and_then(|set| set["status"]["readyReplicas"].as_u64())
        .unwrap_or(0)
}

/// Whether a local ReplicaSet, or a pod, belongs to a FederatedReplicaSet: it has its label until it is released.
pub(crate) fn is_labeled(object: &Value) -> bool {
    object["metadata"]["labels"]
        .get(labels::REPLICA_SET)
        .is_some()
}

/// Whether an object belongs to [`OTHER_FEDERATION`].
pub(crate) fn is_of_other_federation(object: &Value) -> bool {
    object["metadata"]["labels"][labels::FEDERATION] == OTHER_FEDERATION
}

/// Whether an object belongs to a controller of the member, or to another federation.
pub(super) fn belongs_to_others(object: &Value) -> bool {
    has_controller(object) || is_of_other_federation(object)
}

fn has_controller(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.any(|owner| owner["controller"] == true)
}

fn uid_of(object: &Object) -> String {
    let uid = object["metadata"]["uid"].as_str();
    uid.unwrap_or_default().to_owned()
}

fn generation_of(set: &Object) -> i64 {
    set["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// Whether fedrs wrote the replicas of a local ReplicaSet last.
pub(crate) fn is_written_by_fedrs(set: &Value) -> bool {
    let managers = set["metadata"]["managedFields"].as_array();
    managers.into_iter().flatten().any(|manager| {
        manager["manager"] == names::FIELD_MANAGER
            && manager.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    })
}
