//! The members as checks see them. Short locks; only the members' task writes.

use std::{collections::BTreeMap, time::Duration};

use cluster_informer::{Health, SyncState};
use fedrs_api::{MemberCluster, MemberClusterSpec, MemberSource, ObjectKey};
use jiff::Timestamp;
use kube::Client;
use parking_lot::RwLock;

use super::source_error::SourceError;
use crate::{check, executor::MemberAccess};

/// The credentials with which a member is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    /// When it expires.
    pub(super) expires: Option<Timestamp>,
    /// Why the token could not be renewed.
    pub(super) renewal_error: Option<String>,
    /// The source of the kubeconfig.
    pub(super) source: Option<MemberSource>,
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

/// What is known of one member: what checks see of it, and what the status of its MemberCluster is made of.
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
}

/// All members, by name.
pub(crate) struct Registry {
    members: RwLock<BTreeMap<String, MemberState>>,
    grace_period: Duration,
}

impl Registry {
    pub(crate) fn new(grace_period: Duration) -> Self {
        Self {
            members: RwLock::default(),
            grace_period,
        }
    }

    /// The members as a check of `key` sees them, in order.
    pub(crate) fn snapshot(&self, key: &ObjectKey) -> Vec<check::Member> {
        let members = self.members.read();
        members
            .iter()
            .map(|(name, member)| member.view(name, key, self.grace_period))
            .collect()
    }

    /// How to reach `name`; not by credentials that were withdrawn.
    pub(crate) fn access(&self, name: &str) -> Option<MemberAccess> {
        let member = self.get(name)?;
        member.access.clone().filter(|_| !member.is_stopped())
    }

    /// What is known of `name`; `None` if it is no member.
    pub(super) fn get(&self, name: &str) -> Option<MemberState> {
        self.members.read().get(name).cloned()
    }

    /// When the grace period of a removed member is over.
    pub(super) fn lost_at(&self, name: &str) -> Option<Timestamp> {
        let member = self.get(name)?;
        let grace_period = member.grace_period(self.grace_period);
        Some(check::after(member.removed?, grace_period))
    }

    /// Makes `name` a member from `now` on, unless it is one.
    pub(super) fn admit(&self, name: &str, now: Timestamp) {
        let mut members = self.members.write();
        members
            .entry(name.to_owned())
            .or_insert_with(|| MemberState {
                joined: now,
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
            member.access = Some(access);
            member.joined = now;
            member.follow(credentials);
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

    /// The state of the MemberCluster of `name`; `None` if it was deleted. Returns whether its spec has changed.
    pub(super) fn put_object(&self, name: &str, object: Option<MemberCluster>) -> bool {
        self.change(name, |member| {
            let Some(object) = object else {
                // The spec stays while the member has its grace period; the next MemberCluster replaces it.
                member.object.uid = None;
                member.object.deletions = member.object.deletions.wrapping_add(1);
                return false;
            };
            member.object.uid = object.metadata.uid;
            member.object.generation = object.metadata.generation;
            let has_changed = member.spec != object.spec;
            member.spec = object.spec;
            has_changed
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

    fn change<T: Default>(&self, name: &str, change: impl FnOnce(&mut MemberState) -> T) -> T {
        let mut members = self.members.write();
        members.get_mut(name).map(change).unwrap_or_default()
    }
}

impl MemberState {
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

    fn grace_period(&self, default: Duration) -> Duration {
        let own = self.spec.lost_grace_period_seconds;
        own.and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(default, Duration::from_secs)
    }

    fn view(&self, name: &str, key: &ObjectKey, grace_period: Duration) -> check::Member {
        let store = self.access.as_ref().map(|access| &access.store);
        let (health, sync) = match store {
            Some(store) if !self.is_stopped() => (store.health(), store.sync_state()),
            _ => (Health::Unknown, SyncState::NotSynced),
        };
        let error = self.source_error.as_ref().filter(|_| !self.followed);
        check::Member {
            name: name.to_owned(),
            schedulable: !self.spec.unschedulable,
            draining: self.spec.drain,
            grace_period: self.grace_period(grace_period),
            joined: self.joined,
            removed: self.removed,
            invalid_kubeconfig: error.map(ToString::to_string),
            health,
            sync,
            write_pending: false,
            view: store.map(|store| store.workload(key)).unwrap_or_default(),
        }
    }
}
