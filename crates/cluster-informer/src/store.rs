//! One member's state behind a lock: written by the task that owns the member and by answers to our own writes,
//! read by checks.
//!
//! The lock is held for one event, one lookup, or one sweep, and never across an await.

use std::{collections::BTreeSet, fmt, mem, sync::Arc, time::Duration};

use fedrs_api::SetKey;
use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use reflector::{ResourceVersion, Uid};

use crate::{
    about::About,
    counts::PodTable,
    feed::Feed,
    pod_fact::PodObject,
    sets::SetTable,
    view::{Change, Health, Held, MemberView, SetFact, SetView, Sync},
};

/// Tells the time: the one place where a member's state looks at a clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + std::marker::Sync>;

/// What is known of one member.
pub struct MemberStore {
    state: RwLock<State>,
    clock: Clock,
    stale_after: SignedDuration,
}

#[derive(Debug)]
struct State {
    pods: PodTable,
    sets: SetTable,
    pod_feed: Feed,
    set_feed: Feed,
    health: Health,
    about: About,
    /// The sync that was last told of, without its details.
    announced: mem::Discriminant<Sync>,
}

/// Which of a member's two watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedName {
    Sets,
    Pods,
}

impl State {
    fn feed(&mut self, name: FeedName) -> &mut Feed {
        match name {
            FeedName::Sets => &mut self.set_feed,
            FeedName::Pods => &mut self.pod_feed,
        }
    }

    fn sync(&self, now: Timestamp, stale_after: SignedDuration) -> Sync {
        match (
            self.set_feed.sync(now, stale_after),
            self.pod_feed.sync(now, stale_after),
        ) {
            (Sync::NotSynced, _) | (_, Sync::NotSynced) => Sync::NotSynced,
            (Sync::Stale { since: sets }, Sync::Stale { since: pods }) => Sync::Stale {
                since: sets.min(pods),
            },
            (stale @ Sync::Stale { .. }, Sync::Synced) | (_, stale) => stale,
        }
    }
}

impl MemberStore {
    /// An empty store, not synced. A watch that is down for longer than `stale_after` makes the view stale.
    pub fn new(clock: Clock, stale_after: Duration) -> Self {
        let state = State {
            pods: PodTable::default(),
            sets: SetTable::default(),
            pod_feed: Feed::default(),
            set_feed: Feed::default(),
            health: Health::Unknown,
            about: About::default(),
            announced: mem::discriminant(&Sync::NotSynced),
        };
        let stale_after = SignedDuration::try_from(stale_after).unwrap_or(SignedDuration::MAX);
        Self {
            state: RwLock::new(state),
            clock,
            stale_after,
        }
    }

    /// How many local sets and pods are kept.
    pub fn size(&self) -> (usize, usize) {
        let state = self.state.read();
        (state.sets.len(), state.pods.len())
    }

    /// Since when the view has not been current, if it is stale.
    pub(crate) fn staleness(&self) -> SignedDuration {
        match self.sync() {
            Sync::Stale { since } => (self.clock)().duration_since(since),
            Sync::NotSynced | Sync::Synced => SignedDuration::ZERO,
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    // Until the first list of a feed is complete nobody needs notices: all is looked at when the member becomes
    // synced (F23).

    pub(crate) fn restarted(&self, feed: FeedName) {
        let mut state = self.state.write();
        match feed {
            FeedName::Sets => state.sets.restarted(),
            FeedName::Pods => state.pods.restarted(),
        }
        state.feed(feed).restarted();
    }

    pub(crate) fn set_applied(&self, fact: SetFact) -> Option<Change> {
        let mut state = self.state.write();
        state
            .sets
            .applied(fact)
            .filter(|_| state.set_feed.has_listed())
    }

    pub(crate) fn set_deleted(
        &self,
        key: &SetKey,
        uid: Uid,
        version: ResourceVersion,
    ) -> Option<Change> {
        self.state.write().sets.deleted(key, uid, version)
    }

    pub(crate) fn set_kept(&self, uid: Uid) {
        self.state.write().sets.kept(uid);
    }

    pub(crate) fn sets_listed(&self, version: ResourceVersion) -> Vec<(SetKey, Change)> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let lost = state.sets.listed(version);
        let noticed = state.set_feed.has_listed();
        state.set_feed.listed(now);
        if noticed { lost } else { Vec::new() }
    }

    pub(crate) fn pod_applied(&self, pod: PodObject) -> Vec<(SetKey, Change)> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let changes = state.pods.applied(pod, now);
        if state.pod_feed.has_listed() {
            changes
        } else {
            Vec::new()
        }
    }

