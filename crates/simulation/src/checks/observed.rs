//! What has been observed of all clusters, over time.

use std::{collections::BTreeMap, sync::Arc};

use federation_controller::config::Config;
use fedrs_api::{
    ClusterState, DeletionPolicy, RolloutStatus, SetKind, ValidFrs,
    annotations::AVAILABILITY_PREFIX,
};
use serde_json::{Value, json};
use sim_cluster::{Api, Change, Object, kinds};
use tokio::time::{Duration, Instant};

use super::{
    availability_state::Availability,
    local_set::{InFlight, LocalSet},
    maintenance_state::Maintenances,
    observed_member::{ObservedMember, is_new_generation},
    reach::Reach,
    visibility::{OutageKind, Visibility, max_age},
};
use crate::{
    crash::DelayedRequest,
    history::History,
    set_kind::{self, ValidSet, template_of},
};

/// The state of a FederatedReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FrsState {
    /// It does not exist.
    Absent,
    /// It is being deleted.
    Deleted(DeletionPolicy),
    /// It exists; `None` if it is invalid.
    Spec(Option<Arc<ValidSet>>),
}

/// All that is observed.
pub(crate) struct Observed {
    config: Config,
    sets: BTreeMap<String, ObservedSet>,
    pub(super) members: BTreeMap<String, ObservedMember>,
    pub(super) host: Visibility,
    /// Whether the host was ever restored from a backup.
    was_host_restored: bool,
    /// When the host's clock last jumped.
    host_clock_jumped: Option<Instant>,
    /// Until when something that has happened may start pods beside a rollout.
    disturbed_until: Option<Instant>,
    pub(super) maintenances: Maintenances,
    pub(super) availability: Availability,
}

/// A set over time.
struct ObservedSet {
    kind: SetKind,
    states: History<FrsState>,
    /// The last of them: the status changes more often.
    seen: Seen,
    /// How far its rollout is, as the controller says.
    rollout: History<RolloutStatus>,
    /// When rollouts started pods.
    starts: Vec<Instant>,
}

/// What tells the states of a FederatedReplicaSet apart. One that replaces another may have its generation.
#[derive(Default, PartialEq)]
struct Seen {
    uid: Value,
    generation: Value,
    annotations: Value,
    is_deleted: bool,
}

impl Observed {
    /// Observes these sets in these members, which are empty.
    pub(crate) fn new(config: &Config, sets: &[(&str, SetKind)], members: &[&str]) -> Self {
        let set = |kind| ObservedSet {
            kind,
            states: History::starting(FrsState::Absent),
            seen: Seen::default(),
            rollout: History::starting(RolloutStatus::default()),
            starts: Vec::new(),
        };
        Self {
            config: config.clone(),
            sets: (sets.iter())
                .map(|&(name, kind)| (name.to_owned(), set(kind)))
                .collect(),
            members: members
                .iter()
                .map(|&name| (name.to_owned(), ObservedMember::new(sets)))
                .collect(),
            host: Visibility::default(),
            was_host_restored: false,
            host_clock_jumped: None,
            disturbed_until: None,
            maintenances: Maintenances::new(),
            availability: Availability::default(),
        }
    }

    pub(super) fn max_age(&self) -> Duration {
        max_age(&self.config)
    }

    /// Records that something makes a cluster unobservable, or no longer does.
    pub(crate) fn set_unobservable(
        &mut self,
        cluster: &str,
        (reason, kind): (&str, OutageKind),
        on: bool,
    ) {
        let member = self.members.get_mut(cluster);
        let visibility = member.map_or(&mut self.host, |member| &mut member.visibility);
        visibility.set(reason, on, &self.config, kind);
    }

    /// Whether this makes a cluster unobservable now.
    pub(crate) fn is_unobservable_because(&self, cluster: &str, reason: &str) -> bool {
        let member = self.members.get(cluster);
        let visibility = member.map_or(&self.host, |member| &member.visibility);
        visibility.has(reason)
    }

