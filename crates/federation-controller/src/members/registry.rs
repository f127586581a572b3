//! The members as checks see them. Short locks; only the members' task writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster_informer::{Health, SyncState};
use fedrs_api::{
    LocalKind, MemberCluster, MemberClusterSpec, MemberInternalState, MemberSource, TimeLimit,
    WorkloadKey,
};
use jiff::Timestamp;
use kube::Client;
use parking_lot::RwLock;
use tokio::{sync::Notify, time::Instant};

use super::{
    contact::Contact,
    namespaces::namespace_state,
    outage::{History, Observed, OutageState, Periods, observe},
    source_error::SourceError,
};
use crate::{
    check::{self, NamespaceState, Outage},
    config::Config,
    executor::MemberAccess,
    host_namespaces::HostNamespaces,
};

/// The credentials with which a member is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    /// When it expires.
    pub(super) expires: Option<Timestamp>,
    /// Why the token could not be renewed.
    pub(super) renewal_error: Option<String>,
    /// The source of the kubeconfig.
    pub(super) source: Option<MemberSource>,
    /// The namespace of the ServiceAccount, if the token names one.
    pub(super) namespace: Option<String>,
}

/// What the members' task knows of a MemberCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectState {
    /// Its uid, while it exists.
    pub(super) uid: Option<String>,
    /// The generation of its spec.
    pub(super) generation: Option<i64>,
    /// How often it has been deleted.
    pub(super) deletions: u32,
    /// Whether it is created again if it was deleted: a member with a kubeconfig file has one.
    pub(super) is_kept: bool,
}

/// What is known of one member: what checks see of it, and what the status of its MemberCluster is computed from.
#[derive(Clone, Default)]
pub(super) struct MemberState {
    /// How to reach it; `None` before the first client.
    pub(super) access: Option<MemberAccess>,
    pub(super) joined: Timestamp,
    pub(super) removed: Option<Timestamp>,
    pub(super) source_error: Option<SourceError>,
    /// Whether an informer runs; if not, what `access` shows is from before.
    pub(super) followed: bool,
    pub(super) credentials: Credentials,
    pub(super) spec: MemberClusterSpec,
    pub(super) object: ObjectState,
    /// Whether the controller knew it before it knew all members, and has not followed anything else under its name since.
    pub(super) initial: bool,
    pub(super) outages: History,
    /// The namespaces in which sets have replicas in it, as was last published; set by its status writer.
    pub(super) occupied: BTreeSet<String>,
    /// What the outages mean for the status of the MemberCluster; set by [`Registry::get`].
    pub(super) outage: OutageReport,
}

/// What outages mean for the status of a MemberCluster.
#[derive(Clone, Debug, Default)]
pub(super) struct OutageReport {
    /// Whether no member answers.
    pub(super) disconnected: bool,
    /// When the member is lost, if its outage lasts.
    pub(super) lost_at: Option<Timestamp>,
    /// Until when the member has to be healthy, and how often it was lost.
    pub(super) stabilizing: Option<(Timestamp, u32)>,
    /// What a later leader has to know.
    pub(super) internal: MemberInternalState,
}

/// All members, by name.
pub(crate) struct Registry {
    members: RwLock<BTreeMap<String, MemberState>>,
    /// Whether no member answers. Changes while `members` is locked, so that a check sees both together.
    disconnected: AtomicBool,
    grace_period: Option<Duration>,
    periods: Periods,
    /// The namespace of the controller.
    namespace: String,
    host_namespaces: Arc<HostNamespaces>,
    /// One moment by both clocks: to show times of the one that durations are measured by.
    started: (Instant, Timestamp),
    /// Notified when the health or the sync state of a member changed.
    pub(super) contact_changed: Notify,
}

