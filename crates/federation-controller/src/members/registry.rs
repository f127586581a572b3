//! The members as checks see them. Short locks; only the members' task writes.

use std::{collections::BTreeMap, time::Duration};

use cluster_informer::{Health, SyncState, WorkloadView};
use fedrs_api::{MemberClusterSpec, MemberSource, SetKey};
use jiff::Timestamp;
use kube::Client;
use parking_lot::RwLock;

use super::{inbox::MemberObject, source_error::SourceError};
use crate::{check, executor::MemberAccess};

/// What is known of the token, or the certificate, by which a member is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    /// When it ends.
    pub(super) expires: Option<Timestamp>,
    /// Why it could not be renewed.
    pub(super) renewal_error: Option<String>,
    /// Where the kubeconfig is from.
    pub(super) source: Option<MemberSource>,
}

/// One member.
#[derive(Clone)]
struct Entry {
    /// How to reach it; none if its kubeconfig never could be used.
    access: Option<MemberAccess>,
    joined: Timestamp,
    removed: Option<Timestamp>,
    source_error: Option<SourceError>,
    /// Whether what `access` shows is followed; if not, it is from before.
    followed: bool,
    credentials: Credentials,
    spec: MemberClusterSpec,
    object: ObjectState,
}

/// What the members' task knows of a MemberCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectState {
    /// Its uid, while it is there.
    pub(super) uid: Option<String>,
    /// The generation of its spec that counts.
    pub(super) generation: Option<i64>,
    /// How often it has been deleted.
    pub(super) deletions: u32,
    /// Whether it is made where it is missing: a file of the folder has one, whoever deletes it.
    pub(super) is_kept: bool,
}

/// What the status of a MemberCluster is made of.
#[derive(Clone)]
pub(super) struct MemberFacts {
    pub(super) access: Option<MemberAccess>,
    pub(super) removed: Option<Timestamp>,
    pub(super) source_error: Option<SourceError>,
    pub(super) followed: bool,
    pub(super) credentials: Credentials,
    pub(super) draining: bool,
    pub(super) object: ObjectState,
}

/// All members, by name.
pub(crate) struct Registry {
    entries: RwLock<BTreeMap<String, Entry>>,
    grace_period: Duration,
}

impl Registry {
    pub(crate) fn new(grace_period: Duration) -> Self {
        Self {
            entries: RwLock::default(),
            grace_period,
        }
    }

    /// The members as a check of `key` sees them, in order.
    pub(crate) fn snapshot(&self, key: &SetKey) -> Vec<check::Member> {
        let entries = self.entries.read();
        entries
            .iter()
            .map(|(name, entry)| entry.member(name, key, self.grace_period))
            .collect()
    }

    /// How to reach `name`; not by credentials that were withdrawn.
    pub(crate) fn access(&self, name: &str) -> Option<MemberAccess> {
        let entries = self.entries.read();
        let entry = entries.get(name)?;
        entry.access.clone().filter(|_| !entry.is_stopped())
    }

    /// What the status of the MemberCluster `name` is made of; `None` if it is no member.
    pub(super) fn facts(&self, name: &str) -> Option<MemberFacts> {
        let entries = self.entries.read();
        let entry = entries.get(name)?;
        Some(MemberFacts {
            access: entry.access.clone(),
            removed: entry.removed,
            source_error: entry.source_error.clone(),
            followed: entry.followed,
            credentials: entry.credentials.clone(),
            draining: entry.spec.drain,
            object: entry.object.clone(),
        })
    }

    /// When the grace period of a removed member is over.
    pub(super) fn lost_at(&self, name: &str) -> Option<Timestamp> {
        let entries = self.entries.read();
        let entry = entries.get(name)?;
        Some(check::after(
            entry.removed?,
            entry.grace_period(self.grace_period),
        ))
    }

    /// `name` is a member from `now` on, if it isn't one. Whether it is new.
    pub(super) fn admit(&self, name: &str, now: Timestamp) -> bool {
        let mut entries = self.entries.write();
        let is_new = !entries.contains_key(name);
        if is_new {
            entries.insert(name.to_owned(), Entry::unknown(now));
        }
        is_new
    }