    /// Records that a change is on its way, or has arrived.
    pub(crate) fn put_in_flight(&mut self, member: &str, request: &DelayedRequest) {
        let local = self.members.get_mut(member);
        let local = local.and_then(|member| member.local.get_mut(&request.set));
        let Some(local) = local else { return };
        if request.has_arrived {
            let is_other = |sent: &InFlight| sent.request.arrives != request.arrives;
            local.in_flight.retain(is_other);
        } else {
            local.put_in_flight(request.clone());
        }
    }

    /// Records that the processes that sent changes are gone: the next one does not know of them.
    pub(crate) fn forget_in_flight(&mut self) {
        let members = self.members.values_mut();
        let sets = members.flat_map(|member| member.local.values_mut());
        sets.for_each(LocalSet::forget_in_flight);
    }

    /// A member to which a change of a set is on its way.
    pub(crate) fn with_in_flight(&self, set: &str) -> Option<String> {
        let mut parts = self.parts(set);
        let (member, _) = parts.find(|(_, local)| local.has_in_flight())?;
        Some(member.to_owned())
    }

    /// Whether a change of a member was sent long before it takes effect.
    pub(crate) fn is_late(&self, member: &str, change: &Change) -> bool {
        let local = self.members.get(member);
        let local = local.and_then(|member| member.local.get(&change.name));
        self.is_local_set(change) && local.is_some_and(LocalSet::has_arrived)
    }

    /// Records that a controller starts: it lists all clusters. If it `resumes` a term, it waits for what the process before
    /// it may have sent (F20).
    pub(crate) fn controller_starts(&mut self, resumes: bool) {
        if resumes {
            let until = Instant::now() + self.config.leader_election.lease_duration;
            let members = self.members.values_mut();
            let sets = members.flat_map(|member| member.local.values_mut());
            sets.for_each(|local| local.expect_in_flight_until(until));
        } else {
            self.forget_in_flight();
        }
        let members = self.members.values_mut();
        let members = members.map(|member| &mut member.visibility);
        for visibility in members.chain([&mut self.host]) {
            visibility.controller_starts();
        }
    }

    /// Records that a node has no power, or has it again.
    pub(crate) fn set_without_power(&mut self, member: &str, node: &str, is_without: bool) {
        let Some(member) = self.members.get_mut(member) else {
            return;
        };
        if is_without {
            if member.nodes_without_power.is_empty() {
                member.power_lost_at = Some(Instant::now());
            }
            member.nodes_without_power.insert(node.to_owned());
        } else {
            member.nodes_without_power.remove(node);
            member.failed_nodes.remove(node);
        }
        member.count();
    }

    /// Records that a node fails.
    pub(crate) fn node_fails(&mut self, member: &str, node: &str) {
        if let Some(member) = self.members.get_mut(member) {
            member.failed_nodes.insert(node.to_owned());
            member.count();
        }
    }

    /// Records a change of the host.
    pub(crate) fn host_changed(&mut self, change: &Change) {
        if change.kind.plural == "memberclusters"
            && is_new_generation(change)
            && let Some(member) = self.members.get_mut(&change.name)
        {
            member.edited = Instant::now();
            member.put(change.new.as_ref());
        }
        match &*change.kind.plural {
            "maintenances" => self.maintenances.changed(change),
            "availabilitysets" => self.availability.changed(change),
            _ => {}
        }
        if !self.is_set(change) {
            return;
        }
        if let Some(set) = self.sets.get_mut(&change.name) {
            set.put(change.new.as_ref());
            set.rollout.put(rollout_of(change.new.as_ref()));
        }
        let clusters = change.new.as_ref().map(|new| &new["status"]["clusters"]);
        for cluster in clusters.and_then(Value::as_array).into_iter().flatten() {
            let member = cluster["name"].as_str().unwrap_or_default();
            let member = self.members.get_mut(member);
            let local = member.and_then(|member| member.local.get_mut(&change.name));
            if let (Some(local), Some(planned)) = (local, cluster["desiredReplicas"].as_u64()) {
                local.planned.put(planned);
                local.called_unknown =
                    (cluster["state"] == ClusterState::Unknown.as_str()).then(Instant::now);
            }
        }
        if change.new.is_none() {
            // Nothing is requested on behalf of the next set of this name.
            for member in self.members.values_mut() {
                let local = member.local.get_mut(&change.name);
                if let Some(local) = local {
                    local.requested.put(0);
                }
            }
        }
    }