impl Registry {
    /// No members yet, at `now`.
    pub(crate) fn new(
        config: &Config,
        namespace: &str,
        host_namespaces: Arc<HostNamespaces>,
        now: Timestamp,
    ) -> Self {
        Self {
            members: RwLock::default(),
            disconnected: AtomicBool::default(),
            grace_period: config.lost_grace_period,
            periods: Periods {
                unauthorized: config.unauthorized_grace_period,
                stabilization: config.stabilization_window,
                probe_round: config.probe.period + config.probe.timeout,
            },
            namespace: namespace.to_owned(),
            host_namespaces,
            started: (Instant::now(), now),
            contact_changed: Notify::new(),
        }
    }

    /// Decides which members are lost, and whether the controller is disconnected. Returns whether any of it has changed.
    pub(super) fn observe(&self, now: Instant) -> bool {
        let mut members = self.members.write();
        let before: Vec<_> = members
            .values()
            .map(|member| member.outages.state)
            .collect();
        let mut observed: Vec<_> = members
            .values_mut()
            .map(|member| Observed {
                contact: member.contact(),
                grace: member.grace_period(self.grace_period),
                history: &mut member.outages,
            })
            .collect();
        let was_disconnected = self.is_disconnected();
        let is_disconnected = observe(&mut observed, was_disconnected, &self.periods, now);
        self.disconnected.store(is_disconnected, Ordering::Relaxed);
        let after = members.values().map(|member| member.outages.state);
        is_disconnected != was_disconnected || after.ne(before)
    }

    /// Whether no member answers: nothing is decided about any set until one does (F39).
    pub(crate) fn is_disconnected(&self) -> bool {
        self.disconnected.load(Ordering::Relaxed)
    }

    /// The time of `instant`.
    fn time(&self, instant: Instant) -> Timestamp {
        let (started, time) = self.started;
        let later = instant.saturating_duration_since(started);
        time.saturating_add(later).unwrap_or(Timestamp::MAX)
    }

    fn outage(&self, state: OutageState) -> Outage {
        match (state.lost, state.lost_at) {
            (Some(span), _) => {
                let since = self.time(span.since).saturating_sub(span.earlier);
                Outage::Lost {
                    since: since.unwrap_or(Timestamp::MIN),
                }
            }
            (None, Some(time)) => Outage::Until(self.time(time)),
            (None, None) => Outage::None,
        }
    }

    /// The members as a check of the set with the local workloads `key` sees them, in order; `grace_period` is that of the set, if it has one.
    pub(crate) fn snapshot(
        &self,
        key: &WorkloadKey,
        grace_period: Option<TimeLimit>,
    ) -> Vec<check::Member> {
        let members = self.members.read();
        let now = Instant::now();
        members
            .iter()
            .map(|(name, member)| {
                if let Some(access) = &member.access {
                    access.store.watch(key.kind);
                }
                let outages = &member.outages;
                let state = grace_period.map_or(outages.state, |limit| {
                    outages.state_within(limit.0, &self.periods, now)
                });
                check::Member {
                    outage: self.outage(state),
                    stabilizes_at: state.stabilizes_at.map(|time| self.time(time)),
                    namespace: self.namespace_state(&key.namespace, member),
                    ..member.view(name, key)
                }
            })
            .collect()
    }

    /// The namespaces that `name` takes, if they are listed.
    pub(super) fn listed_namespaces(&self, name: &str) -> Option<BTreeSet<String>> {
        let members = self.members.read();
        let scope = members.get(name)?.spec.namespaces.as_ref()?;
        Some(scope.names.as_ref()?.iter().cloned().collect())
    }

    /// Whether `member` takes `namespace`.
    fn namespace_state(&self, namespace: &str, member: &MemberState) -> NamespaceState {
        let of_controller = [
            Some(&*self.namespace),
            member.credentials.namespace.as_deref(),
        ];
        let scope = member.spec.namespaces.as_ref();
        namespace_state(namespace, scope, of_controller, &self.host_namespaces)
    }

    /// How to reach `name`; `None` if its credentials were withdrawn.
    pub(crate) fn access(&self, name: &str) -> Option<MemberAccess> {
        let member = self.get(name)?;
        member.access.clone().filter(|_| !member.is_stopped())
    }

