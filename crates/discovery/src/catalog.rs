//! What can be looked up: the endpoints of each set, published when they change.
//!
//! Readers never wait for writers: a lookup loads a pointer. Before the host, and the members, have been listed once, nothing is
//! published, and answers say what is waited for: an answer that lacks what is not known yet would remove endpoints that run.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use fedrs_api::{FieldError, ValidEndpointSet};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    freshness::Freshness,
    kept::LoadedSnapshots,
    member_state::MemberState,
    replicas::{ReplicaId, Replicas},
    report::SetReport,
    set::{SetKey, is_of_service},
    snapshot::{EndpointSnapshot, concerns},
    state::{Entry, State, Update},
};

/// The endpoints of all sets. Shared by watches, which change it, and those who look sets up.
#[derive(Debug)]
pub struct Catalog {
    inner: Mutex<Inner>,
    /// What is published of each set.
    sets: ArcSwap<HashMap<SetKey, Arc<Cell>>>,
    members: ArcSwap<Vec<MemberState>>,
    /// What is waited for; none once answers are complete.
    waiting: ArcSwapOption<Waiting>,
    /// Signals what is not a change of one set.
    others_changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    are_members_known: bool,
    has_given_up: bool,
    is_serving: bool,
    /// The latest version.
    version: u64,
    feeder: Feeder,
    /// Replicas that are fed by this one.
    replicas: Replicas,
    /// Sets whose status may be another one; `None` if nobody writes statuses.
    unreported: Option<BTreeSet<SetKey>>,
}

/// The kind that the sets of an upstream are, with their sources: they are as current as each other.
const UPSTREAM: &str = "EndpointSets of an upstream";

/// Who changes the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeder {
    /// Watches of the host and the members.
    Clusters,
    /// Another replica.
    Upstream,
}

/// What is published of a set, and a signal when that changes.
#[derive(Debug)]
struct Cell {
    current: ArcSwap<Published>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
enum Published {
    Endpoints(Arc<EndpointSnapshot>),
    /// No member that is known has it.
    NoSource(Arc<ValidEndpointSet>),
    Invalid(Vec<FieldError>),
}

/// What answers wait for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Waiting {
    /// The first answer of an upstream.
    #[error("waiting for the first answer of an upstream")]
    Upstream,
    /// The first list of a kind of the host.
    #[error("waiting for the first list of {0} of the host")]
    Host(&'static str),
    /// The kubeconfigs of members.
    #[error("waiting for the kubeconfigs of the members")]
    Members,
    /// The first lists of pods of these members.
    #[error("waiting for the first list of pods of {}", .0.join(", "))]
    Pods(Vec<String>),
    /// The first lists of Services of these members, whose pods sets have.
    #[error("waiting for the first list of Services of {}", .0.join(", "))]
    Services(Vec<String>),
}

/// The result of a lookup.
#[derive(Debug)]
pub enum Lookup {
    /// The endpoints, as far as they are known.
    Found(Arc<EndpointSnapshot>),
    /// It is not known yet.
    Waiting(Waiting),
    /// There is no such set.
    NotFound,
    /// The federated set or Service whose pods it has does not exist.
    NoSource,
    /// The set is invalid.
    Invalid(Vec<FieldError>),
}

impl Catalog {
    /// A catalog that waits for lists of these kinds of the host, and for all members.
    #[must_use]
    pub fn waiting_for(kinds: impl IntoIterator<Item = &'static str>) -> Arc<Self> {
        Self::new(State::of_kinds(kinds), Feeder::Clusters)
    }

    /// A catalog that waits for another replica.
    #[must_use]
    pub(crate) fn of_upstream() -> Arc<Self> {
        Self::new(State::of_kinds([UPSTREAM]), Feeder::Upstream)
    }

    fn new(state: State, feeder: Feeder) -> Arc<Self> {
        let inner = Inner {
            state,
            feeder,
            replicas: Replicas::default(),
            are_members_known: false,
            has_given_up: false,
            is_serving: false,
            version: 0,
            unreported: None,
        };
        let waiting = inner.waiting();
        Arc::new(Self {
            inner: Mutex::new(inner),
            sets: ArcSwap::default(),
            members: ArcSwap::default(),
            waiting: ArcSwapOption::from_pointee(waiting),
            others_changed: watch::Sender::default(),
        })
    }