    /// Records that the host has these FederatedReplicaSets, MemberClusters and Maintenances, and no others.
    pub(crate) fn host_restored(
        &mut self,
        sets: &[Object],
        members: &[Object],
        maintenances: &[Object],
    ) {
        let named = |objects: &[Object], name: &str| {
            let mut objects = objects.iter();
            objects
                .find(|object| object["metadata"]["name"] == name)
                .cloned()
        };
        self.was_host_restored = true;
        self.maintenances.restored(maintenances);
        for (name, set) in &mut self.sets {
            let object = named(sets, name);
            set.put(object.as_ref());
            set.rollout.put(rollout_of(object.as_ref()));
        }
        for (name, member) in &mut self.members {
            member.put(named(members, name).as_ref());
        }
    }

    /// Records that a member has the objects that its API server shows, and no others.
    pub(crate) fn member_restored(&mut self, member: &str, api: &Api) {
        self.availability_restored(member, api);
        if let Some(member) = self.members.get_mut(member) {
            member.restored(api);
        }
    }

    /// Records a change of a member. Whether the pods of a set that run are other ones.
    pub(crate) fn member_changed(&mut self, member: &str, change: &Change) -> bool {
        let started = started(self, member, change);
        if let Some(set) = started.and_then(|set| self.sets.get_mut(set)) {
            set.starts.push(Instant::now());
        }
        if let Some(node) = change.new.as_ref().filter(|_| change.kind == *kinds::NODES) {
            self.maintenances.marked(node);
        }
        let observed = self.members.get_mut(member);
        let are_others = observed.is_some_and(|observed| observed.changed(change));
        self.availability_changed(member, change);
        are_others
    }

    /// The specs of a set that the controller may act on, or its absence.
    pub(crate) fn states(&self, set: &str) -> impl Iterator<Item = &FrsState> {
        self.states_within(set, Duration::ZERO)
    }

    /// The same for a change that was decided `earlier` than the others.
    pub(crate) fn states_within(
        &self,
        set: &str,
        earlier: Duration,
    ) -> impl Iterator<Item = &FrsState> {
        let since = self.host_belief(earlier);
        let set = self.sets.get(set).into_iter();
        set.flat_map(move |set| set.states.since(since))
    }

    /// The time since which any state of the host may still count as current, for a change that was decided `earlier` than
    /// others.
    pub(crate) fn host_belief(&self, earlier: Duration) -> Instant {
        let oldest = self.host.oldest_belief(&self.config);
        // After an outage of the host, the controller lists the sets when it tries again.
        let unlisted = self.host.unlisted_since();
        unlisted.map_or(oldest, |since| oldest.min(since - self.max_age())) - earlier
    }

    /// Since when a set is being deleted; none if it is not, or if the host could not be observed all the time.
    pub(super) fn deleted_since(&self, set: &str) -> Option<Instant> {
        let states = &self.sets.get(set)?.states;
        let since = states.changed();
        let is_deleted = matches!(states.now(), FrsState::Deleted(_));
        (is_deleted && self.host.is_visible_since(since)).then_some(since)
    }

    /// Whether a member has taken no replicas all the time since then.
    pub(crate) fn is_closed_since(&self, member: &str, since: Instant) -> bool {
        self.members[member]
            .is_closed
            .since(since)
            .all(|closed| *closed)
    }

    /// The specs among them.
    pub(crate) fn specs(&self, set: &str) -> impl Iterator<Item = &ValidFrs> {
        self.valid_sets(set).map(|set| &set.frs)
    }

