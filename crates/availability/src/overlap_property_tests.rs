//! Sets that contain one another, or overlap, and come, go and change: whatever arrives in which order, no eviction exceeds the budget of a
//! set that limits its pods, and once nothing is under way, each pod has one PodDisruptionBudget at most (A1).

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::{AvailabilitySet, DisruptionLimit, selector};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    neighbours::{AllNeighbours, Neighbour, Neighbours},
    observed::{Budget, Pod},
    own::{Own, Request, covers},
    world::{World, set},
};

const MEMBERS: [&str; 2] = ["eu", "us"];
/// Of the sets, in the order in which they come to be.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// The labels of the pods of each member.
const PODS: [(&str, &str); 5] = [
    ("front", "x"),
    ("front", "x"),
    ("front", "y"),
    ("back", "x"),
    ("back", "y"),
];

/// What sets select: each of the first three contains the next one; the third and the fourth overlap only.
fn labels(which: usize) -> Value {
    match which % 4 {
        0 => json!({ "app": "web" }),
        1 => json!({ "app": "web", "tier": "front" }),
        2 => json!({ "app": "web", "tier": "front", "ring": "x" }),
        _ => json!({ "app": "web", "ring": "x" }),
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The controller looks at a set, and sends its requests; those whose bit is set arrive at once.
    Look(usize, u8),
    /// A request arrives late.
    Arrive(usize),
    /// It never does.
    Lose(usize),
    /// Somebody evicts as many pods of a member as may be, from this one on.
    Evict(usize, usize),
    /// The pods that were evicted are gone.
    Show(usize),
    /// New ones are ready.
    Recover(usize),
    /// The disruption controller of a member looks.
    Observe(usize),
    Away(usize, bool),
    /// A set is created, or changes what it selects.
    Select(usize, usize),
    Delete(usize),
    Invalid(usize, bool),
    Cordon(usize, usize, bool),
}

fn event() -> impl Strategy<Value = Event> {
    let (set, member, pod) = (0..NAMES.len(), 0..MEMBERS.len(), 0..PODS.len());
    let some_set = set.clone();
    prop_oneof![
        16 => (set.clone(), any::<u8>()).prop_map(|(set, answered)| Event::Look(set, answered | 0b101)),
        6 => (set.clone(), any::<u8>()).prop_map(|(set, answered)| Event::Look(set, answered)),
        5 => any::<usize>().prop_map(Event::Arrive),
        2 => any::<usize>().prop_map(Event::Lose),
        14 => (member.clone(), pod).prop_map(|(member, pod)| Event::Evict(member, pod)),
        4 => member.clone().prop_map(Event::Show),
        3 => member.clone().prop_map(Event::Recover),
        14 => member.clone().prop_map(Event::Observe),
        1 => (member.clone(), any::<bool>()).prop_map(|(member, is)| Event::Away(member, is)),
        3 => (some_set, 0..4_usize).prop_map(|(set, which)| Event::Select(set, which)),
        1 => set.clone().prop_map(Event::Delete),
        1 => (set, any::<bool>()).prop_map(|(set, is)| Event::Invalid(set, is)),
        2 => (member, 1..=3_usize, any::<bool>()).prop_map(|(member, node, is)| Event::Cordon(member, node, is)),
    ]
}

struct Simulation {
    world: World,
    on_their_way: Vec<(String, Request)>,
    /// Pods that were evicted and still seem to run.
    granted: BTreeSet<(String, String)>,
    /// Sets whose pods are limited in all members, since they were so for the first time.
    limited: BTreeSet<String>,
    budget: u64,
}

/// An object that is never in the namespace.
fn nobody() -> AvailabilitySet {
    set("nobody", &json!({ "app": "none" }), &json!(1))
}

impl Simulation {
    fn new(budget: u64) -> Self {
        let mut world = World::empty(&json!(budget));
        world.set = nobody();
        for member in MEMBERS {
            for (index, (tier, ring)) in PODS.iter().enumerate() {
                let labels = json!({ "app": "web", "tier": tier, "ring": ring });
                let node = format!("n{}", index % 3 + 1);
                world.put_pod_with(member, &format!("p{index}"), &node, (&labels, None));
            }
        }
        Self {
            world,
            on_their_way: Vec::new(),
            granted: BTreeSet::new(),
            limited: BTreeSet::new(),
            budget,
        }
    }

    fn set(&mut self, name: &str) -> Option<&mut AvailabilitySet> {
        self.world.others.get_mut(name)
    }

    /// Returns whether anything was written or sent.
    fn look(&mut self, name: &str, answered: u8) -> bool {
        if !self.world.others.contains_key(name) {
            return false;
        }
        self.world.turn_to(name);
        let (has_written, requests) = self.world.look();
        let has_requests = !requests.is_empty();
        self.world.turn_to("nobody");
        if std::mem::take(&mut self.world.is_gone) {
            self.world.others.remove(name);
            self.limited.remove(name);
        }
        for (index, (member, request)) in requests.into_iter().enumerate() {
            if answered & (1 << (index % 8)) == 0 {
                self.on_their_way.push((member, request));
            } else {
                self.world.send(&member, request);
            }
        }
        has_written || has_requests
    }

    fn neighbours(&self) -> Neighbours {
        let all = AllNeighbours::default();
        self.world.others.values().for_each(|set| all.put(set));
        all.of("shop").as_ref().clone()
    }

    fn budgets(&self, member: &str) -> Vec<Budget> {
        let budgets = self.world.members[member].budgets.values();
        budgets
            .map(|budget| serde_json::from_value(budget.clone()).unwrap())
            .collect()
    }

    /// An API server decides about an eviction.
    fn evict(&mut self, member: &str, name: &str) -> Result<(), TestCaseError> {
        let Some(pod) = self.world.members[member].pods.get(name) else {
            return Ok(());
        };
        let id = (member.to_owned(), name.to_owned());
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        let budgets = self.budgets(member);
        let matching: Vec<_> = budgets
            .iter()
            .filter(|budget| budget.matches_any(&[&pod]))
            .collect();
        let is_granted = match &matching[..] {
            [] => true,
            [one] => {
                let observed = self.world.members[member].budgets[&one.metadata.name]["status"]["observedGeneration"].as_i64();
                observed == Some(one.metadata.generation) && one.status.disruptions_allowed > 0
            }
            _ => false,
        };
        if !is_granted || self.granted.contains(&id) {
            return Ok(());
        }
        if let [one] = &matching[..] {
            let budget = self
                .world
                .member(member)
                .budgets
                .get_mut(&one.metadata.name)
                .unwrap();
            let status = &mut budget["status"];
            status["disruptionsAllowed"] = json!(one.status.disruptions_allowed - 1);
            status["disruptedPods"][name] = json!("now");
            let version = budget["metadata"]["resourceVersion"].as_str().unwrap();
            budget["metadata"]["resourceVersion"] = json!(format!("{version}0"));
        }
        self.granted.insert(id);
        for set in &self.limited {
            let lost = self.unavailable(&self.world.others[set]);
            let selects = &self.world.others[set].spec.selector;
            let is_its = selector::matches(selects, &pod.metadata.labels);
            prop_assert!(
                !is_its || lost <= self.budget,
                "{lost} pods of {set}, by {member}/{name} of {}",
                self.world.budgets(member)
            );
        }
        if matching.is_empty() {
            self.show(member);
        }
        Ok(())
    }

    /// Its pods that were evicted, and for which there are no new ones.
    fn unavailable(&self, set: &AvailabilitySet) -> u64 {
        let selects = |pod: &Value| {
            let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
            selector::matches(&set.spec.selector, &pod.metadata.labels)
        };
        let members = &self.world.members;
        let missing = members.values().flat_map(|member| member.missing.values());
        let granted = self
            .granted
            .iter()
            .map(|(member, name)| &members[member].pods[name]);
        missing.chain(granted).filter(|pod| selects(pod)).count() as u64
    }

    fn show(&mut self, member: &str) {
        let gone: Vec<_> = self
            .granted
            .iter()
            .filter(|(of, _)| of == member)
            .cloned()
            .collect();
        for id in gone {
            self.granted.remove(&id);
            let member = self.world.member(member);
            let pod = member.pods.remove(&id.1).unwrap();
            member.missing.insert(id.1, pod);
        }
        // What controllers want is seen with it.
        self.world.member(member).observe_budgets();
    }

    /// Which sets keep to their budgets from now on, or do not have to.
    fn update_limited(&mut self) {
        let neighbours = self.neighbours();
        for (name, set) in &self.world.others {
            let own = Own::of(set, "f", &neighbours);
            let is_overlapping = set
                .status
                .iter()
                .flat_map(|status| &status.conditions)
                .any(|of| of.type_ == "EvictionsNotLimited");
            if is_overlapping || neighbours[name] == Neighbour::Deleted {
                self.limited.remove(name);
                continue;
            }
            let limits = |member: &&str| {
                self.budgets(member).iter().any(|budget| {
                    own.has_loan(budget)
                        && covers(budget, &set.spec.selector)
                        && budget.is_settled()
                })
            };
            let is_new = set
                .status
                .as_ref()
                .is_some_and(|status| status.observed_generation == set.metadata.generation);
            let is_within = self.unavailable(set) == 0 && self.on_their_way.is_empty();
            if is_new
                && is_within
                && MEMBERS.iter().all(limits)
                && neighbours[name] != Neighbour::Invalid
            {
                self.limited.insert(name.clone());
            }
        }
    }

    fn apply(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Look(set, answered) => _ = self.look(NAMES[set], answered),
            Event::Arrive(which) if !self.on_their_way.is_empty() => {
                let (member, request) = self.on_their_way.remove(which % self.on_their_way.len());
                self.world.send(&member, request);
            }
            Event::Lose(which) if !self.on_their_way.is_empty() => {
                self.on_their_way.remove(which % self.on_their_way.len());
            }
            Event::Arrive(_) | Event::Lose(_) => {}
            Event::Evict(member, first) => {
                for pod in 0..PODS.len() {
                    let pod = (first + pod) % PODS.len();
                    self.evict(MEMBERS[member], &format!("p{pod}"))?;
                }
            }
            Event::Show(member) => self.show(MEMBERS[member]),
            Event::Recover(member) => {
                let member = self.world.member(MEMBERS[member]);
                let missing = std::mem::take(&mut member.missing);
                member.pods.extend(missing);
            }
            Event::Observe(member) => self.world.member(MEMBERS[member]).observe_budgets(),
            Event::Away(member, is_away) => self.world.member(MEMBERS[member]).is_away = is_away,
            Event::Select(which, selected) => self.select(NAMES[which], selected),
            Event::Delete(which) => self.delete(NAMES[which]),
            Event::Invalid(which, is_invalid) => {
                if let Some(set) = self.set(NAMES[which]) {
                    let rack = if is_invalid { "a b" } else { "rack" };
                    rack.clone_into(&mut set.spec.domain_labels.rack);
                }
            }
            Event::Cordon(member, node, is_cordoned) => {
                let nodes = &mut self.world.member(MEMBERS[member]).nodes;
                nodes.get_mut(&format!("n{node}")).unwrap()["spec"] =
                    json!({ "unschedulable": is_cordoned });
            }
        }
        self.update_limited();
        Ok(())
    }

    fn delete(&mut self, name: &str) {
        let Some(set) = self.set(name) else {
            return;
        };
        let now = json!("2027-01-15T08:00:00Z");
        set.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
        if set.metadata.finalizers.is_none() {
            self.world.others.remove(name);
        }
    }

    fn select(&mut self, name: &str, selected: usize) {
        let new = set(name, &labels(selected), &json!(self.budget));
        match self.set(name) {
            None => self.world.add(new),
            Some(set) => {
                set.spec.selector = new.spec.selector;
                set.metadata.generation = set.metadata.generation.map(|generation| generation + 1);
                // It is another promise.
                self.limited.remove(name);
            }
        }
    }

    /// Nothing happens any more. Returns whether the sets still write after a while.
    fn settle(&mut self) -> bool {
        self.on_their_way.clear();
        for member in 0..MEMBERS.len() {
            for event in [
                Event::Away(member, false),
                Event::Show(member),
                Event::Recover(member),
            ] {
                self.apply(event).unwrap();
            }
        }
        for which in 0..NAMES.len() {
            self.apply(Event::Invalid(which, false)).unwrap();
        }
        for _ in 0..30 {
            let looks = NAMES.map(|name| self.look(name, u8::MAX));
            for member in MEMBERS {
                self.world.member(member).observe_budgets();
            }
            if !looks.contains(&true) {
                return NAMES.map(|name| self.look(name, u8::MAX)).contains(&true);
            }
        }
        true
    }

    /// Checks what is there in the end.
    fn check_settled(&self) -> Result<(), TestCaseError> {
        let neighbours = self.neighbours();
        let mut lent = BTreeMap::<String, u64>::new();
        for member in MEMBERS {
            let budgets = self.budgets(member);
            let text = self.world.budgets(member);
            for pod in self.world.members[member].pods.values() {
                let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
                let matching = budgets.iter().filter(|budget| budget.matches_any(&[&pod]));
                prop_assert!(matching.count() <= 1, "{text}");
            }
            for budget in &budgets {
                let loans = DisruptionLimit::all(Some(&budget.metadata.annotations));
                let least = loans
                    .values()
                    .map(|limit| limit.max_unavailable.into())
                    .min();
                prop_assert_eq!(budget.spec.max_unavailable.as_u64(), least, "{}", text);
                for (name, limit) in loans {
                    prop_assert!(neighbours.contains_key(&name), "{text}");
                    *lent.entry(name).or_default() += u64::from(limit.max_unavailable);
                }
            }
            for (name, set) in &self.world.others {
                let own = Own::of(set, "f", &neighbours);
                let loans = budgets.iter().filter(|budget| own.has_loan(budget));
                let conditions = &set.status.as_ref().unwrap().conditions;
                let mut conditions = conditions.iter();
                let is_limited = !conditions.any(|of| of.type_ == "EvictionsNotLimited");
                // The condition may be about the other member.
                let least = usize::from(is_limited);
                let is_as_expected = (least..=1).contains(&loans.count());
                prop_assert!(is_as_expected, "{name} {member}: {text}");
            }
        }
        prop_assert!(lent.values().all(|lent| *lent <= self.budget), "{lent:?}");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 60, max_shrink_iters: 500, ..ProptestConfig::default() })]

    #[test]
    fn a1_sets_that_select_the_same_pods_keep_to_their_budgets_whatever_arrives_when(
        budget in 1..4_u64,
        first in prop::collection::vec(prop::option::weighted(0.8, 0..4_usize), 3),
        events in prop::collection::vec(event(), 0..150),
    ) {
        let mut simulation = Simulation::new(budget);
        for (name, selected) in NAMES.into_iter().zip(first) {
            if let Some(selected) = selected {
                simulation.select(name, selected);
            }
        }
        simulation.settle();
        simulation.update_limited();
        for event in events {
            simulation.apply(event)?;
        }
        prop_assert!(!simulation.settle(), "{:?} {:?}", simulation.world.budgets("eu"), simulation.world.budgets("us"));
        simulation.check_settled()?;
    }
}
