//! The next step from what the clusters hold to what they should hold, never running fewer (F20).
//!
//! A replica that runs is given up only while more than the floor are ready; one that doesn't run is given up at
//! once. Growth may exceed N by the surge. Every write of a step is safe by itself, so that a crash after any of them, or
//! one that fails, leaves no fewer running than before, and no more than allowed.

/// One usable cluster, as far as moves depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    /// Replicas asked of the local set now (`spec.replicas`).
    pub(crate) placed: u64,
    /// Pods that may be ready, also those not ready for long enough; more than `placed` while the member still removes some.
    pub(crate) ready: u64,
    /// Pods that are available, and will stay when what has been asked for is carried out.
    pub(crate) available: u64,
    /// Replicas it should have, with probes.
    pub(crate) target: u64,
    /// Of these: wait here as no cluster can run them now (F18).
    pub(crate) pending: u64,
}

impl Holding {
    /// Replicas it should have and may be able to run.
    fn hopeful(&self) -> u64 {
        self.target - self.pending
    }

    /// Replicas that are asked for, or still run although they aren't any more.
    fn held(&self) -> u64 {
        self.placed.max(self.ready)
    }
}

/// Bounds of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Available replicas that must be left: N, or what the preferences allow of it.
    pub(crate) floor: u64,
    /// The most replicas that the clusters together may be asked for or run: N, the surge and the probes, less what
    /// frozen members hold.
    pub(crate) ceiling: u64,
}

/// The next `spec.replicas` of each cluster, in order; the current one where nothing may change yet.
pub(crate) fn next_step(holdings: &[Holding], bounds: Bounds) -> Vec<u64> {
    let mut next: Vec<u64> = holdings.iter().map(|it| it.placed).collect();
    let available: u64 = holdings.iter().map(|it| it.available.min(it.placed)).sum();
    let mut spare = available.saturating_sub(bounds.floor);
    for (next, holding) in next.iter_mut().zip(holdings) {
        let surplus = holding.placed.saturating_sub(holding.target);
        // The member's controller removes pods that are not ready first.
        let not_running = holding.placed - holding.ready.min(holding.placed);
        let idle = surplus.min(not_running);
        let running = (surplus - idle).min(spare);
        spare -= running;
        *next -= idle + running;
        // What the member has yet to remove is asked for again, which makes no more of it.
        *next = holding.target.min(holding.ready).max(*next);
    }
    // What is given up is still there until the member has removed it, which may take time, or fail.
    let held = holdings.iter().map(Holding::held).sum();
    let mut growth = bounds.ceiling.saturating_sub(held);
    yield_waiting(&mut next, holdings, growth);
    for wanted in [Holding::hopeful, |it: &Holding| it.target] {
        for (next, holding) in next.iter_mut().zip(holdings) {
            let held = holding.placed.max(*next);
            let missing = wanted(holding).saturating_sub(held).min(growth);
            growth -= missing;
            *next += missing;
        }
    }
    next
}

