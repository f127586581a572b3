//! What the state takes from snapshots, and gives to them.

use std::{collections::HashMap, sync::Arc};

use fedrs_api::ValidEndpointSet;
use jiff::Timestamp;

use super::State;
use crate::{
    freshness::Freshness,
    kept::{KeptHost, KeptMember, KeptPods, LoadedSnapshots, Mark},
    member::Member,
    pod::{Labels, Pod},
};

impl State {
    /// Takes what snapshots have, before anything is watched. The host comes first: then each pod finds its sets, instead of
    /// each set its pods among all.
    pub(crate) fn load(&mut self, loaded: LoadedSnapshots) {
        self.shared = loaded.shared;
        if let Some(host) = loaded.host {
            self.load_host(host);
        }
        for member in loaded.members {
            self.load_member(member);
        }
        // Which pods they have, the members say.
        for service in self.services_of_sets().cloned().collect::<Vec<_>>() {
            self.select_again(&service);
        }
    }

    fn load_host(&mut self, host: KeptHost) {
        for freshness in self.host.values_mut() {
            *freshness = Freshness::loaded(host.mark.current_at);
        }
        self.sources.extend(host.sources);
        for (key, spec) in host.sets {
            let set = ValidEndpointSet::check(&spec).map(Arc::new);
            self.put_set(key, spec, set);
        }
        self.host_revision = 0;
    }

    fn load_member(&mut self, loaded: KeptMember) {
        let name = Arc::clone(&loaded.name);
        self.find_sets(&loaded.pods);
        self.members.insert(name, Member::loaded(loaded));
        self.have_members_changed = true;
    }

    /// Each pod of all members finds its sets.
    pub(super) fn find_sets_of_all(&mut self) {
        let members: Vec<_> = self.members.keys().cloned().collect();
        for name in members {
            let pods = self.members.get(&name).map(Member::kept);
            self.find_sets(&pods.unwrap_or_default());
        }
    }

    /// Each of these pods of a member finds its sets.
    fn find_sets(&mut self, pods: &KeptPods) {
        for (namespace, pods) in pods {
            // Pods with the same labels have the same sets.
            let mut alike = HashMap::<*const Labels, Vec<&Arc<Pod>>>::new();
            for pod in pods {
                let pods = alike.entry(Arc::as_ptr(&pod.labels)).or_default();
                pods.push(pod);
            }
            for pods in alike.values() {
                self.find_sets_of_alike(namespace, pods);
            }
        }
    }

    /// These pods of a member, which have the same labels, find their sets.
    fn find_sets_of_alike(&mut self, namespace: &Arc<str>, pods: &[&Arc<Pod>]) {
        let Some(first) = pods.first() else {
            return;
        };
        let keys = self.index.candidates(namespace, &first.labels);
        let keys: Vec<_> = keys.cloned().collect();
        if let Some(changes) = self.recorded.as_mut().filter(|_| !keys.is_empty()) {
            for pod in pods {
                changes.pod(&pod.cluster, namespace, &pod.name);
            }
        }
        for key in keys {
            let now = pods
                .iter()
                .map(|pod| (&*pod.cluster, &*pod.name, Some(*pod)));
            let entry = self.sets.get_mut(&key);
            if entry.is_some_and(|entry| entry.refresh(now)) {
                self.changed.insert(key);
            }
        }
    }

    /// How many snapshots are in use: of the host, and of members.
    pub(crate) fn loaded(&self) -> usize {
        let is_host_loaded = self.host.values().any(|freshness| freshness.is_loaded);
        let members = self.members.values();
        let members = members.filter(|member| member.freshness.is_loaded);
        usize::from(is_host_loaded) + members.count()
    }

    /// Since when changes of the host may be missing.
    pub(crate) fn host_stale_since(&self) -> Option<Timestamp> {
        let kinds = self.host.values();
        kinds.filter_map(|freshness| freshness.stale_since).min()
    }

    /// What a snapshot of the host is marked with; `None` while none should be written: one that lacks what has not been
    /// listed yet would replace one that has it, and what is loaded is that of a snapshot.
    pub(crate) fn host_mark(&self, now: Timestamp) -> Option<Mark> {
        let kinds = self.host.values();
        let marks = kinds.map(|freshness| mark(freshness, self.host_revision, now));
        let marks: Option<Vec<_>> = marks.collect();
        marks?.into_iter().min_by_key(|mark| mark.current_at)
    }

    /// What a snapshot of a member is marked with, as that of the host.
    pub(crate) fn member_mark(member: &Member, now: Timestamp) -> Option<Mark> {
        mark(&member.freshness, member.revision, now)
    }

    /// What a snapshot of the host has.
    pub(crate) fn keep_host(&self, now: Timestamp) -> Option<KeptHost> {
        let sets = self.sets.iter();
        let sources = self.sources.iter();
        Some(KeptHost {
            mark: self.host_mark(now)?,
            sets: sets
                .map(|(key, entry)| (key.clone(), Arc::clone(&entry.spec)))
                .collect(),
            sources: sources
                .map(|(key, source)| (key.clone(), Arc::clone(source)))
                .collect(),
            members: Some(self.members.keys().map(Arc::clone).collect()),
        })
    }

    /// What a snapshot of a member has.
    pub(crate) fn keep_member(&self, name: &str, now: Timestamp) -> Option<KeptMember> {
        let member = self.members.get(name)?;
        Some(KeptMember {
            name: Arc::clone(&member.name),
            mark: Self::member_mark(member, now)?,
            pods: member.kept(),
            services: member.services.kept(),
        })
    }
}

/// What is known while a member is stale, or listed again, is not less than before: nothing is removed by mistake.
fn mark(freshness: &Freshness, revision: u64, now: Timestamp) -> Option<Mark> {
    let is_own = freshness.is_known && !freshness.is_loaded;
    is_own.then(|| Mark {
        revision,
        current_at: freshness.stale_since.unwrap_or(now),
    })
}
