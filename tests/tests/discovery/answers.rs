//! What clients are answered, and what must be true of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use discovery::{Lookup, SetKey};
use tokio::time::Instant;

use crate::{
    facts::{Facts, PodKey},
    world::World,
};

/// For how long a pod that is gone may be answered while its member is said to be current: a watch may be silent for 90 s until that
/// is noticed.
const BOUND: Duration = Duration::from_secs(150);
const SERVING: &str = "serving";
const SETS: [&str; 2] = [SERVING, "all"];

/// The answers for each set so far.
#[derive(Debug)]
pub(crate) struct Answers {
    seed: u64,
    sets: BTreeMap<&'static str, Answered>,
    /// The members of which changes may be missing.
    stale: BTreeSet<String>,
}

/// The answers for a set.
#[derive(Debug, Default)]
struct Answered {
    version: u64,
    pods: BTreeSet<PodKey>,
    /// When it was answered for the last time.
    at: Option<Instant>,
    /// What was answered before, and when; nothing after a crash.
    before: Option<(Instant, BTreeSet<PodKey>)>,
    /// Whether this process has answered.
    has_begun: bool,
}

impl Answers {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            sets: SETS.map(|set| (set, Answered::default())).into(),
            stale: BTreeSet::new(),
        }
    }

    /// The service was started again. After a crash it may know less than before.
    pub(crate) fn restarted(&mut self, is_crash: bool) {
        for answered in self.sets.values_mut() {
            answered.has_begun = false;
            if is_crash {
                answered.at = None;
            }
        }
    }

    /// Asks for all sets.
    pub(crate) fn look(&mut self, world: &World) {
        let catalog = world.catalog();
        let members = catalog.members();
        let stale = members.iter();
        let stale =
            stale.filter(|member| member.pods.stale_since.is_some() || !member.pods.is_known);
        self.stale = stale.map(|member| member.name.to_string()).collect();
        for (set, answered) in &mut self.sets {
            let seed = self.seed;
            match catalog.lookup(&SetKey::new("default", *set)) {
                Lookup::Found(found) => {
                    let endpoints = found.endpoints.iter();
                    let pods = endpoints.map(|endpoint| {
                        (endpoint.cluster().to_owned(), endpoint.name().to_owned())
                    });
                    answered.answer(found.version, pods.collect(), seed);
                }
                // Without an endpoint nothing is lost.
                other => assert!(
                    !answered.has_begun || answered.pods.is_empty(),
                    "seed {seed}: {set} was answered, and now: {other:?}"
                ),
            }
        }
    }

    /// Compares the answers with what has happened.
    pub(crate) fn check(&self, facts: &Facts) {
        for (set, answered) in self.sets.iter().filter(|(_, answered)| answered.has_begun) {
            for pod in &answered.pods {
                self.is_right(set, pod, facts);
            }
            let Some((at, before)) = &answered.before else {
                continue;
            };
            for pod in before.difference(&answered.pods) {
                let fact = &facts.0[pod];
                let serves = fact.ready_since.is_some_and(|since| since <= *at);
                let exists = fact.gone_since.is_none() && *set != SERVING;
                assert!(
                    !serves && !exists,
                    "seed {}: {set} lost {pod:?}, which serves all the time: {fact:?}",
                    self.seed
                );
            }
        }
    }

    fn is_right(&self, set: &str, pod: &PodKey, facts: &Facts) {
        let seed = self.seed;
        let fact = facts.0.get(pod);
        let fact =
            fact.unwrap_or_else(|| panic!("seed {seed}: {set} has {pod:?}, which never was"));
        assert!(
            fact.was_ready || set != SERVING,
            "seed {seed}: {set} has {pod:?}, which was never ready"
        );
        let is_over = |since: Instant| since.elapsed() > BOUND && !self.stale.contains(&pod.0);
        assert!(
            !fact.gone_since.is_some_and(is_over),
            "seed {seed}: {set} has {pod:?}, which is long gone: {fact:?}"
        );
    }

    /// Everything is known, and answered.
    pub(crate) fn are_current(&mut self, world: &World, facts: &Facts) {
        self.look(world);
        assert!(
            self.stale.is_empty(),
            "seed {}: stale: {:?}",
            self.seed,
            self.stale
        );
        for (set, answered) in &self.sets {
            let expected = facts.existing(*set == SERVING);
            let found: BTreeSet<_> = answered.pods.iter().collect();
            assert_eq!(found, expected, "seed {}: {set}", self.seed);
        }
    }

    pub(crate) fn versions(&self) -> Vec<u64> {
        self.sets
            .values()
            .map(|answered| answered.version)
            .collect()
    }
}

impl Answered {
    fn answer(&mut self, version: u64, pods: BTreeSet<PodKey>, seed: u64) {
        let is_same = self.has_begun && version == self.version;
        assert!(version >= self.version, "seed {seed}: the version fell");
        assert!(
            !is_same || pods == self.pods,
            "seed {seed}: one version, two answers"
        );
        let before = std::mem::replace(&mut self.pods, pods);
        self.before = self.at.map(|at| (at, before));
        (self.version, self.at, self.has_begun) = (version, Some(Instant::now()), true);
    }
}