    /// Changes the state, and publishes what that changes.
    pub(crate) fn update(&self, change: impl FnOnce(&mut State)) {
        let mut inner = self.inner.lock();
        change(&mut inner.state);
        if inner.state.take_members_changed() {
            let members = inner.state.members().map(MemberState::of);
            self.members.store(Arc::new(members.collect()));
            self.look_for_missing(&mut inner);
            inner.report_all();
            self.others_changed.send_replace(());
        }
        self.publish(&mut inner);
    }

    /// A kind of the host has been listed.
    pub(crate) fn listed(&self, kind: &str) {
        self.proceed(|inner| inner.state.refresh_host(kind, Freshness::listed));
    }

    /// How current what is known of a kind of the host is has changed.
    pub(crate) fn refresh_host(&self, kind: &str, change: impl FnOnce(&mut Freshness)) {
        let mut inner = self.inner.lock();
        inner.state.refresh_host(kind, change);
        inner.tell_replicas();
    }

    /// All that there is now comes from an upstream, which waits for nothing.
    pub(crate) fn replicated(&self) {
        self.proceed(|inner| {
            inner.are_members_known = true;
            inner.has_given_up = true;
        });
    }

    /// From now on, [`take_update`](Self::take_update) has what changes, and the receiver says so. Until
    /// [`end_replica`](Self::end_replica).
    pub(crate) fn add_replica(&self) -> (ReplicaId, watch::Receiver<()>) {
        let mut inner = self.inner.lock();
        if inner.replicas.is_empty() {
            inner.state.record_changes(true);
        }
        inner.replicas.add()
    }

    pub(crate) fn end_replica(&self, replica: ReplicaId) {
        let mut inner = self.inner.lock();
        inner.replicas.remove(replica);
        if inner.replicas.is_empty() {
            inner.state.record_changes(false);
        }
    }

    /// What has changed since the last call, as it is now; `with_currency` also how current it is if that has not changed.
    pub(crate) fn take_update(&self, replica: ReplicaId, with_currency: bool) -> Update {
        let mut inner = self.inner.lock();
        let mut changes = inner.replicas.take(replica);
        changes.currency |= with_currency;
        inner.state.update_of(&changes)
    }

    /// Takes what snapshots have, before anything is watched.
    pub(crate) fn load(&self, loaded: LoadedSnapshots) {
        let version = loaded.version;
        self.update(|state| state.load(loaded));
        self.proceed(|inner| inner.version = version);
    }

    /// What `look` sees of the state, and the latest version. Holds up all watches meanwhile.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> (T, u64) {
        let inner = self.inner.lock();
        (look(&inner.state), inner.version)
    }

    /// All members have been reported that had a kubeconfig at the start.
    pub(crate) fn members_known(&self) {
        self.proceed(|inner| inner.are_members_known = true);
    }

    /// Members that have not been listed yet are not waited for any longer.
    pub(crate) fn give_up(&self) {
        self.proceed(|inner| inner.has_given_up = true);
    }

    /// Something that was waited for has happened.
    fn proceed(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock();
        change(&mut inner);
        self.look_for_missing(&mut inner);
        self.publish(&mut inner);
        self.others_changed.send_replace(());
    }

    /// Answers begin once nothing is waited for, and do not end again.
    fn look_for_missing(&self, inner: &mut Inner) {
        if !inner.is_serving {
            let waiting = inner.waiting();
            inner.is_serving = waiting.is_none();
            self.waiting.store(waiting.map(Arc::new));
        }
    }