    /// A member is followed by `access` from `now` on: nothing is known of it yet.
    pub(super) fn put_access(
        &self,
        access: MemberAccess,
        credentials: Credentials,
        now: Timestamp,
    ) {
        let name = access.name.to_string();
        self.change(&name, |entry| {
            entry.access = Some(access);
            entry.joined = now;
            entry.follow(credentials);
        });
    }

    /// A member is followed by another client: what is known of it stays.
    pub(super) fn put_client(&self, name: &str, client: Client, credentials: Credentials) {
        self.change(name, |entry| {
            if let Some(access) = &mut entry.access {
                access.client = client;
            }
            entry.follow(credentials);
        });
    }

    /// The source of `name` can't be used, or can again; the client in use stays. Answers whether that has changed.
    pub(super) fn put_source_error(&self, name: &str, source_error: Option<SourceError>) -> bool {
        self.change(name, |entry| {
            let news = entry.source_error != source_error;
            entry.source_error = source_error;
            entry.removed = None;
            news
        })
    }

    /// `name` is not watched any more: its view becomes stale.
    pub(super) fn stop(&self, name: &str) {
        self.change(name, |entry| {
            entry.followed = false;
            entry.credentials = Credentials::default();
        });
    }

    /// No source of `name` is left since `now`, if not for longer. Whether that is news.
    pub(super) fn put_removed(&self, name: &str, now: Timestamp) -> bool {
        self.change(name, |entry| {
            let news = entry.removed.is_none();
            entry.removed.get_or_insert(now);
            entry.source_error = None;
            news
        })
    }

    /// Why the token of `name` could not be renewed.
    pub(super) fn put_renewal_error(&self, name: &str, error: Option<String>) {
        self.change(name, |entry| entry.credentials.renewal_error = error);
    }

    /// What the MemberCluster of `name` asks for, or that it is gone. Whether that changes decisions.
    pub(super) fn put_object(&self, name: &str, object: Option<MemberObject>) -> bool {
        self.change(name, |entry| {
            let Some(MemberObject {
                uid,
                generation,
                spec,
            }) = object
            else {
                // What it asked for stays for the member's last minute; one that comes back begins anew.
                entry.object.uid = None;
                entry.object.deletions = entry.object.deletions.wrapping_add(1);
                return false;
            };
            entry.object.uid = Some(uid);
            entry.object.generation = generation;
            let changed = entry.spec != spec;
            entry.spec = spec;
            changed
        })
    }

    /// Whether the MemberCluster of `name` is made where it is missing.
    pub(super) fn keep_object(&self, name: &str, is_kept: bool) {
        self.change(name, |entry| entry.object.is_kept = is_kept);
    }

    /// Forgets a member.
    pub(super) fn forget(&self, name: &str) {
        self.entries.write().remove(name);
    }

    fn change<T: Default>(&self, name: &str, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut entries = self.entries.write();
        entries.get_mut(name).map(change).unwrap_or_default()
    }
}

impl Entry {
    fn unknown(now: Timestamp) -> Self {
        Self {
            access: None,
            joined: now,
            removed: None,
            source_error: None,
            followed: false,
            credentials: Credentials::default(),
            spec: MemberClusterSpec::default(),
            object: ObjectState::default(),
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

    fn grace_period(&self, default: Duration) -> Duration {
        let own = self.spec.lost_grace_period_seconds;
        own.and_then(|it| u64::try_from(it).ok())
            .map_or(default, Duration::from_secs)
    }

    fn member(&self, name: &str, key: &SetKey, grace_period: Duration) -> check::Member {
        let view = |access: &MemberAccess| access.store.workload(key);
        let (health, sync) = match &self.access {
            Some(access) if !self.is_stopped() => {
                (access.store.health(), access.store.sync_state())
            }
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
            view: self
                .access
                .as_ref()
                .map_or_else(WorkloadView::default, view),
        }
    }
}
