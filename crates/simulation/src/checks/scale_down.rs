//! What a write that reduces the replicas of a local set leaves.

use fedrs_api::ValidFrs;

use super::observed::Observed;
use crate::set_kind::ValidSet;

/// A write that reduces the replicas of a local set.
pub(super) struct ScaleDown<'a> {
    pub(super) observed: &'a Observed,
    pub(super) name: &'a str,
    pub(super) member: &'a str,
    pub(super) before: u64,
    pub(super) now: u64,
    /// The replicas that were ready according to the status of the set when the write was carried out: the write can be
    /// conditional on it.
    pub(super) counted: u64,
}

impl ScaleDown<'_> {
    /// F20: at least N replicas remain, or as many as there were. If `strict`, replicas in members whose state the controller
    /// knows to be unknown do not count.
    pub(super) fn dip(&self, strict: bool) -> Option<String> {
        let Self {
            observed,
            name,
            member,
            before,
            now,
            counted,
        } = *self;
        let needed = self.needed()?;
        let mut of_member = None;
        let mut in_others = 0;
        for (other, part) in observed.parts(name) {
            let oldest = observed.oldest_belief(other);
            let believed = observed.believed_ready(other, part);
            if other == member {
                let at_least = counted.min(*part.ready.now());
                let ready = believed.map(|ready| at_least.max(ready));
                of_member = Some(ready.collect::<Vec<_>>());
            } else if !(strict && observed.is_known_to_be_unknown(other)) {
                let counted = part.counted.since(oldest).max().copied();
                let available = believed.max().min(counted).unwrap_or(0);
                in_others += available.min(part.fewest_requested(oldest));
            }
        }
        // The write is allowed if it is right by one of the possible states.
        let dips = of_member?.into_iter().map(|ready| {
            let (was, left) = (in_others + ready.min(before), in_others + ready.min(now));
            (left < needed.min(was)).then(|| {
                format!("{name} in {member} scaled from {before} to {now}: {was} replicas were ready, {left} are left, {needed} are needed")
            })
        });
        dips.collect::<Option<Vec<_>>>()?.pop()
    }

    /// The fewest replicas that a spec of the set needs; none if there is no valid one.
    pub(super) fn needed(&self) -> Option<u64> {
        let sets = self.observed.valid_sets(self.name);
        let needed = |set: &ValidSet| {
            // A rollout may make as many unavailable.
            let rollout = set.rollout.as_ref();
            let budget = rollout.map_or(0, |spec| spec.limits(&set.frs).unavailable);
            needed(self.observed, self.name, &set.frs).saturating_sub(budget)
        };
        sets.map(needed).min()
    }
}

/// N, or fewer if the placement allows fewer.
pub(super) fn needed(observed: &Observed, name: &str, frs: &ValidFrs) -> u64 {
    let wanted = u64::from(frs.replicas);
    let allowed = observed.parts(name).map(|(member, _)| {
        let Some(preference) = frs.placement.for_cluster(member) else {
            return 0;
        };
        let max = preference.max_replicas.map_or(wanted, i64::unsigned_abs);
        if preference.weight == 0 {
            max.min(preference.min_replicas.unsigned_abs())
        } else {
            max
        }
    });
    wanted.min(allowed.sum())
}