    /// Publishes the sets that have changed, once answers have begun.
    fn publish(&self, inner: &mut Inner) {
        inner.tell_replicas();
        if !inner.is_serving {
            return;
        }
        let changed = inner.state.take_changed();
        if changed.is_empty() {
            return;
        }
        if let Some(unreported) = &mut inner.unreported {
            unreported.extend(changed.iter().cloned());
        }
        let version = inner.next_version();
        let known = self.sets.load();
        let mut others = Vec::new();
        for key in changed {
            let published = (inner.state.set(&key)).map(|entry| Published::of(entry, version));
            match (known.get(&key), published) {
                (Some(cell), Some(published)) => cell.publish(published, version),
                (_, published) => others.push((key, published)),
            }
        }
        if others.is_empty() {
            return;
        }
        let mut sets = HashMap::clone(&known);
        for (key, published) in others {
            match published {
                Some(published) => _ = sets.insert(key, Arc::new(Cell::new(published, version))),
                None => _ = sets.remove(&key),
            }
        }
        self.sets.store(Arc::new(sets));
        self.others_changed.send_replace(());
    }

    /// How many sets have answers, and how many endpoints these have.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let sets = self.sets.load();
        let endpoints = sets
            .values()
            .filter_map(|cell| match &**cell.current.load() {
                Published::Endpoints(snapshot) => Some(snapshot.endpoints.len()),
                Published::NoSource(_) | Published::Invalid(_) => None,
            });
        endpoints.fold((0, 0), |(sets, all), of_set| (sets + 1, all + of_set))
    }

    /// From now on, [`take_unreported`](Self::take_unreported) has the sets whose status may be another one; at first all.
    pub(crate) fn begin_reports(&self) {
        let mut inner = self.inner.lock();
        inner.unreported = Some(BTreeSet::new());
        inner.report_all();
    }

    /// The sets whose status may be another one than at the last call.
    pub(crate) fn take_unreported(&self) -> BTreeSet<SetKey> {
        let mut inner = self.inner.lock();
        let unreported = inner.unreported.as_mut();
        unreported.map(std::mem::take).unwrap_or_default()
    }

    /// The status of the set has to be looked at again.
    pub(crate) fn report_again(&self, key: SetKey) {
        let mut inner = self.inner.lock();
        inner.unreported.get_or_insert_default().insert(key);
    }

    /// What there is of the set, with the version that is published of it, if one is.
    pub(crate) fn report(&self, key: &SetKey) -> Option<(SetReport, u64)> {
        let inner = self.inner.lock();
        let report = SetReport::of(&inner.state, key)?;
        let version = match self.lookup(key) {
            Lookup::Found(snapshot) => snapshot.version,
            _ => 0,
        };
        Some((report, version))
    }

    /// Whether answers have begun.
    ///
    /// # Errors
    /// What they wait for.
    pub fn ready(&self) -> Result<(), Waiting> {
        let waiting = self.waiting.load_full();
        waiting.map_or(Ok(()), |waiting| Err(Waiting::clone(&waiting)))
    }

    /// Waits until answers have begun.
    pub(crate) async fn begun(&self) {
        let mut changes = self.other_changes();
        while self.ready().is_err() && changes.changed().await.is_ok() {}
    }

    /// All members.
    pub fn members(&self) -> Arc<Vec<MemberState>> {
        self.members.load_full()
    }

    /// All sets.
    pub(crate) fn keys(&self) -> Vec<SetKey> {
        self.sets.load().keys().cloned().collect()
    }

    /// The endpoints of the set.
    #[must_use]
    pub fn lookup(&self, key: &SetKey) -> Lookup {
        let sets = self.sets.load();
        let Some(cell) = sets.get(key) else {
            let waiting = self.waiting.load_full();
            return waiting.map_or(Lookup::NotFound, |waiting| {
                Lookup::Waiting(Waiting::clone(&waiting))
            });
        };
        match &**cell.current.load() {
            Published::NoSource(set) => {
                let waiting = is_of_service(set).then(|| self.unlisted(set)).flatten();
                waiting.map_or(Lookup::NoSource, Lookup::Waiting)
            }
            Published::Invalid(errors) => Lookup::Invalid(errors.clone()),
            Published::Endpoints(snapshot) => {
                let is_empty = snapshot.endpoints.is_empty();
                let waiting = is_empty.then(|| self.unlisted(&snapshot.set)).flatten();
                waiting.map_or_else(|| Lookup::Found(Arc::clone(snapshot)), Lookup::Waiting)
            }
        }
    }

    /// The members that are not known, and may have endpoints of the set.
    fn unlisted(&self, set: &ValidEndpointSet) -> Option<Waiting> {
        let members = self.members.load();
        let concerned = members.iter().filter(|member| concerns(set, &member.name));
        Waiting::for_members(concerned, is_of_service(set))
    }

    /// Signals each change of the set: its latest version. None if there is no such set.
    #[must_use]
    pub fn changes(&self, key: &SetKey) -> Option<watch::Receiver<u64>> {
        let sets = self.sets.load();
        sets.get(key).map(|cell| cell.changed.subscribe())
    }

    /// Signals changes that are not of one set: sets that are new or gone, the state of members, the beginning of answers.
    #[must_use]
    pub fn other_changes(&self) -> watch::Receiver<()> {
        self.others_changed.subscribe()
    }
}

