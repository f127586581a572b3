//! Shares replicas out by weight within bounds: Webster's divisor method (F14, F16, F17).
//!
//! The method starts every cluster at its lower bound, and grants the extra replica with the highest quotient until no
//! replica is left. One step for each replica would take too long, so it jumps and then steps:
//!
//! ```text
//! find a multiplier m   at which ⌊w·m + 1/2⌋ extras of each cluster, within its bounds, add up to about all replicas
//!   -> jump             grants exactly the extras with quotients of at least 1 / 2m
//!   -> step             grants the few that are missing, or takes back the few that are too many, by quotient
//! ```
//!
//! A jump grants the extras with the highest quotients, and so does each step: any multiplier leads to the same layout.
//! A good one leaves few steps.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::candidate::Candidate;

/// Newton steps before the search for a multiplier halves its interval instead. Two to four are usual; the limit is there
/// for bounds of which each step meets another one.
const NEWTON_STEPS: usize = 8;

/// Sets the extras of `candidates` so that they add up to `replicas`, as far as their upper bounds allow.
/// Returns what no candidate can take. Their lower bounds must not add up to more than `replicas`.
pub(crate) fn share_out(candidates: &mut [Candidate], replicas: u64) -> u64 {
    let upper: u128 = sum(candidates, |candidate| candidate.upper);
    let wanted = u128::from(replicas);
    if upper <= wanted {
        let mut left = replicas;
        for candidate in candidates {
            candidate.extra = candidate.upper;
            left -= candidate.extra;
        }
        return left;
    }
    let granted = jump(candidates, wanted);
    if granted < wanted {
        grant(candidates, wanted - granted);
    } else {
        take_back(candidates, granted - wanted);
    }
    0
}

/// Grants `count` extras, each to the highest next quotient; among equal ones, to the candidate that comes first.
fn grant(candidates: &mut [Candidate], count: u128) {
    let claim =
        |rank: usize, candidate: &Candidate| Some((candidate.next_quotient()?, Reverse(rank)));
    let all = candidates.iter().enumerate();
    let mut claims: BinaryHeap<_> = all
        .filter_map(|(rank, candidate)| claim(rank, candidate))
        .collect();
    for _ in 0..count {
        let (_, Reverse(rank)) = claims.pop().expect("the upper bounds allow all steps");
        candidates[rank].extra += 1;
        claims.extend(claim(rank, &candidates[rank]));
    }
}

/// Takes `count` extras back, each from the lowest last quotient; among equal ones, from the candidate that comes last.
fn take_back(candidates: &mut [Candidate], count: u128) {
    let claim =
        |rank: usize, candidate: &Candidate| Some((Reverse(candidate.last_quotient()?), rank));
    let all = candidates.iter().enumerate();
    let mut claims: BinaryHeap<_> = all
        .filter_map(|(rank, candidate)| claim(rank, candidate))
        .collect();
    for _ in 0..count {
        let (_, rank) = claims.pop().expect("the lower bounds allow all steps");
        candidates[rank].extra -= 1;
        claims.extend(claim(rank, &candidates[rank]));
    }
}

/// Grants the extras of a multiplier at which `candidates` miss `wanted` by about half their number or less. Returns how
/// many it granted.
///
/// Newton's method: at each step the candidates between their bounds share what the others leave. Where it leaves the
/// interval known to hold the answer, or takes too many steps, the interval is halved: at most as often as it has bits, so
/// that the time is bounded whatever the numbers are.
fn jump(candidates: &mut [Candidate], wanted: u128) -> u128 {
    let close_enough = candidates.len() as u128 / 2;
    let (mut too_low, mut too_high) = (0, u128::MAX);
    let mut multiplier = multiplier(wanted, sum(candidates, |candidate| candidate.weight));
    let mut steps = 0..NEWTON_STEPS;
    while too_high - too_low > 1 {
        let granted = grant_at(candidates, multiplier);
        if granted.replicas.abs_diff(wanted) <= close_enough {
            return granted.replicas;
        }
        if granted.replicas < wanted {
            too_low = multiplier;
        } else {
            too_high = multiplier;
        }
        let middle = too_low + (too_high - too_low) / 2;
        multiplier = match steps.next().and_then(|_| granted.newton(wanted)) {
            Some(next) if too_low < next && next < too_high => next,
            _ => middle,
        };
    }
    grant_at(candidates, too_low).replicas
}

/// What the candidates get at a multiplier.
#[derive(Default)]
struct Granted {
    /// Extras of all candidates.
    replicas: u128,
    /// Extras of the candidates at one of their bounds.
    at_bounds: u128,
    /// The weight of the others.
    free_weight: u128,
}

impl Granted {
    /// The multiplier at which the candidates between their bounds share what the others leave.
    fn newton(&self, wanted: u128) -> Option<u128> {
        let left = wanted.checked_sub(self.at_bounds)?;
        (self.free_weight > 0).then(|| multiplier(left, self.free_weight))
    }
}

/// `replicas` (64 bits) for each unit of `weight`, with 64 bits after the point. Two neighbouring multipliers differ by
/// less than one replica in each cluster, since a weight has no more bits than that.
fn multiplier(replicas: u128, weight: u128) -> u128 {
    (replicas << 64) / weight
}

/// Grants each candidate ⌊w·m + 1/2⌋ extras for the `multiplier` m, within its bounds.
fn grant_at(candidates: &mut [Candidate], multiplier: u128) -> Granted {
    let mut granted = Granted::default();
    for candidate in candidates {
        let share = nearest(candidate.weight, multiplier);
        candidate.extra = share.clamp(candidate.lower, candidate.upper);
        granted.replicas += u128::from(candidate.extra);
        if candidate.extra == share {
            granted.free_weight += u128::from(candidate.weight);
        } else {
            granted.at_bounds += u128::from(candidate.extra);
        }
    }
    granted
}

/// ⌊w·m + 1/2⌋, exactly, or `u64::MAX` if that is less.
fn nearest(weight: u64, multiplier: u128) -> u64 {
    const HALF: u128 = 1 << 63;
    let weight = u128::from(weight);
    let (whole, fraction) = (multiplier >> 64, multiplier & u128::from(u64::MAX));
    let product = weight * whole + ((weight * fraction + HALF) >> 64);
    u64::try_from(product).unwrap_or(u64::MAX)
}

fn sum(candidates: &[Candidate], number: impl Fn(&Candidate) -> u64) -> u128 {
    candidates
        .iter()
        .map(|candidate| u128::from(number(candidate)))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_to_the_nearest() {
        // Ten thirds for a unit of weight.
        for (weight, share) in [(1, 3), (2, 7), (3, 10), (100_000, 333_333)] {
            assert_eq!(nearest(weight, multiplier(10, 3)), share);
        }
        assert_eq!(nearest(u64::MAX, u128::MAX), u64::MAX);
        assert_eq!(nearest(u64::MAX, 1 << 64), u64::MAX);
    }
}
