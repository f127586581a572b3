//! The next step of a rolling update from one set to another (C9). Pure.

use std::fmt;

/// A set, as its spec and its status have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    /// `spec.replicas`.
    pub(super) replicas: u32,
    /// Pods that run or are about to.
    pub(super) live: u32,
    /// Available pods.
    pub(super) available: u32,
    /// Whether the status is about the present spec.
    pub(super) is_observed: bool,
}

/// How far the number of pods may depart from that which is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Pods beyond it.
    pub max_surge: u32,
    /// Pods of it that may be unavailable.
    pub max_unavailable: u32,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The new set gets this number of replicas: one more.
    ScaleUp(u32),
    /// The old set gets this number of replicas: one less.
    ScaleDown(u32),
    /// The new set has all replicas, and the old one none.
    Complete,
    /// Nothing may be done before something else happens.
    Wait(Pending),
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// The controller has to observe a spec, or to create or remove pods.
    Controller,
    /// Pods of the new set have to become available.
    NewPods {
        /// Available pods.
        available: u32,
        /// Its replicas.
        replicas: u32,
    },
    /// Too few pods are available to remove one.
    Available {
        /// Available pods of both.
        available: u32,
        /// The least that is needed.
        least: u32,
    },
}

impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller => f.write_str("the controller has not acted yet"),
            Self::NewPods {
                available,
                replicas,
            } => write!(f, "{available} of {replicas} new pods are available"),
            Self::Available { available, least } => write!(
                f,
                "{available} pods are available, and {least} must stay so when one is removed"
            ),
        }
    }
}

/// What comes next on the way to `desired` replicas of the new set: one pod at a time, and nothing while the last one is not done.
pub(super) fn step(old: Side, new: Side, desired: u32, limits: Limits) -> Step {
    let is_done = |side: &Side| side.is_observed && side.live == side.replicas;
    if !is_done(&old) || !is_done(&new) {
        return Step::Wait(Pending::Controller);
    }
    // Of the pods of a set those that are not available are removed first.
    let kept = old.available.min(old.replicas.saturating_sub(1)) + new.available;
    let least = desired.saturating_sub(limits.max_unavailable);
    if old.replicas > 0 && kept >= least {
        return Step::ScaleDown(old.replicas - 1);
    }
    if new.available < new.replicas {
        return Step::Wait(Pending::NewPods {
            available: new.available,
            replicas: new.replicas,
        });
    }
    let total = old.replicas.saturating_add(new.replicas);
    if new.replicas < desired && total < desired.saturating_add(limits.max_surge) {
        return Step::ScaleUp(new.replicas + 1);
    }
    if old.replicas == 0 {
        return Step::Complete;
    }
    Step::Wait(Pending::Available {
        available: old.available + new.available,
        least,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A set all of whose pods are available.
    fn side(replicas: u32) -> Side {
        Side {
            replicas,
            live: replicas,
            available: replicas,
            is_observed: true,
        }
    }

    fn available(replicas: u32, available: u32) -> Side {
        Side {
            available,
            ..side(replicas)
        }
    }

    const SURGE: Limits = Limits {
        max_surge: 1,
        max_unavailable: 0,
    };
    const IN_PLACE_OF: Limits = Limits {
        max_surge: 0,
        max_unavailable: 1,
    };

    #[rstest]
    #[case::first_one_more(side(3), side(0), SURGE, Step::ScaleUp(1))]
    #[case::then_one_less(side(3), side(1), SURGE, Step::ScaleDown(2))]
    #[case::once_it_is_available(side(3), available(1, 0), SURGE, Step::Wait(Pending::NewPods { available: 0, replicas: 1 }))]
    #[case::a_broken_one_goes_at_once(available(3, 2), side(1), SURGE, Step::ScaleDown(2))]
    #[case::too_few(available(3, 1), side(1), SURGE, Step::Wait(Pending::Available { available: 2, least: 3 }))]
    #[case::the_last(side(1), side(3), SURGE, Step::ScaleDown(0))]
    #[case::complete(side(0), side(3), SURGE, Step::Complete)]
    #[case::without_surge(side(3), side(0), IN_PLACE_OF, Step::ScaleDown(2))]
    #[case::then_one_more(side(2), side(0), IN_PLACE_OF, Step::ScaleUp(1))]
    #[case::not_observed(Side { is_observed: false, ..side(3) }, side(0), SURGE, Step::Wait(Pending::Controller))]
    #[case::not_removed(Side { live: 4, ..side(3) }, side(1), SURGE, Step::Wait(Pending::Controller))]
    fn c9_one_up_one_down(
        #[case] old: Side,
        #[case] new: Side,
        #[case] limits: Limits,
        #[case] expected: Step,
    ) {
        assert_eq!(step(old, new, 3, limits), expected);
    }

    /// Whatever pods become available when, and when it is reversed: the limits hold, and it ends.
    #[test]
    fn c9_the_limits_hold_in_both_directions() {
        let both = Limits {
            max_surge: 2,
            max_unavailable: 1,
        };
        for (desired, limits) in
            (1..6).flat_map(|desired| [SURGE, IN_PLACE_OF, both].map(|limits| (desired, limits)))
        {
            for pattern in 0..500_u64 {
                // Bits that differ from pattern to pattern.
                let late = pattern.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                check(desired, limits, late, pattern % 40);
            }
        }
    }

    fn check(desired: u32, limits: Limits, late: u64, reverse_at: u64) {
        let (mut old, mut new) = (side(desired), side(0));
        for index in 0..200_u64 {
            if index == reverse_at {
                std::mem::swap(&mut old, &mut new);
            }
            match step(old, new, desired, limits) {
                Step::ScaleUp(replicas) => {
                    assert_eq!(replicas, new.replicas + 1);
                    (new.replicas, new.live) = (replicas, replicas);
                }
                Step::ScaleDown(replicas) => {
                    assert_eq!(replicas, old.replicas - 1);
                    old = available(replicas, old.available.min(replicas));
                }
                Step::Complete => assert_eq!((old.replicas, new.replicas), (0, desired)),
                Step::Wait(_) => {
                    assert!(old.available < old.replicas || new.available < new.replicas);
                }
            }
            assert!(old.replicas + new.replicas <= desired + limits.max_surge);
            assert!(old.available + new.available + limits.max_unavailable >= desired);
            if index > 63 || late >> index & 1 == 0 {
                (old.available, new.available) = (old.replicas, new.replicas);
            }
        }
        assert_eq!((old.replicas, new.replicas), (0, desired));
    }
}
