//! What of the recorded updates and evictions still holds, now that the pods look like this.
//!
//! An update is recorded before it begins, and counts for the speed (L15) from then until `min_delay` after it was *seen* to have
//! begun, which is never before it began. So however long the controller is away in between, no more than the portion begins within
//! any `min_delay`.

use std::{
    borrow::Cow,
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
};

use fedrs_api::{EvictionRecord, LocalRecord, RecreateRecord, UpdateRecord};
use jiff::Timestamp;
use planted_bugs::{PlantedBug, is_planted};

use crate::{
    copies,
    pod::{Life, Pod},
    set::Set,
    shutdown,
    time::after,
};

/// Places that are kept for pods which are recreated.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Places of pods that are being removed.
    pub(crate) terminating: usize,
    /// Places whose pods are gone: pods are to be created there.
    pub(crate) vacant: Vec<RecreateRecord>,
}

/// Which pods, by their position in the input, may have something recorded: most have not, and need no search.
#[derive(Debug, Default)]
pub(crate) struct Recorded(Vec<bool>);

impl Recorded {
    pub(crate) fn has(&self, position: usize) -> bool {
        self.0.get(position).copied().unwrap_or_default()
    }
}

/// The recorded pods by uid, and the uids of all by name.
struct Index<'a> {
    by_uid: HashMap<&'a str, &'a Pod<'a>>,
    /// Needed only if pods are recreated.
    by_name: OnceCell<HashMap<&'a str, &'a str>>,
    pods: &'a [Pod<'a>],
}

impl<'a> Index<'a> {
    fn of(pods: &'a [Pod<'a>], recorded: &LocalRecord) -> (Self, Recorded) {
        let mut by_uid = HashMap::new();
        let positions = pods.iter().map(|pod| {
            let is_recorded =
                recorded.updates.contains_key(pod.uid) || recorded.evictions.contains_key(pod.uid);
            if is_recorded {
                by_uid.insert(pod.uid, pod);
            }
            is_recorded
        });
        let positions = Recorded(positions.collect());
        let by_name = OnceCell::new();
        let index = Self {
            by_uid,
            by_name,
            pods,
        };
        (index, positions)
    }

    /// The uid of the pod of this name.
    fn named(&self, name: &str) -> Option<&'a str> {
        let all = || self.pods.iter().map(|pod| (pod.name, pod.uid)).collect();
        self.by_name.get_or_init(all).get(name).copied()
    }

    /// Whether no other pod than the one with this uid has the name of the place.
    fn is_free(&self, place: &RecreateRecord, uid: &str) -> bool {
        let user = self.named(&place.name);
        user.is_none_or(|user| user == uid)
    }
}