    /// The same with what only FederatedDeployments have.
    pub(crate) fn valid_sets(&self, set: &str) -> impl Iterator<Item = &ValidSet> {
        self.states(set).filter_map(|state| match state {
            FrsState::Spec(Some(set)) => Some(&**set),
            _ => None,
        })
    }

    /// The replicas that the controller has to count as requested of a member.
    pub(crate) fn known_request(&self, member: &str, local: &LocalSet) -> u64 {
        let oldest = self.oldest_belief(member);
        // Others may have reduced it since.
        let requested = *local.requested.now().min(local.desired.now());
        if local.edited.is_some_and(|edited| edited >= oldest) {
            // It may have read what others wrote.
            let read = local.desired.since(oldest).min();
            return read.copied().unwrap_or(0).min(requested);
        }
        requested
    }

    /// The names of the members, and their parts of a set.
    pub(crate) fn parts<'a>(
        &'a self,
        set: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a LocalSet)> {
        let part = move |(name, member): (&'a String, &'a ObservedMember)| {
            Some((name.as_str(), member.local.get(set)?))
        };
        self.members.iter().filter_map(part)
    }

    /// The names of the sets.
    pub(super) fn sets(&self) -> impl Iterator<Item = &str> {
        self.sets.keys().map(String::as_str)
    }

    /// Whether a set is a FederatedDeployment.
    pub(super) fn has_rollout(&self, set: &str) -> bool {
        self.kind(set) == SetKind::FederatedDeployment
    }

    /// How far the rollout of a set is, as its status says.
    pub(super) fn rollout_status(&self, set: &str) -> &History<RolloutStatus> {
        &self.sets[set].rollout
    }

    /// The states of a set.
    pub(super) fn set_states(&self, set: &str) -> &History<FrsState> {
        &self.sets[set].states
    }

    /// When rollouts of a set started pods.
    pub(super) fn starts(&self, set: &str) -> impl Iterator<Item = &Instant> {
        self.sets[set].starts.iter()
    }

    /// Records that something may start pods beside rollouts.
    pub(crate) fn disturb(&mut self, time: Duration) {
        let until = Instant::now() + time;
        self.disturbed_until = self.disturbed_until.max(Some(until));
    }

    /// Records that the host's clock jumps.
    pub(crate) fn host_clock_jumps(&mut self) {
        self.host_clock_jumped = Some(Instant::now());
    }

    /// Records that the clock of the controller's machine moves.
    pub(crate) fn controller_clock_steps(&mut self, seconds: i64) {
        self.maintenances.clock_steps(seconds);
    }

    /// Whether the host's clock has jumped since then: its times of before mean nothing to a controller that starts.
    pub(super) fn has_host_clock_jumped_since(&self, time: Instant) -> bool {
        self.host_clock_jumped.is_some_and(|at| at >= time)
    }

    /// Whether something may have started pods beside rollouts.
    pub(super) fn is_disturbed(&self) -> bool {
        self.disturbed_until
            .is_some_and(|until| until >= Instant::now())
    }

    /// Whether the host was ever restored: it may have forgotten what was stored.
    pub(super) fn was_host_restored(&self) -> bool {
        self.was_host_restored
    }

    /// Whether a member took no replicas at any time since then.
    pub(super) fn was_closed_since(&self, member: &str, since: Instant) -> bool {
        let mut closed = self.members[member].is_closed.since(since);
        closed.any(|closed| *closed)
    }

    /// Whether this is a change of a set on the host.
    pub(crate) fn is_set(&self, change: &Change) -> bool {
        let set = self.sets.get(&change.name);
        set.is_some_and(|set| set_kind::resource(set.kind) == change.kind.plural)
    }

    /// Whether this is a change of the local set of a set.
    pub(crate) fn is_local_set(&self, change: &Change) -> bool {
        let set = self.sets.get(&change.name);
        set.is_some_and(|set| *set_kind::local(set.kind) == change.kind)
    }

    /// Whether a user has created a set of this name.
    pub(crate) fn is_set_of_user(&self, name: &str) -> bool {
        self.sets.contains_key(name)
    }

    /// The kind of a set.
    pub(crate) fn kind(&self, set: &str) -> SetKind {
        self.sets[set].kind
    }

    /// Whether there is such a set.
    pub(crate) fn has_set(&self, set: &str) -> bool {
        self.sets.contains_key(set)
    }

    /// Whether users have changed nothing but `except` since then, as far as a set is concerned, and the host worked.
    pub(crate) fn is_unedited(&self, set: &str, except: &str, time: Instant) -> bool {
        let states = self.sets[set].states.since(time).count();
        let mut others = self.members.iter().filter(|(name, _)| *name != except);
        states == 1
            && self.host.outage_since(time).is_none()
            && others.all(|(_, member)| member.edited < time)
    }

    /// Whether a member is drained no more, and was after `time`.
    pub(super) fn was_drained_since(&self, member: &str, time: Instant) -> bool {
        let drained = &self.members[member].is_drained;
        !drained.now() && drained.since(time).any(|drained| *drained)
    }

    /// The configuration of the controller.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Records that the controller has listed the objects at `path` of a cluster.
    pub(crate) fn put_list(&mut self, cluster: &str, path: &str) {
        let Some(member) = self.members.get_mut(cluster) else {
            return;
        };
        let [sets, pods] = &mut member.listed;
        match path.rsplit('/').next() {
            Some("replicasets") => *sets = Some(Instant::now()),
            Some("deployments") => {
                *sets = Some(Instant::now());
                member.deployments_listed = *sets;
            }
            Some("pods") => *pods = Some(Instant::now()),
            _ => {}
        }
    }
}

