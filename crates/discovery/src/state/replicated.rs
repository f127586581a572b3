//! What the state gives to replicas that have no clusters of their own: the host's sets, and of pods, sources and Services those
//! that sets have.

use std::{collections::HashMap, sync::Arc};

use fedrs_api::{EndpointSetSpec, ObjectKey};

use super::State;
use crate::{
    changes::{Changes, PodKey},
    freshness::{Freshness, Staleness},
    member_state::MemberState,
    pod::{Labels, Pod},
    services::{Service, ServiceKey},
    set::{SetKey, SourceKey},
    source::Source,
};

/// What there is now of what has changed; `None` of what is gone, or is no set's any more.
#[derive(Debug, Default)]
pub(crate) struct Update {
    /// Pods by their members, with their namespaces.
    pub(crate) pods: Vec<(Arc<str>, Vec<NamespacedPod>)>,
    pub(crate) services: Vec<(Arc<str>, ServiceKey, Option<Arc<Service>>)>,
    pub(crate) sources: Vec<(ObjectKey, Option<Arc<Source>>)>,
    pub(crate) sets: Vec<(SetKey, Option<Arc<EndpointSetSpec>>)>,
    pub(crate) removed_pods: Vec<(Arc<str>, Vec<PodKey>)>,
    /// That of the host, and of all members, if it may have changed.
    pub(crate) currency: Option<(Staleness, Vec<MemberState>)>,
}

/// A pod, after its namespace.
pub(crate) type NamespacedPod = (Arc<str>, Arc<Pod>);

impl State {
    /// From now on, [`take_changes`](Self::take_changes) has what changes, or no longer.
    pub(crate) fn record_changes(&mut self, is_on: bool) {
        self.recorded = is_on.then(Changes::default);
    }

    /// What has changed since the last call, if that is recorded.
    pub(crate) fn take_changes(&mut self) -> Option<Changes> {
        let recorded = self.recorded.as_mut().map(std::mem::take);
        recorded.filter(|changes| *changes != Changes::default())
    }

    /// The pods that the set `key` has are one's, or not any more, and so is its source.
    pub(super) fn record_selected(&mut self, key: &SetKey) {
        let is_host_known = self.is_host_known();
        let Some(changes) = &mut self.recorded else {
            return;
        };
        let Some(entry) = self.sets.get(key) else {
            return;
        };
        changes.sources.extend(super::source_of(key, &entry.set));
        if !is_host_known {
            // They are recorded when they find the set.
            return;
        }
        for member in self.members.values() {
            for pod in member.pods(&key.namespace).filter(|pod| entry.selects(pod)) {
                changes.pod(&member.name, &key.namespace, &pod.name);
            }
        }
    }

    /// All sets, with their sources, and how current everything is: what a replica gets first.
    pub(crate) fn all_but_pods(&self) -> Changes {
        Changes {
            sets: self.sets.keys().cloned().collect(),
            sources: self.by_source.keys().cloned().collect(),
            currency: true,
            ..Changes::default()
        }
    }

    /// The members, and the namespaces in which they have pods.
    pub(crate) fn namespaces(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let members = self.members.values();
        let namespaces = members.flat_map(|member| {
            let namespaces = member.namespaces();
            namespaces.map(|namespace| (Arc::clone(&member.name), Arc::clone(namespace)))
        });
        namespaces.collect()
    }

    /// The pods in a namespace of a member that sets have.
    pub(crate) fn selected_pods(&self, member: &str, namespace: &Arc<str>) -> Vec<NamespacedPod> {
        // Pods with the same labels have the same sets.
        let mut are_selected = HashMap::<*const Labels, bool>::new();
        let pods = self.members.get(member).into_iter();
        let pods = pods.flat_map(|member| member.pods(namespace));
        let selected = pods.filter(|pod| {
            let is_selected = are_selected.entry(Arc::as_ptr(&pod.labels));
            *is_selected.or_insert_with(|| self.is_selected(namespace, pod))
        });
        selected
            .map(|pod| (Arc::clone(namespace), Arc::clone(pod)))
            .collect()
    }

    /// Whether a set has the pod, whatever its state.
    fn is_selected(&self, namespace: &Arc<str>, pod: &Pod) -> bool {
        let mut candidates = self.index.candidates(namespace, &pod.labels);
        candidates.any(|key| self.sets.get(key).is_some_and(|entry| entry.selects(pod)))
    }

    /// What there is now of what has changed.
    pub(crate) fn update_of(&self, changes: &Changes) -> Update {
        let mut update = Update::default();
        for (name, keys) in &changes.pods {
            let member = self.members.get(name);
            let (mut pods, mut removed) = (Vec::new(), Vec::new());
            for (namespace, pod_name) in keys {
                let pod = member.and_then(|member| member.pod(namespace, pod_name));
                match pod.filter(|pod| self.is_selected(namespace, pod)) {
                    Some(pod) => pods.push((Arc::clone(namespace), Arc::clone(pod))),
                    None => removed.push((Arc::clone(namespace), pod_name.clone())),
                }
            }
            update.pods.push((Arc::clone(name), pods));
            update.removed_pods.push((Arc::clone(name), removed));
        }
        for source in &changes.sources {
            self.update_source(source, &mut update);
        }
        let spec = |key: &SetKey| self.sets.get(key).map(|entry| Arc::clone(&entry.spec));
        update.sets = (changes.sets.iter())
            .map(|key| (key.clone(), spec(key)))
            .collect();
        update.currency = changes.currency.then(|| self.currency());
        update
    }

    fn update_source(&self, source: &SourceKey, update: &mut Update) {
        let is_used = self.by_source.contains_key(source);
        match source {
            SourceKey::Set(key) => {
                let source = self.sources.get(key).filter(|_| is_used);
                update.sources.push((key.clone(), source.cloned()));
            }
            SourceKey::Service(key) => {
                for member in self.members.values() {
                    let service = member.services.get(key).filter(|_| is_used);
                    let name = Arc::clone(&member.name);
                    update.services.push((name, key.clone(), service.cloned()));
                }
            }
        }
    }

    /// How current what is known of the host is, and of all members.
    pub(crate) fn currency(&self) -> (Staleness, Vec<MemberState>) {
        let members = self.members.values().map(MemberState::of);
        (self.host_staleness(), members.collect())
    }

    /// How current what is known of the host is: as its kind that is the least.
    pub(crate) fn host_staleness(&self) -> Staleness {
        let kinds = self.host.values().map(Freshness::staleness);
        let both = kinds.reduce(Staleness::and);
        both.unwrap_or_default()
    }
}