impl Inner {
    /// What is waited for.
    fn waiting(&self) -> Option<Waiting> {
        let mut host = self.state.host();
        if let Some((kind, _)) = host.find(|(_, freshness)| !freshness.is_known) {
            return Some(self.or_upstream(Waiting::Host(kind)));
        }
        if !self.are_members_known {
            return Some(self.or_upstream(Waiting::Members));
        }
        if self.has_given_up {
            return None;
        }
        let members: Vec<_> = self.state.members().map(MemberState::of).collect();
        let needs_services = self.state.services_of_sets().next().is_some();
        Waiting::for_members(members.iter(), needs_services)
    }

    /// What is waited for, or the upstream that it comes from.
    fn or_upstream(&self, waiting: Waiting) -> Waiting {
        match self.feeder {
            Feeder::Clusters => waiting,
            Feeder::Upstream => Waiting::Upstream,
        }
    }

    /// Replicas get what has changed.
    fn tell_replicas(&mut self) {
        if let Some(changes) = self.state.take_changes() {
            self.replicas.add_changes(&changes);
        }
    }

    /// The status of every set may be another one.
    fn report_all(&mut self) {
        if let Some(unreported) = &mut self.unreported {
            unreported.extend(self.state.keys().cloned());
        }
    }

    /// Versions grow, also over restarts, as far as the clock does, or from the version that a snapshot has.
    fn next_version(&mut self) -> u64 {
        let now = u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default();
        self.version = now.max(self.version.saturating_add(1));
        self.version
    }
}

impl Cell {
    fn new(published: Published, version: u64) -> Self {
        Self {
            current: ArcSwap::from_pointee(published),
            changed: watch::Sender::new(version),
        }
    }

    fn publish(&self, published: Published, version: u64) {
        self.current.store(Arc::new(published));
        self.changed.send_replace(version);
    }
}

impl Published {
    fn of(entry: &Entry, version: u64) -> Self {
        match &entry.set {
            Err(errors) => Self::Invalid(errors.clone()),
            Ok(set) if !entry.has_source() => Self::NoSource(Arc::clone(set)),
            Ok(set) => Self::Endpoints(Arc::new(EndpointSnapshot {
                version,
                endpoints: entry.endpoints(),
                set: Arc::clone(set),
            })),
        }
    }
}

impl Waiting {
    /// What has not been listed of these members yet.
    fn for_members<'a>(
        members: impl Iterator<Item = &'a MemberState>,
        with_services: bool,
    ) -> Option<Self> {
        let (mut pods, mut services) = (Vec::new(), Vec::new());
        for MemberState {
            name,
            pods: of_pods,
            services: of_services,
        } in members
        {
            if !of_pods.is_known {
                pods.push(name.to_string());
            } else if with_services && !of_services.is_known {
                services.push(name.to_string());
            }
        }
        if !pods.is_empty() {
            return Some(Self::Pods(pods));
        }
        (!services.is_empty()).then_some(Self::Services(services))
    }
}