    /// What is known of `name`; `None` if it is no member.
    pub(super) fn get(&self, name: &str) -> Option<MemberState> {
        let mut member = self.members.read().get(name).cloned()?;
        let state = member.outages.state;
        member.outage = OutageReport {
            disconnected: self.is_disconnected(),
            lost_at: state.lost_at.map(|time| self.time(time)),
            stabilizing: (state.stabilizes_at).map(|time| (self.time(time), state.losses)),
            internal: member.outages.record(&self.periods, Instant::now()),
        };
        Some(member)
    }

    /// When the grace period of a removed member is over; at the end of time if it never is.
    pub(super) fn lost_at(&self, name: &str) -> Option<Timestamp> {
        let member = self.get(name)?;
        let grace_period = member.grace_period(self.grace_period);
        let lost_at = check::after_limit(member.removed?, grace_period);
        Some(lost_at.unwrap_or(Timestamp::MAX))
    }

    /// Makes `name` a member from `now` on, unless it is one; an `initial` one before all members are known.
    pub(super) fn admit(&self, name: &str, initial: bool, now: Timestamp) {
        let mut members = self.members.write();
        members
            .entry(name.to_owned())
            .or_insert_with(|| MemberState {
                joined: now,
                initial,
                ..MemberState::default()
            });
    }

    /// The member has an informer since `now`, whose view `access` has: nothing is known of it yet.
    pub(super) fn put_access(
        &self,
        access: MemberAccess,
        credentials: Credentials,
        now: Timestamp,
    ) {
        let name = access.name.to_string();
        self.change(&name, |member| {
            member.initial &= member.access.is_none();
            member.access = Some(access);
            member.joined = now;
            member.follow(credentials);
            member.confirm_nodes();
        });
    }

    /// The informer of `name` uses another client: what is known of it stays.
    pub(super) fn put_client(&self, name: &str, client: Client, credentials: Credentials) {
        self.change(name, |member| {
            if let Some(access) = &mut member.access {
                access.client = client;
            }
            member.follow(credentials);
        });
    }

    /// The source of `name` can't be used, or can again; the client in use stays. Returns whether that has changed.
    pub(super) fn put_source_error(&self, name: &str, source_error: Option<SourceError>) -> bool {
        self.change(name, |member| {
            let has_changed = member.source_error != source_error;
            member.source_error = source_error;
            member.removed = None;
            has_changed
        })
    }

    /// The informer of `name` has stopped: its view becomes stale.
    pub(super) fn stop(&self, name: &str) {
        self.change(name, |member| {
            member.followed = false;
            member.credentials = Credentials::default();
        });
    }

    /// No source of `name` is left since `now`, or since an earlier call. Returns whether that has changed.
    pub(super) fn put_removed(&self, name: &str, now: Timestamp) -> bool {
        self.change(name, |member| {
            let has_changed = member.removed.is_none();
            member.removed.get_or_insert(now);
            member.source_error = None;
            has_changed
        })
    }

    /// Stores why the token of `name` could not be renewed.
    pub(super) fn put_renewal_error(&self, name: &str, error: Option<String>) {
        self.change(name, |member| member.credentials.renewal_error = error);
    }

    /// The state of the MemberCluster of `name`; `None` if it was deleted. Returns whether its spec has changed, or it shows
    /// what an earlier leader recorded.
    pub(super) fn put_object(&self, name: &str, object: Option<MemberCluster>) -> bool {
        self.change(name, |member| {
            let Some(object) = object else {
                // The spec stays while the member has its grace period; the next MemberCluster replaces it.
                member.object.uid = None;
                member.object.deletions = member.object.deletions.wrapping_add(1);
                return false;
            };
            let internal = object.status.map(|status| status.internal);
            let internal = internal.unwrap_or_default();
            let resumes = member.outages.resume(&internal);
            if resumes {
                member.confirm_nodes();
            }
            member.object.uid = object.metadata.uid;
            member.object.generation = object.metadata.generation;
            let has_changed = member.spec != object.spec;
            member.spec = object.spec;
            has_changed || resumes && !internal.is_empty()
        })
    }

    /// Sets whether the MemberCluster of `name` is created again if it was deleted.
    pub(super) fn keep_object(&self, name: &str, is_kept: bool) {
        self.change(name, |member| member.object.is_kept = is_kept);
    }

