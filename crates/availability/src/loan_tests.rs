//! Whatever happens in which order: evictions and updates never make more pods unavailable than the budget says, and once nothing is
//! under way, they could not (A1).

use proptest::prelude::*;

use crate::{
    loans::{Limit, Part, writes},
    turn,
};

const PODS: u64 = 4;
const PARTS: usize = 3;

/// A write on its way to a member. It changes nothing if the member has another version by then.
#[derive(Clone, Copy, Debug)]
struct Write {
    part: usize,
    version: u64,
    max_unavailable: u64,
    revision: u64,
}

/// A part of the set in its member.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    max_unavailable: Option<u64>,
    version: u64,
    revision: u64,
    /// Evictions that were granted, and whose pods still seem to run.
    granted: u64,
    evicted: u64,
    failed: u64,
    is_away: bool,
    wanted: u64,
}

/// What the status of the set says.
#[derive(Clone, Copy, Debug, Default)]
struct Recorded {
    max_unavailable: u64,
    revision: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The controller looks, and sends its writes; those whose bit is set are answered at once.
    Look(u8),
    /// The write arrives late.
    Arrive(usize),
    Evict(usize),
    /// What was granted is seen as a pod that is gone.
    Show(usize),
    /// Evicted pods, and those that had failed, are back.
    Recover(usize),
    Fail(usize),
    Away(usize, bool),
    Wanted(usize, u64),
}

struct World {
    budget: u64,
    is_one_cluster_at_a_time: bool,
    members: [Member; PARTS],
    recorded: [Recorded; PARTS],
    on_their_way: Vec<Write>,
}

impl Member {
    fn unavailable(&self) -> u64 {
        self.granted + self.evicted + self.failed
    }

    fn evict(&mut self) {
        let is_granted = self
            .max_unavailable
            .is_some_and(|limit| self.unavailable() < limit);
        self.granted += u64::from(is_granted && self.unavailable() < PODS);
    }

    fn part(&self, recorded: Recorded) -> Part {
        let is_last = self.revision >= recorded.revision;
        let written = self.max_unavailable.unwrap_or(PODS);
        let is_settled = is_last && self.granted == 0;
        let limit = Limit {
            max_unavailable: self.max_unavailable,
            is_last,
        };
        Part {
            pods: PODS,
            unreachable: if self.is_away {
                PODS
            } else {
                self.evicted + self.failed
            },
            exposure: if is_settled {
                written
            } else {
                written.max(recorded.max_unavailable)
            },
            held: 0,
            repairs: 0,
            wanted: self.wanted,
            limit: (!self.is_away).then_some(limit),
        }
    }
}

impl World {
    fn new(budget: u64, is_one_cluster_at_a_time: bool) -> Self {
        let member = Member {
            max_unavailable: Some(0),
            ..Member::default()
        };
        Self {
            budget,
            is_one_cluster_at_a_time,
            members: [member; PARTS],
            recorded: [Recorded::default(); PARTS],
            on_their_way: Vec::new(),
        }
    }

    /// Returns how many writes were sent.
    fn look(&mut self, answered: u8) -> usize {
        let members = self.members.iter().zip(self.recorded);
        let parts: Vec<_> = members
            .map(|(member, recorded)| member.part(recorded))
            .collect();
        let mut sent = 0;
        let writes = if self.is_one_cluster_at_a_time {
            turn::writes(self.budget, &parts, &[0, 1, 2])
        } else {
            writes(self.budget, &parts)
        };
        for (index, write) in writes.into_iter().enumerate() {
            let (member, part) = (self.members[index], parts[index]);
            if member.is_away {
                continue;
            }
            self.recorded[index].max_unavailable = part.exposure;
            let Some(max_unavailable) = write else {
                continue;
            };
            sent += 1;
            let recorded = &mut self.recorded[index];
            let revision = member.revision.max(recorded.revision) + 1;
            if max_unavailable > member.max_unavailable.unwrap_or_default() {
                // Recorded before it is sent.
                recorded.max_unavailable = part.exposure.max(max_unavailable);
            }
            recorded.revision = revision;
            let write = Write {
                part: index,
                version: member.version,
                max_unavailable,
                revision,
            };
            if answered & (1 << index) != 0 {
                self.arrive(write);
            } else {
                self.on_their_way.push(write);
            }
        }
        sent
    }

