//! What is known: EndpointSets, their sources, and the pods of all members. Pure: no clock, no lock, no IO.

mod entry;
mod replicated;
mod replicating;
mod stored;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use controller_base::required_labels::RequiredLabels;
use fedrs_api::{
    EndpointAddresses, EndpointSet, EndpointSetSpec, FieldError, ObjectKey, SetKind,
    ValidEndpointSet, ValidEndpointSource,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use planted_bugs::{PlantedBug, is_planted};

pub(crate) use self::{
    entry::Entry,
    replicated::{NamespacedPod, Update},
};
use crate::{
    balancer::Balancers,
    changes::Changes,
    freshness::Freshness,
    member::{Member, PodChange},
    node::NodeObject,
    pod::{Pod, PodObject, Shared},
    services::{Service, ServiceKey},
    set::{ParsedSelector, Selectors, SetKey, SourceKey},
    source::Source,
};

/// The state of all that discovery watches.
#[derive(Debug, Default)]
pub(crate) struct State {
    sets: BTreeMap<SetKey, Entry>,
    index: RequiredLabels<SetKey>,
    /// Federated sets.
    sources: BTreeMap<ObjectKey, Arc<Source>>,
    /// The sets that have a source.
    by_source: BTreeMap<SourceKey, BTreeSet<SetKey>>,
    /// The kinds of the host, by their names in messages.
    host: BTreeMap<&'static str, Freshness>,
    /// How many changes sets and sources had since the start.
    host_revision: u64,
    members: BTreeMap<Arc<str>, Member>,
    /// What the pods of all members have in common.
    shared: Shared,
    /// What is older counts as ended in clusters that are lost, if anything does.
    ended_before: Option<Timestamp>,
    /// The members of which changes have been missing since before that.
    ended: Arc<BTreeSet<Arc<str>>>,
    /// Sets that have changed since [`take_changed`](State::take_changed).
    changed: BTreeSet<SetKey>,
    /// Whether a member is new, known, or stale, since [`take_members_changed`](State::take_members_changed).
    have_members_changed: bool,
    /// What has changed since [`take_changes`](State::take_changes), if a replica follows it.
    recorded: Option<Changes>,
}

impl State {
    /// The set `key`.
    pub(crate) fn set(&self, key: &SetKey) -> Option<&Entry> {
        self.sets.get(key)
    }

    /// All sets.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &SetKey> {
        self.sets.keys()
    }

    /// The sets that have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<SetKey> {
        std::mem::take(&mut self.changed)
    }

    /// Whether a member is new, known or stale, or not any more, since the last call.
    pub(crate) fn take_members_changed(&mut self) -> bool {
        std::mem::take(&mut self.have_members_changed)
    }

    /// All members.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// A member is known by its kubeconfig.
    pub(crate) fn add_member(&mut self, name: &Arc<str>) {
        let member = || Member::new(Arc::clone(name));
        if !self.members.contains_key(name) {
            // Snapshots of the host name them.
            self.host_revision += 1;
        }
        self.members.entry(Arc::clone(name)).or_insert_with(member);
        self.members_changed();
    }

    fn members_changed(&mut self) {
        self.have_members_changed = true;
        self.refresh_ended();
        if let Some(changes) = &mut self.recorded {
            changes.currency = true;
        }
    }

    /// Changes what is known of a member; `change` returns the pods that are other ones now.
    fn with_member<C: IntoIterator<Item = PodChange>>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Member, &mut Shared) -> C,
    ) {
        let Some(member) = self.members.get_mut(name) else {
            return;
        };
        let cluster = Arc::clone(&member.name);
        let freshness =
            |member: &Member| (member.freshness.clone(), member.services.freshness.clone());
        let before = freshness(member);
        let changes: Vec<_> = change(member, &mut self.shared).into_iter().collect();
        member.revision += changes.len() as u64;
        let has_changed = before != freshness(member);
        if has_changed {
            self.members_changed();
        }
        for change in changes {
            self.pod_changed(&cluster, &change);
        }
    }

    /// Where a cluster is lost, endpoints of which changes have been missing since before this time end (D2).
    pub(crate) fn end_lost(&mut self, before: Timestamp) {
        self.ended_before = Some(before);
        self.refresh_ended();
    }

    fn refresh_ended(&mut self) {
        let Some(before) = self.ended_before else {
            return;
        };
        let members = self.members.values();
        let ended = members.filter(|member| {
            let since = member.freshness.stale_since;
            since.is_some_and(|since| since < before)
        });
        let ended: BTreeSet<_> = ended.map(|member| Arc::clone(&member.name)).collect();
        if ended == *self.ended {
            return;
        }
        let ended = Arc::new(ended);
        for (key, entry) in &mut self.sets {
            if entry.is_lost_in(ended.symmetric_difference(&self.ended)) {
                self.changed.insert(key.clone());
            }
            entry.ended = Arc::clone(&ended);
        }
        self.ended = ended;
    }

    /// A state that has nothing of these kinds of the host yet.
    pub(crate) fn of_kinds(kinds: impl IntoIterator<Item = &'static str>) -> Self {
        let kinds = kinds.into_iter();
        Self {
            host: kinds.map(|kind| (kind, Freshness::default())).collect(),
            ..Self::default()
        }
    }

    /// The kinds of the host, and how current what is known of them is.
    pub(crate) fn host(&self) -> impl Iterator<Item = (&'static str, &Freshness)> {
        self.host.iter().map(|(kind, freshness)| (*kind, freshness))
    }

    /// A kind of the host has been listed, may be stale from now on, or has caught up.
    pub(crate) fn refresh_host(&mut self, kind: &str, change: impl FnOnce(&mut Freshness)) {
        let was_known = self.is_host_known();
        if let Some(freshness) = self.host.get_mut(kind) {
            change(freshness);
        }
        if !was_known && self.is_host_known() {
            self.find_sets_of_all();
        }
        if let Some(changes) = &mut self.recorded {
            changes.currency = true;
        }
    }

    /// Whether all kinds of the host have been listed. Until then nothing is answered, and no set looks for its pods, each of which
    /// would look at all of them: once it is known, each pod finds its sets.
    fn is_host_known(&self) -> bool {
        self.host.values().all(|freshness| freshness.is_known)
    }

    /// A pod of a member exists, was created or changed.
    pub(crate) fn apply_pod(&mut self, member: &str, pod: PodObject) {
        self.with_member(member, |member, shared| member.apply(pod, shared));
    }

    /// A pod of a member is gone.
    pub(crate) fn remove_pod(&mut self, member: &str, namespace: &str, name: &str) {
        self.with_member(member, |member, _| member.remove(namespace, name));
    }

    /// A list of the pods of a member begins.
    pub(crate) fn begin_pods(&mut self, member: &str) {
        self.with_member(member, |member, _| {
            member.begin_list();
            let forgets = is_planted(PlantedBug::EndpointsForgottenByRelist);
            let forgotten = forgets.then(|| member.remove_unlisted());
            forgotten.unwrap_or_default()
        });
    }

    /// A pod in the list of a member can't be read.
    pub(crate) fn unreadable_pod(&mut self, member: &str) {
        self.with_member(member, |member, _| {
            member.unreadable();
            None
        });
    }

    /// The list of the pods of a member is complete.
    pub(crate) fn end_pods(&mut self, member: &str) {
        self.with_member(member, |member, _| member.end_list());
    }

    /// A node of a member is gone.
    pub(crate) fn remove_node(&mut self, member: &str, name: &str) {
        self.with_member(member, |member, _| {
            member.remove_node(name);
            None
        });
    }

    /// A node of a member exists, was created or changed.
    pub(crate) fn apply_node(&mut self, member: &str, node: NodeObject) {
        self.with_member(member, |member, shared| {
            member.apply_node(node.into_node(), shared)
        });
    }

    /// Events of a member may be missing from now on.
    pub(crate) fn stale(&mut self, member: &str, now: Timestamp, must_list: bool) {
        self.with_member(member, |member, _| {
            member.freshness.stale(now, must_list);
            None
        });
    }

    /// All events that a member had have arrived.
    pub(crate) fn caught_up(&mut self, member: &str) {
        self.with_member(member, |member, _| {
            member.freshness.caught_up();
            None
        });
    }

    /// A Service of a member exists, was created or changed. One without a selector has no pods, as one that is gone.
    pub(crate) fn apply_service(
        &mut self,
        member: &str,
        key: &ServiceKey,
        service: Option<Service>,
    ) {
        let Some(member) = self.members.get_mut(member) else {
            return;
        };
        if member.services.set(key, service) {
            member.revision += 1;
            self.source_changed(&SourceKey::Service(key.clone()));
        }
    }

    /// The list of the Services of a member is complete: these exist.
    pub(crate) fn end_services(&mut self, member: &str, listed: &HashSet<ServiceKey>) {
        let known = self.members.get(member);
        let gone = known.map(|known| known.services.unlisted(listed));
        for service in gone.into_iter().flatten() {
            self.apply_service(member, &service, None);
        }
    }

    /// How current what is known of the Services of a member is has changed.
    pub(crate) fn refresh_services(&mut self, member: &str, change: impl FnOnce(&mut Freshness)) {
        self.with_member(member, |member, _| {
            change(&mut member.services.freshness);
            None
        });
    }

    /// The Services whose pods sets have.
    pub(crate) fn services_of_sets(&self) -> impl Iterator<Item = &SourceKey> {
        let sources = self.by_source.keys();
        sources.filter(|source| matches!(source, SourceKey::Service(_)))
    }

    fn pod_changed(&mut self, cluster: &Arc<str>, change: &PodChange) {
        let pods = [&change.before, &change.now].into_iter().flatten();
        let labels: BTreeSet<_> = pods.clone().map(|pod| &pod.labels).collect();
        let candidates = labels
            .into_iter()
            .flat_map(|labels| self.index.candidates(&change.namespace, labels));
        let candidates: BTreeSet<_> = candidates.cloned().collect();
        let Some(name) = pods.map(|pod| &pod.name).next() else {
            return;
        };
        if let Some(changes) = &mut self.recorded
            && !candidates.is_empty()
        {
            changes.pod(cluster, &change.namespace, name);
        }
        for key in candidates {
            self.refresh(&key, cluster, name, change.now.as_ref());
        }
    }

    /// What a pod is to the set `key` now.
    fn refresh(&mut self, key: &SetKey, cluster: &Arc<str>, name: &str, pod: Option<&Arc<Pod>>) {
        let entry = self.sets.get_mut(key);
        if entry.is_some_and(|entry| entry.refresh([(&**cluster, name, pod)]))
            && !self.changed.contains(key)
        {
            self.changed.insert(key.clone());
        }
    }

    /// An EndpointSet exists, was created or changed.
    pub(crate) fn apply_set(&mut self, object: &EndpointSet) {
        self.apply_spec(SetKey::of(object), &object.spec);
    }

    /// An EndpointSet has this spec.
    pub(crate) fn apply_spec(&mut self, key: SetKey, spec: &EndpointSetSpec) {
        let set = ValidEndpointSet::check(spec).map(Arc::new);
        if self.sets.get(&key).is_some_and(|known| known.set == set) {
            return;
        }
        self.record_set(&key);
        self.put_set(key, Arc::new(spec.clone()), set);
    }

    fn record_set(&mut self, key: &SetKey) {
        if let Some(changes) = &mut self.recorded {
            changes.sets.insert(key.clone());
        }
    }

    fn put_set(
        &mut self,
        key: SetKey,
        spec: Arc<EndpointSetSpec>,
        set: Result<Arc<ValidEndpointSet>, Vec<FieldError>>,
    ) {
        self.forget(&key);
        self.host_revision += 1;
        if let Some(source) = source_of(&key, &set) {
            self.by_source
                .entry(source)
                .or_default()
                .insert(key.clone());
        }
        let selectors = set
            .as_ref()
            .map_or(Selectors::All(None), |set| self.selectors_of(&key, set));
        for selector in selectors.iter() {
            self.index.insert(&key.namespace, &selector.labels, &key);
        }
        let federated = match source_of(&key, &set) {
            Some(SourceKey::Set(federated)) => self.sources.get(&federated).cloned(),
            _ => None,
        };
        let balancers = (set.as_ref().ok()).and_then(|set| self.balancers_of(&key, set));
        let ended = Arc::clone(&self.ended);
        let mut entry = Entry::new(set, spec, selectors, balancers, federated, ended);
        if self.is_host_known() {
            let pods = (self.members.values()).flat_map(|member| member.pods(&key.namespace));
            entry.refresh(pods.map(|pod| (&*pod.cluster, &*pod.name, Some(pod))));
        }
        self.sets.insert(key.clone(), entry);
        self.record_selected(&key);
        self.changed.insert(key);
    }

    fn selectors_of(&self, key: &SetKey, set: &ValidEndpointSet) -> Selectors {
        let parse = |labels: &LabelSelector| ParsedSelector::parse(labels);
        match (&set.source, SourceKey::of(key, set)) {
            (ValidEndpointSource::Selector(labels), _) => Selectors::All(parse(labels)),
            (_, Some(SourceKey::Set(federated))) => {
                let source = self.sources.get(&federated);
                Selectors::All(source.and_then(|source| parse(&source.selector)))
            }
            (_, Some(SourceKey::Service(service))) => {
                let selector = |member: &Member| {
                    let selector = parse(&member.services.get(&service)?.selector)?;
                    Some((Arc::clone(&member.name), selector))
                };
                Selectors::OfMembers(self.members.values().filter_map(selector).collect())
            }
            (_, None) => Selectors::All(None),
        }
    }

    /// The load balancers of a set, if it has those.
    fn balancers_of(&self, key: &SetKey, set: &ValidEndpointSet) -> Option<Balancers> {
        let Some(SourceKey::Service(service)) = SourceKey::of(key, set) else {
            return None;
        };
        let balancer = |member: &Member| {
            let known = member.services.get(&service)?;
            let balancer = known.balancer.as_ref()?;
            let balancer = balancer.in_place_of_pods(&member.name, &service.name);
            Some((Arc::clone(&member.name), balancer))
        };
        let all = self.members.values().filter_map(balancer);
        let are_endpoints = set.addresses == EndpointAddresses::LoadBalancers;
        are_endpoints.then(|| Balancers::new(set, all.collect()))
    }

    /// An EndpointSet is gone.
    pub(crate) fn remove_set(&mut self, key: &SetKey) {
        if self.forget(key) {
            self.record_set(key);
            self.changed.insert(key.clone());
        }
    }

    fn forget(&mut self, key: &SetKey) -> bool {
        self.record_selected(key);
        let Some(entry) = self.sets.remove(key) else {
            return false;
        };
        self.host_revision += 1;
        for selector in entry.selectors.iter() {
            self.index.remove(&key.namespace, &selector.labels, key);
        }
        if let Some(source) = source_of(key, &entry.set)
            && let Some(sets) = self.by_source.get_mut(&source)
        {
            sets.remove(key);
            if sets.is_empty() {
                self.by_source.remove(&source);
            }
        }
        true
    }

    /// The list of EndpointSets is complete: these exist.
    pub(crate) fn end_sets(&mut self, listed: &HashSet<SetKey>) {
        let gone = self.sets.keys().filter(|key| !listed.contains(*key));
        for key in gone.cloned().collect::<Vec<_>>() {
            self.remove_set(&key);
        }
    }

    /// A federated set exists, was created or changed.
    pub(crate) fn apply_source(&mut self, key: &ObjectKey, source: Source) {
        let known = self.sources.get(key);
        if known.is_none_or(|known| **known != source) {
            self.sources.insert(key.clone(), Arc::new(source));
            self.host_revision += 1;
            self.source_changed(&SourceKey::Set(key.clone()));
        }
    }

    /// A federated set is gone.
    pub(crate) fn remove_source(&mut self, key: &ObjectKey) {
        if self.sources.remove(key).is_some() {
            self.host_revision += 1;
            self.source_changed(&SourceKey::Set(key.clone()));
        }
    }

    /// The list of federated sets of a kind is complete: these exist.
    pub(crate) fn end_sources(&mut self, kind: SetKind, listed: &HashSet<ObjectKey>) {
        let of_kind = self.sources.keys().filter(|key| key.kind == kind);
        let gone = of_kind.filter(|key| !listed.contains(*key));
        for key in gone.cloned().collect::<Vec<_>>() {
            self.remove_source(&key);
        }
    }

    /// A source selects other pods, is lost in other clusters, or does not exist any more.
    fn source_changed(&mut self, source: &SourceKey) {
        if let Some(changes) = &mut self.recorded
            && self.by_source.contains_key(source)
        {
            changes.sources.insert(source.clone());
        }
        self.select_again(source);
    }

    /// The EndpointSets with this source have the pods that it selects now.
    fn select_again(&mut self, source: &SourceKey) {
        for key in self.by_source.get(source).cloned().unwrap_or_default() {
            if let Some(Entry { spec, set, .. }) = self.sets.get(&key) {
                let (spec, set) = (Arc::clone(spec), set.clone());
                self.put_set(key, spec, set);
            }
        }
    }
}

/// What a set has the pods of, if it is valid and does not select them itself.
fn source_of(
    key: &SetKey,
    set: &Result<Arc<ValidEndpointSet>, Vec<FieldError>>,
) -> Option<SourceKey> {
    SourceKey::of(key, set.as_ref().ok()?)
}

#[cfg(test)]
#[path = "state_tests.rs"]
pub(crate) mod tests;