    /// Forgets a member.
    pub(super) fn forget(&self, name: &str) {
        self.members.write().remove(name);
    }

    /// Something of each member, by name.
    pub(super) fn map_members<T>(&self, of: impl Fn(&MemberState) -> T) -> BTreeMap<String, T> {
        let members = self.members.read();
        members
            .iter()
            .map(|(name, member)| (name.clone(), of(member)))
            .collect()
    }

    fn change<T: Default>(&self, name: &str, change: impl FnOnce(&mut MemberState) -> T) -> T {
        let mut members = self.members.write();
        members.get_mut(name).map(change).unwrap_or_default()
    }
}

impl MemberState {
    /// What the last probe showed.
    fn contact(&self) -> Contact {
        if self.removed.is_some() {
            return Contact::Removed;
        }
        let Some(access) = self.access.as_ref().filter(|_| !self.is_stopped()) else {
            return Contact::Unknown;
        };
        match access.store.health() {
            Health::Unknown => Contact::Unknown,
            Health::Healthy if access.store.cluster_info().nodes.none_is_ready() => {
                Contact::NoReadyNodes
            }
            Health::Healthy if access.store.cluster_info().nodes.none_is_confirmed() => {
                Contact::Unconfirmed
            }
            Health::Healthy => Contact::Answers,
            Health::Failing { .. } => Contact::Failing,
            Health::Unreachable { .. } => Contact::Unreachable,
            Health::Unauthorized { .. } => Contact::Unauthorized,
        }
    }

    /// If the member was out of reach before this informer began, its pods count only once its nodes are confirmed: they may have no
    /// power.
    fn confirm_nodes(&self) {
        if let Some(access) = self.access.as_ref().filter(|_| self.outages.was_out()) {
            access.store.confirm_nodes();
        }
    }

    fn follow(&mut self, credentials: Credentials) {
        self.followed = true;
        self.credentials = credentials;
        self.removed = None;
        self.source_error = None;
    }

    /// Whether its credentials were withdrawn, although it is still a member.
    fn is_stopped(&self) -> bool {
        !self.followed && self.removed.is_none()
    }

    /// How long the member may be unreachable; `None` for ever.
    fn grace_period(&self, default: Option<Duration>) -> Option<Duration> {
        let own = self.spec.lost_grace_period_seconds.as_ref();
        let own = own.and_then(|own| TimeLimit::try_from(own).ok());
        own.map_or(default, |limit| limit.0)
    }

    fn view(&self, name: &str, key: &WorkloadKey) -> check::Member {
        let store = self.access.as_ref().map(|access| &access.store);
        let (health, sync) = match store {
            // Not before it is known what its first answer means after what earlier leaders recorded.
            Some(store) if !self.is_stopped() && self.outages.has_contact() => {
                (store.health(), store.sync_state_of(key))
            }
            _ => (Health::Unknown, SyncState::NotSynced),
        };
        let error = self.source_error.as_ref().filter(|_| !self.followed);
        let lacks_kind = store.is_some_and(|store| store.lacks(key.kind));
        let watched_since = store.and_then(|store| store.watched_since(key));
        check::Member {
            name: name.to_owned(),
            schedulable: !self.spec.unschedulable,
            draining: self.spec.drain,
            namespace: NamespaceState::default(),
            outage: Outage::None,
            stabilizes_at: None,
            no_ready_nodes: self.contact() == Contact::NoReadyNodes,
            joined: watched_since.map_or(self.joined, |since| since.max(self.joined)),
            awaited: self.initial,
            removed: self.removed,
            invalid_kubeconfig: error.map(ToString::to_string),
            health,
            sync,
            unlisted: store
                .filter(|_| key.kind == LocalKind::LocalReplicaSet)
                .and_then(|store| store.failure_of(key)),
            lacks_kind,
            write_pending: false,
            view: store
                .filter(|_| !lacks_kind)
                .map(|store| store.workload(key))
                .unwrap_or_default(),
        }
    }
}