/// Takes back replicas that only wait where others may run once they are asked for, if `growth` is not enough for these:
/// waiting ones would use the surge up for ever.
fn yield_waiting(next: &mut [u64], holdings: &[Holding], growth: u64) {
    let hopeful = holdings.iter().zip(next.iter());
    let missing: u64 = hopeful
        .map(|(holding, next)| holding.hopeful().saturating_sub(*next))
        .sum();
    let mut left = missing.saturating_sub(growth);
    for (next, holding) in next.iter_mut().zip(holdings) {
        let waiting = next.saturating_sub(holding.hopeful().max(holding.ready));
        let taken = waiting.min(holding.pending).min(left);
        left -= taken;
        *next -= taken;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn running(placed: u64, target: u64) -> Holding {
        Holding {
            placed,
            ready: placed,
            available: placed,
            target,
            pending: 0,
        }
    }

    fn bounds(replicas: u64) -> Bounds {
        Bounds {
            floor: replicas,
            ceiling: replicas + (replicas / 4).max(1),
        }
    }

    #[test]
    fn f20_a_move_makes_before_it_breaks() {
        let before = [running(8, 4), running(0, 4)];
        assert_eq!(
            next_step(&before, bounds(8)),
            [8, 2],
            "surge of 2, nothing removed yet"
        );
        let starting = [
            running(8, 4),
            Holding {
                placed: 2,
                ready: 0,
                available: 0,
                target: 4,
                pending: 0,
            },
        ];
        assert_eq!(
            next_step(&starting, bounds(8)),
            [8, 2],
            "waits for the replacements"
        );
        let ready = [running(8, 4), running(2, 4)];
        assert_eq!(
            next_step(&ready, bounds(8)),
            [6, 2],
            "two ready ones allow two to go"
        );
        let gone = [running(6, 4), running(2, 4)];
        assert_eq!(
            next_step(&gone, bounds(8)),
            [6, 4],
            "two that are gone allow two more to be made"
        );
    }

    #[test]
    fn f20_what_does_not_run_is_given_up_at_once() {
        let full = [
            running(17, 22),
            Holding {
                placed: 17,
                ready: 6,
                available: 6,
                target: 8,
                pending: 0,
            },
        ];
        assert_eq!(
            next_step(
                &full,
                Bounds {
                    floor: 34,
                    ceiling: 44
                }
            ),
            [22, 8]
        );
    }

    #[test]
    fn f20_scaling_down_by_the_user_happens_at_once() {
        assert_eq!(
            next_step(&[running(30, 10), running(30, 10)], bounds(20)),
            [10, 10]
        );
    }

    #[test]
    fn f20_ready_but_not_yet_available_counts_as_running_but_not_as_spare() {
        let fresh = [
            running(8, 4),
            Holding {
                placed: 2,
                ready: 2,
                available: 0,
                target: 4,
                pending: 0,
            },
        ];
        assert_eq!(next_step(&fresh, bounds(8)), [8, 2]);
    }

    #[test]
    fn f20_growth_waits_for_what_a_member_has_yet_to_remove() {
        let slow = |placed| Holding {
            placed,
            ready: 10,
            available: placed,
            target: 4,
            pending: 0,
        };
        let bounds = bounds(12);
        assert_eq!(next_step(&[slow(10), running(5, 8)], bounds), [7, 5]);
        assert_eq!(
            next_step(&[slow(7), running(5, 8)], bounds),
            [7, 5],
            "10 run where 7 are asked for"
        );
        assert_eq!(next_step(&[running(7, 4), running(5, 8)], bounds), [7, 8]);
        let wanted_again = Holding {
            target: 9,
            ..slow(7)
        };
        assert_eq!(
            next_step(&[wanted_again, running(5, 6)], bounds),
            [9, 5],
            "those that still run are kept"
        );
    }

    #[test]
    fn f20_what_only_waits_yields_the_surge_to_what_may_run() {
        let waiting = |placed| Holding {
            placed,
            ready: 11,
            available: 11,
            target: 17,
            pending: 6,
        };
        let bounds = Bounds {
            floor: 26,
            ceiling: 32,
        };
        let blocked = [waiting(17), running(4, 9), running(11, 0)];
        assert_eq!(next_step(&blocked, bounds), [12, 4, 11]);
        let yielded = [waiting(12), running(4, 9), running(11, 0)];
        assert_eq!(next_step(&yielded, bounds), [12, 9, 11]);
        let settled = [waiting(17), running(9, 9), running(6, 0)];
        assert_eq!(next_step(&settled, bounds), [17, 9, 6]);
    }

    fn holding() -> impl Strategy<Value = Holding> {
        let numbers = (0..40u64, 0..40u64, 0..40u64, 0..40u64, 0..40u64);
        numbers.prop_map(|(placed, ready, available, target, pending)| Holding {
            placed,
            ready,
            available: available.min(ready).min(placed),
            target,
            pending: pending.min(target),
        })
    }

    proptest! {
        /// F20: whichever pods the members' controllers take first among the ready ones, what stays available is
        /// never below the floor, or what it was.
        #[test]
        fn f20_no_step_dips(holdings in prop::collection::vec(holding(), 0..8), floor in 0..80u64, surge in 0..20u64) {
            let bounds = Bounds { floor, ceiling: floor + surge };
            let next = next_step(&holdings, bounds);
            let before: u64 = holdings.iter().map(|it| it.available).sum();
            let after: u64 = holdings.iter().zip(&next).map(|(it, &next)| {
                let removed_ready = it.ready.min(it.placed).saturating_sub(next);
                it.available.saturating_sub(removed_ready)
            }).sum();
            prop_assert!(after >= before.min(floor), "{before} -> {after}");
        }

        /// F20: growth stays below the ceiling, unless it was exceeded before, whichever of the writes are carried out.
        #[test]
        fn f20_growth_keeps_to_the_ceiling(holdings in prop::collection::vec(holding(), 0..8), floor in 0..80u64, surge in 0..20u64) {
            let bounds = Bounds { floor, ceiling: floor + surge };
            let before: u64 = holdings.iter().map(Holding::held).sum();
            let next = next_step(&holdings, bounds);
            let after: u64 = holdings.iter().zip(next).map(|(it, next)| next.max(it.held())).sum();
            prop_assert!(after <= bounds.ceiling.max(before));
        }

        /// Where what is pending never runs, steps lead to the target all the same, and stop there.
        #[test]
        fn f18_steps_arrive_although_some_only_wait(mut holdings in prop::collection::vec(holding(), 1..8)) {
            let total: u64 = holdings.iter().map(|it| it.target).sum();
            let room: Vec<_> = holdings.iter().map(|it| it.hopeful().max(it.ready.min(it.placed))).collect();
            for _ in 0..200 {
                for (holding, room) in holdings.iter_mut().zip(&room) {
                    holding.ready = holding.placed.min(*room);
                    holding.available = holding.ready;
                }
                // A cluster keeps what runs there beyond what it may be given, until it is given up.
                let running: u64 = holdings.iter().map(|it| it.target.min(it.hopeful().max(it.ready))).sum();
                let step = Bounds { floor: running, ..bounds(total) };
                let next = next_step(&holdings, step);
                for (holding, next) in holdings.iter_mut().zip(next) {
                    holding.placed = next;
                }
            }
            for holding in &holdings {
                prop_assert_eq!(holding.placed, holding.target, "{:?}", holdings);
            }
        }

        /// When everything runs, steps lead to the target and stop there.
        #[test]
        fn f20_steps_arrive(mut holdings in prop::collection::vec(holding(), 1..8)) {
            let total: u64 = holdings.iter().map(|it| it.target).sum();
            for _ in 0..200 {
                for holding in &mut holdings {
                    (holding.ready, holding.available) = (holding.placed, holding.placed);
                }
                let next = next_step(&holdings, bounds(total));
                for (holding, next) in holdings.iter_mut().zip(next) {
                    holding.placed = next;
                }
            }
            for holding in &holdings {
                prop_assert_eq!(holding.placed, holding.target);
            }
        }
    }
}