impl ObservedSet {
    /// Records the current state of the object.
    fn put(&mut self, object: Option<&Object>) {
        let Some(object) = object else {
            self.seen = Seen::default();
            self.states.put(FrsState::Absent);
            return;
        };
        let metadata = &object["metadata"];
        let is_deleted = metadata.get("deletionTimestamp").is_some();
        let seen = Seen {
            uid: metadata["uid"].clone(),
            generation: metadata["generation"].clone(),
            annotations: json!(of_users(object)),
            is_deleted,
        };
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        self.states.put(if is_deleted {
            FrsState::Deleted(match object["spec"]["deletionPolicy"].as_str() {
                Some("Delete") => DeletionPolicy::Delete,
                _ => DeletionPolicy::Orphan,
            })
        } else {
            FrsState::Spec(ValidSet::of(object, self.kind).map(Arc::new))
        });
    }
}

/// `status.rollout` of a set.
pub(super) fn rollout_of(set: Option<&Object>) -> RolloutStatus {
    let status = set.map(|set| set["status"]["rollout"].clone());
    let status = status.and_then(|status| serde_json::from_value(status).ok());
    status.unwrap_or_default()
}

/// The set whose rollout starts the pod that was created, if one does.
pub(super) fn started<'a>(
    observed: &Observed,
    member: &str,
    change: &'a Change,
) -> Option<&'a str> {
    let pod = change.new.as_ref().filter(|_| change.old.is_none())?;
    let set = crate::set_of(pod).filter(|_| change.kind == *kinds::PODS)?;
    let is_deployment = observed.has_set(set) && observed.kind(set) == SetKind::FederatedDeployment;
    let (_, part) = observed
        .parts(set)
        .find(|(name, _)| *name == member)
        .filter(|_| is_deployment)?;
    let is_updated = *part.template.now() == template_of(&Value::clone(pod));
    (is_updated && *part.reach.now() != Reach::default()).then_some(set)
}

/// The annotations of an object of the host that are not limits of AvailabilitySets: the controller writes these.
pub(super) fn of_users(object: &Value) -> Vec<(&String, &Value)> {
    let annotations = object["metadata"]["annotations"].as_object();
    let annotations = annotations.into_iter().flatten();
    annotations
        .filter(|(key, _)| !key.starts_with(AVAILABILITY_PREFIX))
        .collect()
}