/// What of `recorded` still holds, the places that are kept, and which pods it is about.
pub(crate) fn reconcile(
    set: &Set<'_>,
    pods: &[Pod<'_>],
    recorded: &LocalRecord,
    now: Timestamp,
) -> (LocalRecord, Places, Recorded) {
    let recorded = &*hold_places(set, pods, recorded, now);
    let mut places = Places::default();
    if recorded.updates.is_empty() && recorded.evictions.is_empty() {
        return (recorded.clone(), places, Recorded::default());
    }
    let (index, positions) = Index::of(pods, recorded);
    let mut kept = LocalRecord {
        updates: BTreeMap::new(),
        evictions: BTreeMap::new(),
        ..recorded.clone()
    };
    for (uid, update) in &recorded.updates {
        let pod = index.by_uid.get(&**uid).copied();
        let eviction = recorded.evictions.get(uid);
        let is_evicted = eviction.is_some_and(|eviction| eviction.begun)
            || pod.is_some_and(Pod::is_evicted_by_others);
        let state = UpdateState::of(set, update, (uid, pod), is_evicted, &index);
        let is_seen = update.seen || state != UpdateState::Recorded;
        if is_seen && !update.seen && set.speed.is_some() {
            kept.count_begun(now);
        }
        if state != UpdateState::Over {
            let update = UpdateRecord {
                seen: is_seen,
                ..update.clone()
            };
            kept.updates.insert(uid.clone(), update);
        }
    }
    for (uid, eviction) in &recorded.evictions {
        let pod = index.by_uid.get(&**uid).copied();
        let is_vacant = eviction.recreate.as_ref().is_some_and(|place| {
            let is_gone = pod.is_none_or(|pod| matches!(pod.life, Life::Terminating { .. }));
            is_gone && index.is_free(place, uid)
        });
        let takes_over = copies::takes_over(eviction, pod, pods);
        if is_vacant || takes_over || !is_over(set, eviction, pod, pods, now) {
            let mut eviction = eviction.clone();
            eviction.begun |= takes_over;
            // Another pod has taken it, and may be removed in its turn.
            let is_taken = |place: &mut RecreateRecord| !index.is_free(place, uid);
            eviction.recreate.take_if(is_taken);
            kept.evictions.insert(uid.clone(), eviction);
        }
    }
    let updates = kept.updates.values().map(|update| &update.recreate);
    let evictions = kept.evictions.values().map(|eviction| &eviction.recreate);
    if updates.chain(evictions).any(Option::is_some) {
        keep_places(set, &index, &mut kept, &mut places);
    }
    (kept, places, positions)
}

/// Under `HandsUp` nothing takes the place of a pod that may still run, whoever removes it (M11), or that a person has to confirm or to start
/// (M7, M12): it is recorded as an eviction, as long as there are too few pods. One that was surplus has no place.
fn hold_places<'r>(
    set: &Set<'_>,
    pods: &[Pod<'_>],
    recorded: &'r LocalRecord,
    now: Timestamp,
) -> Cow<'r, LocalRecord> {
    let mut recorded = Cow::Borrowed(recorded);
    if !set.migration.waits_for_stop() || is_planted(PlantedBug::PlaceOfRunningPodTaken) {
        return recorded;
    }
    let has_place = |pod: &Pod<'_>, recorded: &LocalRecord| {
        let eviction = recorded.evictions.get(pod.uid);
        let is_evicted =
            eviction.is_some_and(|eviction| eviction.begun) || pod.is_evicted_by_others();
        match recorded.updates.get(pod.uid) {
            Some(update) if !is_evicted => update.recreate.is_some(),
            _ => eviction.is_some_and(|eviction| eviction.recreate.is_some()),
        }
    };
    let extra = copies::extra(&recorded);
    let replicas = pods.iter().filter(|pod| !extra.is_of(pod));
    let kept = replicas.clone().filter(|pod| {
        let is_removed = matches!(pod.life, Life::Terminating { .. });
        pod.is_live() || is_removed && has_place(pod, &recorded)
    });
    let free = set.replicas.saturating_sub(kept.count());
    let held = replicas.filter(|pod| {
        pod.is_owned() && shutdown::holds_place(set, pod) && !has_place(pod, &recorded)
    });
    let mut held: Vec<_> = held.collect();
    held.sort_by_key(|pod| pod.uid);
    for pod in held.into_iter().take(free) {
        let evictions = &mut recorded.to_mut().evictions;
        let eviction = evictions.entry(pod.uid.to_owned());
        let eviction = eviction.or_insert_with(|| EvictionRecord::begun(now));
        eviction.begun = true;
        eviction.recreate = Some(move_of(set, pod));
    }
    recorded
}

/// The place of a pod that is made again on another node (M5).
pub(crate) fn move_of(set: &Set<'_>, pod: &Pod<'_>) -> RecreateRecord {
    RecreateRecord {
        name: pod.name.to_owned(),
        node: None,
        shard: pod.shard.map(str::to_owned),
        gated: pod.is_gated || set.migration.is_manual() && pod.migration.is_some(),
    }
}

/// How far a recorded update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UpdateState {
    /// Nothing is seen of it.
    Recorded,
    /// It has begun.
    Begun,
    /// Nothing more is done under this record.
    Over,
}