    pub(crate) fn pod_deleted(&self, uid: Uid, resource_version: &str) -> Option<(SetKey, Change)> {
        self.state.write().pods.deleted(uid, resource_version)
    }

    pub(crate) fn pod_kept(&self, uid: Uid) {
        self.state.write().pods.kept(uid);
    }

    pub(crate) fn pods_listed(&self) -> BTreeSet<SetKey> {
        let now = (self.clock)();
        let mut state = self.state.write();
        let lost = state.pods.listed();
        let noticed = state.pod_feed.has_listed();
        state.pod_feed.listed(now);
        if noticed { lost } else { BTreeSet::new() }
    }

    /// The member was heard; whether it had been failing before.
    pub(crate) fn alive(&self, feed: FeedName) -> bool {
        let now = (self.clock)();
        self.state.write().feed(feed).alive(now)
    }

    /// A list or watch failed; with `needs_list`, what is known can't be followed any more.
    pub(crate) fn failed(&self, feed: FeedName, needs_list: bool) {
        let now = (self.clock)();
        let mut state = self.state.write();
        let feed = state.feed(feed);
        feed.failed(now);
        if needs_list {
            feed.restarted();
        }
    }

    /// Whether the sync has changed its kind since this was last asked.
    pub(crate) fn sync_changed(&self) -> bool {
        let now = (self.clock)();
        let mut state = self.state.write();
        let sync = mem::discriminant(&state.sync(now, self.stale_after));
        mem::replace(&mut state.announced, sync) != sync
    }

    /// Another client takes over: what is known is stale until it has listed all of it (F39).
    pub(crate) fn taken_over(&self) {
        let mut state = self.state.write();
        state.set_feed.restarted();
        state.pod_feed.restarted();
    }

    /// Takes in what the member tells of itself; what it doesn't say any more stays.
    pub(crate) fn put_about(&self, about: About) {
        let mut state = self.state.write();
        let version = about.version.or_else(|| state.about.version.take());
        state.about = About { version, ..about };
    }

    /// Takes in what the probe says. What is known of a member that is back is from before it went, and stale until
    /// it has been listed again (F39).
    pub(crate) fn set_health(&self, health: Health) -> HealthChange {
        let mut state = self.state.write();
        let before = mem::replace(&mut state.health, health);
        if mem::discriminant(&before) == mem::discriminant(&state.health) {
            return HealthChange::None;
        }
        let was_gone = matches!(
            before,
            Health::Unreachable { .. } | Health::Unauthorized { .. }
        );
        if was_gone && state.health == Health::Healthy {
            state.set_feed.restarted();
            state.pod_feed.restarted();
            return HealthChange::Back;
        }
        HealthChange::Other
    }
}

/// What a probe changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthChange {
    /// Nothing but words.
    None,
    /// The kind of health.
    Other,
    /// The member was gone and is healthy now.
    Back,
}

impl MemberView for MemberStore {
    fn set_view(&self, key: &SetKey) -> SetView {
        let state = self.state.read();
        let set = state.sets.get(key).cloned();
        let pods = set
            .as_ref()
            .map(|set| state.pods.counts(set.id()))
            .unwrap_or_default();
        SetView { set, pods }
    }

    fn sync(&self) -> Sync {
        self.state.read().sync((self.clock)(), self.stale_after)
    }

    fn health(&self) -> Health {
        self.state.read().health.clone()
    }

    fn about(&self) -> About {
        self.state.read().about.clone()
    }

    fn held(&self, names: usize) -> Held {
        let state = self.state.read();
        let mut held = Held::default();
        for (key, set) in state.sets.iter() {
            // What is asked for will be there, what is there is not gone yet.
            let replicas = set.replicas.max(set.current);
            if replicas > 0 {
                held.sets += 1;
                held.replicas += u64::from(replicas);
                if held.first.len() < names {
                    held.first.push(key.clone());
                }
            }
        }
        held
    }

    fn observe(&self, set: SetFact) {
        self.state.write().sets.observe(set);
    }

    fn observe_deleted(&self, key: &SetKey, uid: &str) {
        self.state.write().sets.observe_deleted(key, Uid::of(uid));
    }

    fn observe_released(&self, key: &SetKey, uid: &str, version: &str) {
        let mut state = self.state.write();
        state
            .sets
            .deleted(key, Uid::of(uid), ResourceVersion::parse(version));
    }
}

impl fmt::Debug for MemberStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sets, pods) = self.size();
        f.debug_struct("MemberStore")
            .field("sets", &sets)
            .field("pods", &pods)
            .finish_non_exhaustive()
    }
}
