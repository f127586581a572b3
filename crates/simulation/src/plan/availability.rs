//! AvailabilitySets in a plan: one, over the pods of a set, and evictions of these pods.

use rand::{RngExt, seq::IndexedRandom};
use serde_json::json;

use super::{Action, AvailabilityWork, MemberPlan, Selected, SetPlan, Step, stream::Stream};
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
    if let Some(mut stream) = Stream::of((seed, STREAM, PLANS), members, steps, end_ms) {
        let set = sets.choose(&mut stream.random).expect("there are sets");
        let set = set.name.clone();
        Generator { stream, set }.draw();
    }
}

struct Generator<'a> {
    stream: Stream<'a>,
    set: String,
}

impl Generator<'_> {
    fn push(&mut self, at_ms: u64, work: AvailabilityWork) {
        self.stream.push(at_ms, Action::Availability(work));
    }

    fn draw(&mut self) {
        // Most pods are limited from the beginning.
        let created = if self.stream.random.random_bool(0.7) {
            0
        } else {
            self.stream.at()
        };
        self.create(created);
        for _ in 0..self.stream.random.random_range(0..3) {
            let at_ms = self
                .stream
                .random
                .random_range(created..=self.stream.end_ms);
            let spec = json!({ "budget": self.budget() });
            let set = self.set.clone();
            self.push(at_ms, AvailabilityWork::Edit { set, spec });
        }
        if self.stream.random.random_bool(0.2) {
            let at_ms = self
                .stream
                .random
                .random_range(created..=self.stream.end_ms);
            let set = self.set.clone();
            self.push(at_ms, AvailabilityWork::Delete { set });
            let again = at_ms + self.stream.random.random_range(1..60_000);
            self.create(again);
        }
        for _ in 0..self.stream.random.random_range(2..=10) {
            self.drain();
        }
        for _ in 0..self.stream.random.random_range(0..3) {
            self.writes();
        }
    }

    fn budget(&mut self) -> u64 {
        self.stream.random.random_range(1..=4)
    }

    fn create(&mut self, at_ms: u64) {
        let is_one = self.stream.random.random_bool(0.4);
        let spec = json!({ "budget": self.budget(), "oneClusterAtATime": is_one });
        let set = self.set.clone();
        self.push(at_ms, AvailabilityWork::Create { set, spec });
    }

    /// Several evictions in a member, one soon after the other, sometimes in another one at the same time.
    fn drain(&mut self) {
        let mut at_ms = self.stream.at();
        let (first, second) = (self.stream.member(), self.stream.member());
        let is_in_both = self.stream.random.random_bool(0.5);
        let longest = *[100, 2_000, 15_000]
            .choose(&mut self.stream.random)
            .unwrap_or(&1);
        for _ in 0..self.stream.random.random_range(1..=8) {
            let member = if is_in_both && self.stream.random.random_bool(0.5) {
                second.name.clone()
            } else {
                first.name.clone()
            };
            let pod = Selected {
                member,
                set: self.set.clone(),
                index: self.stream.random.random_range(0..20),
            };
            self.push(at_ms, AvailabilityWork::Evict { pod });
            at_ms += self.stream.random.random_range(0..=longest);
        }
    }

    /// Writes of loans are rejected, or their responses are lost.
    fn writes(&mut self) {
        let at_ms = self.stream.at();
        let (cluster, resource, verb) = match self.stream.random.random_range(0..4) {
            0 => (HOST.to_owned(), "availabilitysets", "update"),
            1 => (
                self.stream.member().name.clone(),
                "poddisruptionbudgets",
                "create",
            ),
            _ => (
                self.stream.member().name.clone(),
                "poddisruptionbudgets",
                "patch",
            ),
        };
        let times = self.stream.random.random_range(1..4);
        let is_lost = self.stream.random.random_bool(0.6);
        let codes = [403, 409, 500];
        let code = (!is_lost).then(|| *codes.choose(&mut self.stream.random).unwrap_or(&500));
        let action = Action::failing((cluster, resource, verb), times, code);
        self.stream.push(at_ms, action);
    }
}