impl UpdateState {
    fn of(
        set: &Set<'_>,
        update: &UpdateRecord,
        (uid, pod): (&str, Option<&Pod<'_>>),
        is_evicted: bool,
        index: &Index<'_>,
    ) -> Self {
        match pod {
            Some(pod) if pod.is_live() => {
                let is_wanted = pod.revision == update.from && set.is_outdated(pod);
                // A gate that is just closed says nothing: the update before may have closed it.
                match (is_wanted, pod.is_draining()) {
                    (true, false) => Self::Recorded,
                    (true, true) => Self::Begun,
                    (false, _) => Self::Over,
                }
            }
            // Its successor gets another name, and must not prefer its node.
            _ if is_evicted => Self::Over,
            // It has terminated by itself, or was released: its name stays in use.
            Some(pod) if !matches!(pod.life, Life::Terminating { .. }) => Self::Over,
            _ => match &update.recreate {
                Some(place) if index.is_free(place, uid) => Self::Begun,
                _ => Self::Over,
            },
        }
    }
}

/// Keeps as many places as there are replicas for: a place that is not needed costs less than a pod. Those of pods that are still being
/// removed come first: they may run.
fn keep_places(set: &Set<'_>, index: &Index<'_>, kept: &mut LocalRecord, places: &mut Places) {
    let extra = copies::extra(kept);
    let replicas = index.pods.iter().filter(|pod| !extra.is_of(pod));
    let live = replicas.filter(|pod| pod.is_live()).count();
    let mut free = set.replicas.saturating_sub(live);
    for is_removed in [true, false] {
        let mut keep = |uid: &str, place: Option<&RecreateRecord>| {
            let pod = index.by_uid.get(uid);
            if pod.is_some_and(|pod| pod.is_live()) || pod.is_some() != is_removed {
                return true;
            }
            if free == 0 {
                return false;
            }
            free -= 1;
            match pod {
                Some(_) => places.terminating += 1,
                None => places.vacant.extend(place.cloned()),
            }
            true
        };
        (kept.updates).retain(|uid, update| keep(uid, update.recreate.as_ref()));
        for (uid, eviction) in &mut kept.evictions {
            let place = eviction.recreate.as_ref();
            // Without a place its successor gets another name.
            if place.is_some() && !keep(uid, place) {
                eviction.recreate = None;
            }
        }
    }
}

/// Whether an eviction is finished, or not asked for any more.
fn is_over(
    set: &Set<'_>,
    eviction: &EvictionRecord,
    pod: Option<&Pod<'_>>,
    pods: &[Pod<'_>],
    now: Timestamp,
) -> bool {
    match pod {
        // While clients leave it, nothing has happened to it, and it is unavailable until its gate is seen open.
        Some(pod) if pod.is_live() => {
            let copy = eviction.copy.as_ref();
            let is_there = |copy: &RecreateRecord| pods.iter().any(|pod| pod.name == copy.name);
            let has_copy = copy.is_some_and(is_there);
            pod.eviction.is_none() && !has_copy && (!eviction.begun || pod.is_draining())
        }
        // Its copy is the replica.
        Some(pod) if eviction.begun && eviction.copy.is_some() => {
            !matches!(pod.life, Life::Terminating { .. })
        }
        _ if !eviction.begun || blocks_until(set, eviction) <= now => true,
        Some(pod) if matches!(pod.life, Life::Terminating { .. }) => false,
        _ => is_replaced(set, eviction, pods, now),
    }
}

/// Whether a pod runs in the place of one that is gone. Times of objects have no fractions of seconds.
fn is_replaced(set: &Set<'_>, eviction: &EvictionRecord, pods: &[Pod<'_>], now: Timestamp) -> bool {
    let mut live = 0;
    let are_available = pods.iter().filter(|pod| pod.is_live()).all(|pod| {
        live += 1;
        let is_new = pod.created.as_second() >= eviction.since.as_second();
        let is_available = |since| after(since, set.min_ready) <= now;
        !is_new || pod.ready_since().is_some_and(is_available)
    });
    are_available && live >= set.replicas
}

/// Until when an eviction delays updates (L19). While clients leave its pod, it is not late.
pub(crate) fn blocks_until(set: &Set<'_>, eviction: &EvictionRecord) -> Timestamp {
    after(eviction.since, set.drain + set.eviction_timeout)
}
