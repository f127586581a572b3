//! What is drawn for a plan after the rest of it, from a stream of its own: a plan without that has no other steps than before.

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use super::{Action, MemberPlan, Step};

/// The steps of one topic.
pub(super) struct Stream<'a> {
    pub(super) random: StdRng,
    pub(super) members: &'a [MemberPlan],
    pub(super) end_ms: u64,
    steps: &'a mut Vec<Step>,
}

impl<'a> Stream<'a> {
    /// The stream of a topic in the plan of this seed, which has steps until `end_ms`; `None` in all but the `share` of plans.
    pub(super) fn of(
        (seed, topic, share): (u64, u64, f64),
        members: &'a [MemberPlan],
        steps: &'a mut Vec<Step>,
        end_ms: u64,
    ) -> Option<Self> {
        let mut random = StdRng::seed_from_u64(seed ^ (topic << 32));
        random.random_bool(share).then_some(Self {
            random,
            members,
            end_ms,
            steps,
        })
    }

    pub(super) fn push(&mut self, at_ms: u64, action: Action) {
        let at_ms = at_ms.min(self.end_ms);
        self.steps.push(Step { at_ms, action });
    }

    /// Some time.
    pub(super) fn at(&mut self) -> u64 {
        self.random.random_range(0..=self.end_ms)
    }

    pub(super) fn member(&mut self) -> &'a MemberPlan {
        let member = self.members.choose(&mut self.random);
        member.expect("there are members")
    }
}