    fn arrive(&mut self, write: Write) {
        let member = &mut self.members[write.part];
        if member.version == write.version {
            member.version += 1;
            member.max_unavailable = Some(write.max_unavailable);
            member.revision = write.revision;
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Look(answered) => _ = self.look(answered),
            Event::Arrive(which) if !self.on_their_way.is_empty() => {
                let write = self.on_their_way.remove(which % self.on_their_way.len());
                self.arrive(write);
            }
            Event::Arrive(_) => {}
            Event::Evict(part) => self.members[part].evict(),
            Event::Show(part) => {
                let member = &mut self.members[part];
                member.evicted += member.granted;
                member.granted = 0;
            }
            Event::Recover(part) => {
                let member = &mut self.members[part];
                (member.evicted, member.failed) = (0, 0);
            }
            Event::Fail(part) => {
                let member = &mut self.members[part];
                member.failed += u64::from(member.unavailable() < PODS);
            }
            Event::Away(part, is_away) => self.members[part].is_away = is_away,
            Event::Wanted(part, wanted) => self.members[part].wanted = wanted,
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let part = 0..PARTS;
    prop_oneof![
        8 => any::<u8>().prop_map(Event::Look),
        3 => any::<usize>().prop_map(Event::Arrive),
        6 => part.clone().prop_map(Event::Evict),
        3 => part.clone().prop_map(Event::Show),
        2 => part.clone().prop_map(Event::Recover),
        1 => part.clone().prop_map(Event::Fail),
        1 => (part.clone(), any::<bool>()).prop_map(|(part, is)| Event::Away(part, is)),
        2 => (part, 0..=PODS).prop_map(|(part, wanted)| Event::Wanted(part, wanted)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a1_m16_evictions_never_exceed_the_budget_nor_happen_in_two_clusters_whatever_arrives_when(
        budget in 0..5_u64,
        is_one_cluster_at_a_time in any::<bool>(),
        events in prop::collection::vec(event(), 0..80),
    ) {
        let mut world = World::new(budget, is_one_cluster_at_a_time);
        let mut has_failed = false;
        for event in events {
            has_failed |= matches!(event, Event::Fail(_));
            world.apply(event);
            let by_evictions: u64 = world.members.iter().map(|member| member.granted + member.evicted).sum();
            prop_assert!(by_evictions <= budget, "{by_evictions} after {event:?}: {:?}", world.members);
            let evicting = world.members.iter().filter(|member| member.granted + member.evicted > 0);
            prop_assert!(!is_one_cluster_at_a_time || evicting.count() <= 1, "after {event:?}: {:?}", world.members);
            let all: u64 = world.members.iter().map(Member::unavailable).sum();
            prop_assert!(has_failed || all <= budget, "{all} after {event:?}: {:?}", world.members);
        }
        // Nothing happens any more: it settles, writes nothing then, and no eviction could exceed the budget.
        for part in 0..PARTS {
            world.apply(Event::Away(part, false));
            world.apply(Event::Show(part));
        }
        world.on_their_way.clear();
        for _ in 0..6 {
            world.look(u8::MAX);
        }
        prop_assert_eq!(world.look(u8::MAX), 0);
        let at_worst = world.members.iter().map(|member| member.max_unavailable.unwrap_or(PODS).max(member.unavailable()));
        let unavailable: u64 = world.members.iter().map(Member::unavailable).sum();
        prop_assert!(at_worst.sum::<u64>() <= budget.max(unavailable));
    }
}
