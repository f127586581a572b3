//! AvailabilitySets in a plan: one, over the pods of a set, and evictions of these pods.
//!
//! All of it is drawn from a stream of its own, after the rest of the plan: a plan without AvailabilitySets has no other steps than
//! before.

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::json;

use super::{Action, AvailabilityWork, MemberPlan, Selected, SetPlan, Step};
use crate::sim_federation::HOST;

/// The seeds of AvailabilitySets are a stream of their own.
const STREAM: u64 = 0x6176_6169;
/// The share of plans with an AvailabilitySet.
const PLANS: f64 = 0.4;

/// Adds an AvailabilitySet, and evictions of its pods until `end_ms`.
pub(super) fn add(
    seed: u64,
    members: &[MemberPlan],
    sets: &[SetPlan],
    steps: &mut Vec<Step>,
    end_ms: u64,
) {
    let mut random = StdRng::seed_from_u64(seed ^ (STREAM << 32));
    if !random.random_bool(PLANS) {
        return;
    }
    let set = sets.choose(&mut random).expect("there are sets");
    let mut generator = Generator {
        set: set.name.clone(),
        random,
        members,
        steps,
        end_ms,
    };
    generator.draw();
}

struct Generator<'a> {
    random: StdRng,
    set: String,
    members: &'a [MemberPlan],
    steps: &'a mut Vec<Step>,
    end_ms: u64,
}

impl Generator<'_> {
    fn push(&mut self, at_ms: u64, work: AvailabilityWork) {
        self.steps.push(Step {
            at_ms: at_ms.min(self.end_ms),
            action: Action::Availability(work),
        });
    }

    fn at(&mut self) -> u64 {
        self.random.random_range(0..=self.end_ms)
    }

    fn member(&mut self) -> String {
        let member = self.members.choose(&mut self.random);
        member.expect("there are members").name.clone()
    }

    fn draw(&mut self) {
        // Most pods are limited from the beginning.
        let created = if self.random.random_bool(0.7) {
            0
        } else {
            self.at()
        };
        self.create(created);
        for _ in 0..self.random.random_range(0..3) {
            let at_ms = self.random.random_range(created..=self.end_ms);
            let spec = json!({ "budget": self.budget() });
            let set = self.set.clone();
            self.push(at_ms, AvailabilityWork::Edit { set, spec });
        }
        if self.random.random_bool(0.2) {
            let at_ms = self.random.random_range(created..=self.end_ms);
            let set = self.set.clone();
            self.push(at_ms, AvailabilityWork::Delete { set });
            let again = at_ms + self.random.random_range(1..60_000);
            self.create(again);
        }
        for _ in 0..self.random.random_range(2..=10) {
            self.drain();
        }
        for _ in 0..self.random.random_range(0..3) {
            self.writes();
        }
    }

    fn budget(&mut self) -> u64 {
        self.random.random_range(1..=4)
    }

    fn create(&mut self, at_ms: u64) {
        let is_one = self.random.random_bool(0.4);
        let spec = json!({ "budget": self.budget(), "oneClusterAtATime": is_one });
        let set = self.set.clone();
        self.push(at_ms, AvailabilityWork::Create { set, spec });
    }

    /// Several evictions in a member, one soon after the other, sometimes in another one at the same time.
    fn drain(&mut self) {
        let mut at_ms = self.at();
        let (first, second) = (self.member(), self.member());
        let is_in_both = self.random.random_bool(0.5);
        let longest = *[100, 2_000, 15_000].choose(&mut self.random).unwrap_or(&1);
        for _ in 0..self.random.random_range(1..=8) {
            let member = if is_in_both && self.random.random_bool(0.5) {
                second.clone()
            } else {
                first.clone()
            };
            let pod = Selected {
                member,
                set: self.set.clone(),
                index: self.random.random_range(0..20),
            };
            self.push(at_ms, AvailabilityWork::Evict { pod });
            at_ms += self.random.random_range(0..=longest);
        }
    }

    /// Writes of loans are rejected, or their responses are lost.
    fn writes(&mut self) {
        let at_ms = self.at();
        let (cluster, resource, verb) = match self.random.random_range(0..4) {
            0 => (HOST.to_owned(), "availabilitysets", "update"),
            1 => (self.member(), "poddisruptionbudgets", "create"),
            _ => (self.member(), "poddisruptionbudgets", "patch"),
        };
        let (resource, verb) = (resource.to_owned(), verb.to_owned());
        let times = self.random.random_range(1..4);
        let action = if self.random.random_bool(0.6) {
            Action::LoseResponses {
                cluster,
                resource,
                verb,
                times,
            }
        } else {
            let code = *[403, 409, 500].choose(&mut self.random).unwrap_or(&500);
            Action::Reject {
                cluster,
                resource,
                verb,
                times,
                code,
            }
        };
        self.steps.push(Step { at_ms, action });
    }
}
