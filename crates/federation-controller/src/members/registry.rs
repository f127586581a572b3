//! Which members there are, as checks see them. Short locks; written by the members' task alone.

use std::{collections::BTreeMap, time::Duration};

use cluster_informer::{Health, SetView, Sync};
use fedrs_api::{MemberClusterSpec, SetKey};
use jiff::Timestamp;
use parking_lot::RwLock;

use crate::{check, executor::MemberAccess};

/// One member.
#[derive(Clone)]
struct Entry {
    /// How to reach it; none if its kubeconfig never could be used.
    access: Option<MemberAccess>,
    joined: Timestamp,
    removed: Option<Timestamp>,
    /// What is wrong with its kubeconfig.
    broken: Option<String>,
    spec: MemberClusterSpec,
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

    /// How to reach `name`.
    pub(crate) fn access(&self, name: &str) -> Option<MemberAccess> {
        self.entries.read().get(name)?.access.clone()
    }

    /// What is wrong with the kubeconfig of `name`, and since when it is gone.
    pub(crate) fn trouble(&self, name: &str) -> (Option<String>, Option<Timestamp>) {
        let entries = self.entries.read();
        entries
            .get(name)
            .map_or((None, None), |it| (it.broken.clone(), it.removed))
    }

    /// Whether `name` is a member, be it lost.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.entries.read().contains_key(name)
    }

    /// `access` reaches the member from now on.
    pub(crate) fn put(&self, access: MemberAccess, now: Timestamp) {
        let mut entries = self.entries.write();
        let spec = entries
            .get(&*access.name)
            .map(|entry| entry.spec.clone())
            .unwrap_or_default();
        let name = access.name.to_string();
        let entry = Entry {
            access: Some(access),
            joined: now,
            removed: None,
            broken: None,
            spec,
        };
        entries.insert(name, entry);
    }

    /// The kubeconfig of `name` can't be used; a client made from an earlier one goes on.
    pub(crate) fn put_broken(&self, name: &str, message: String, now: Timestamp) {
        let mut entries = self.entries.write();
        let entry = entries
            .entry(name.to_owned())
            .or_insert_with(|| Entry::unknown(now));
        entry.removed = None;
        entry.broken = Some(message);
    }

    /// The kubeconfig of `name` is gone since `now`, if it isn't already.
    pub(crate) fn put_removed(&self, name: &str, now: Timestamp) {
        let mut entries = self.entries.write();
        let entry = entries
            .entry(name.to_owned())
            .or_insert_with(|| Entry::unknown(now));
        entry.removed.get_or_insert(now);
        entry.broken = None;
    }

    /// What the MemberCluster of `name` asks for. Answers whether that changes decisions.
    pub(crate) fn put_spec(&self, name: &str, spec: &MemberClusterSpec) -> bool {
        let mut entries = self.entries.write();
        let Some(entry) = entries.get_mut(name) else {
            return false;
        };
        let changed = entry.spec != *spec;
        entry.spec = spec.clone();
        changed
    }

    /// Forgets a member that is gone and that nobody lists any more.
    pub(crate) fn forget(&self, name: &str) -> bool {
        let mut entries = self.entries.write();
        let gone = entries
            .get(name)
            .is_some_and(|entry| entry.removed.is_some());
        gone && entries.remove(name).is_some()
    }
}

impl Entry {
    fn unknown(now: Timestamp) -> Self {
        Self {
            access: None,
            joined: now,
            removed: None,
            broken: None,
            spec: MemberClusterSpec::default(),
        }
    }

    fn member(&self, name: &str, key: &SetKey, grace_period: Duration) -> check::Member {
        let (health, sync, view) = match &self.access {
            Some(access) => (
                access.store.health(),
                access.store.sync(),
                access.store.set_view(key),
            ),
            None => (Health::Unknown, Sync::NotSynced, SetView::default()),
        };
        let own = self
            .spec
            .lost_grace_period_seconds
            .and_then(|it| u64::try_from(it).ok());
        check::Member {
            name: name.to_owned(),
            schedulable: !self.spec.unschedulable,
            draining: self.spec.drain,
            grace_period: own.map_or(grace_period, Duration::from_secs),
            joined: self.joined,
            removed: self.removed,
            unusable: self.broken.clone().filter(|_| self.access.is_none()),
            health,
            sync,
            busy: false,
            view,
        }
    }
}
