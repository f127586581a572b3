//! Shares replicas out by weight within bounds: Webster's divisor method (F14, F16, F17).
//!
//! What is computed is simple: every cluster starts at its lower bound, and the cheapest free seat (see
//! `seat`) is filled until no replica is left. Done literally it takes a step for each replica, so most
//! of the seats are filled at once:
//!
//! ```text
//! find a threshold x   at which clusters with ⌊w·x + 1/2⌋ extras, within their bounds, need about all replicas
//!   -> fill to it      exactly the seats that cost at most 2x
//!   -> fill or free    the few that are missing or too many, one by one, by price
//! ```
//!
//! Any threshold is right, a good one is quick: filling to a threshold fills a prefix of the seats in order
//! of price, and filling the cheapest free seat, or freeing the dearest filled one, goes from one prefix
//! to the next. So where the threshold lies decides how many single steps are left and nothing else.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{FEW_CLUSTERS, bounds::Candidate, seat::Seat};

/// Newton steps before the search for a threshold halves its interval instead. Two to four are usual; the
/// limit is there for bounds made so that each step meets another one.
const NEWTON_STEPS: u32 = 8;

/// Sets the extras of `candidates` so that they add up to `replicas`, as far as their upper bounds allow.
/// Returns what no candidate can take. Their lower bounds must not add up to more than `replicas`.
pub(crate) fn share_out(candidates: &mut [Candidate], replicas: u64) -> u64 {
    let upper = candidates
        .iter()
        .try_fold(0_u64, |sum, candidate| sum.checked_add(candidate.upper))
        .filter(|&upper| upper <= replicas);
    if let Some(upper) = upper {
        for candidate in candidates {
            candidate.extra = candidate.upper;
        }
        return replicas - upper;
    }
    let filled = Threshold::fill_up(candidates, replicas);
    let replicas = u128::from(replicas);
    let steps =
        |steps| usize::try_from(steps).expect("a threshold misses by a few times the clusters");
    if filled < replicas {
        take_steps::<Fill>(candidates, steps(replicas - filled));
    } else if filled > replicas {
        take_steps::<Free>(candidates, steps(filled - replicas));
    }
    0
}

/// A direction of single steps from one layout to the next.
trait Step {
    /// A candidate's claim to a step. The least claim wins.
    type Claim: Copy + Ord;

    /// The candidate's first claim, if its bounds allow one.
    fn first(candidate: &Candidate, rank: usize) -> Option<Self::Claim>;

    /// Its claim once `claim` has won, if its bounds allow another.
    fn following(candidate: &Candidate, claim: Self::Claim) -> Option<Self::Claim>;

    /// The rank of the candidate whose claim it is.
    fn rank(claim: Self::Claim) -> usize;

    /// Carries the step out.
    fn grant(candidate: &mut Candidate, claim: Self::Claim);
}

/// Fills the cheapest free seat.
struct Fill;

impl Step for Fill {
    type Claim = Seat;

    fn first(candidate: &Candidate, rank: usize) -> Option<Seat> {
        let price = candidate.first_free()?;
        Some(Seat { price, rank })
    }

    fn following(candidate: &Candidate, seat: Seat) -> Option<Seat> {
        let number = seat.price.number;
        (number < candidate.upper).then(|| Seat {
            price: candidate.price(number + 1),
            ..seat
        })
    }

    fn rank(seat: Seat) -> usize {
        seat.rank
    }

    fn grant(candidate: &mut Candidate, seat: Seat) {
        candidate.extra = seat.price.number;
    }
}

/// Frees the dearest filled seat.
struct Free;

impl Step for Free {
    type Claim = Reverse<Seat>;

    fn first(candidate: &Candidate, rank: usize) -> Option<Reverse<Seat>> {
        let price = candidate.last_filled()?;
        Some(Reverse(Seat { price, rank }))
    }

    fn following(candidate: &Candidate, Reverse(seat): Reverse<Seat>) -> Option<Reverse<Seat>> {
        let number = seat.price.number - 1;
        (number > candidate.lower).then(|| {
            Reverse(Seat {
                price: candidate.price(number),
                ..seat
            })
        })
    }

    fn rank(Reverse(seat): Reverse<Seat>) -> usize {
        seat.rank
    }

    fn grant(candidate: &mut Candidate, Reverse(seat): Reverse<Seat>) {
        candidate.extra = seat.price.number - 1;
    }
}

/// The first claims of all candidates.
fn claims<S: Step>(candidates: &[Candidate]) -> impl Iterator<Item = S::Claim> {
    let first = |(rank, candidate)| S::first(candidate, rank);
    candidates.iter().enumerate().filter_map(first)
}

/// The least claims, `count` (above 0) or all; the greatest of them can be peeked at.
fn least<T: Ord>(mut claims: impl Iterator<Item = T>, count: usize) -> BinaryHeap<T> {
    let mut least: BinaryHeap<_> = claims.by_ref().take(count).collect();
    for claim in claims {
        let mut greatest = least.peek_mut().expect("there is one of these already");
        if claim < *greatest {
            *greatest = claim;
        }
    }
    least
}

/// Takes `steps` steps (above 0), the least claim first. The bounds must allow that many.
fn take_steps<S: Step>(candidates: &mut [Candidate], steps: usize) {
    if steps == 1 || candidates.len() <= FEW_CLUSTERS {
        // Looking at all of them for each step is quicker than keeping a queue.
        for _ in 0..steps {
            let claim = claims::<S>(candidates)
                .min()
                .expect("the bounds allow all steps");
            S::grant(&mut candidates[S::rank(claim)], claim);
        }
        return;
    }
    // As many claims as there are steps stand before all others: those lose, whatever follows.
    let claims = least(claims::<S>(candidates), steps);
    let last = claims.peek().copied().filter(|_| claims.len() == steps);
    let following = |candidates: &[Candidate], claim| {
        S::following(&candidates[S::rank(claim)], claim)
            .filter(|following| last.is_none_or(|last| *following < last))
    };
    // Nearly always each of them wins a single step, so that their order doesn't matter.
    if last.is_some()
        && claims
            .iter()
            .all(|&claim| following(candidates, claim).is_none())
    {
        for claim in claims {
            S::grant(&mut candidates[S::rank(claim)], claim);
        }
        return;
    }
    let mut queue: BinaryHeap<_> = claims.into_iter().map(Reverse).collect();
    for _ in 0..steps {
        let Reverse(claim) = queue.pop().expect("the bounds allow all steps");
        S::grant(&mut candidates[S::rank(claim)], claim);
        queue.extend(following(candidates, claim).map(Reverse));
    }
}

/// Replicas for each unit of weight, in units of 2⁻⁶⁴.
///
/// Two neighbouring thresholds differ by less than one replica in every cluster, since a weight is below
/// 2⁶⁴: so there is always a threshold that misses the number of replicas by no more than the number of
/// clusters.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Threshold(u128);

/// What the clusters need at a threshold.
struct Need {
    /// Replicas of all clusters.
    replicas: u128,
    /// Replicas of the clusters that are at one of their bounds.
    bound: u128,
    /// The weights of the others.
    free_weight: u128,
}

impl Threshold {
    /// Fills `candidates` to a threshold at which they miss `replicas` by about their number or less. Returns the
    /// number of seats filled.
    ///
    /// Newton's method: at each step the clusters between their bounds share what the others leave. Where it
    /// leaves the interval known to hold the answer, or takes too many steps, the interval is halved: at most
    /// 128 times, so that the time is bounded whatever the numbers are.
    fn fill_up(candidates: &mut [Candidate], replicas: u64) -> u128 {
        let weight = candidates
            .iter()
            .map(|candidate| u128::from(candidate.weight))
            .sum();
        let wanted = u128::from(replicas);
        let (mut too_low, mut too_high) = (Self(0), Self(u128::MAX));
        let mut threshold = Self::quotient(wanted, weight);
        // So few single steps are quicker than another look at all candidates.
        let close_enough = 2 + candidates.len() as u128 / 16;
        for step in 0.. {
            let need = threshold.fill(candidates);
            if need.replicas.abs_diff(wanted) <= close_enough {
                return need.replicas;
            }
            if need.replicas < wanted {
                too_low = threshold;
            } else {
                too_high = threshold;
            }
            let newton = (step < NEWTON_STEPS && need.free_weight > 0 && need.bound <= wanted)
                .then(|| Self::quotient(wanted - need.bound, need.free_weight));
            if newton == Some(threshold) {
                // All that is left is due to rounding.
                return need.replicas;
            }
            threshold = match newton {
                Some(newton) if newton.is_between(too_low, too_high) => newton,
                _ => Self(too_low.0.midpoint(too_high.0)),
            };
            if !threshold.is_between(too_low, too_high) {
                break;
            }
        }
        threshold.fill(candidates).replicas
    }

    /// The threshold of `replicas` (below 2⁶⁴) for a total of `weight`.
    fn quotient(replicas: u128, weight: u128) -> Self {
        if let (Ok(replicas), Ok(weight)) = (u32::try_from(replicas), u32::try_from(weight)) {
            // Half as exact is exact enough for such weights; dividing 64 bits is ten times as quick.
            let quotient = (u64::from(replicas) << 32) / u64::from(weight);
            return Self(u128::from(quotient) << 32);
        }
        Self((replicas << 64) / weight)
    }

    fn is_between(self, low: Self, high: Self) -> bool {
        low.0 < self.0 && self.0 < high.0
    }

    /// Gives all candidates the seats that cost at most twice the threshold, within their bounds.
    fn fill(self, candidates: &mut [Candidate]) -> Need {
        // The first one is the heaviest.
        let greatest = candidates.first().map_or(0, |candidate| candidate.weight);
        match self.in_64_bits(greatest) {
            Some(threshold) => fill_by(candidates, |weight| (weight * threshold + (1 << 31)) >> 32),
            None => fill_by(candidates, |weight| self.seats(weight)),
        }
    }

    /// The threshold in units of 2⁻³², if that is exact and its product with weights up to `greatest` fits into 64 bits.
    fn in_64_bits(self, greatest: u64) -> Option<u64> {
        let threshold = u64::try_from(self.0 >> 32).ok()?;
        let fits = threshold
            .checked_mul(greatest)?
            .checked_add(1 << 31)
            .is_some();
        (fits && self.0 == u128::from(threshold) << 32).then_some(threshold)
    }

    /// The seats of a weight that cost at most twice the threshold: ⌊w·x + 1/2⌋, exactly, at most `u64::MAX`.
    fn seats(self, weight: u64) -> u64 {
        const HALF: u128 = 1 << 63;
        let weight = u128::from(weight);
        let (whole, fraction) = (self.0 >> 64, self.0 & u128::from(u64::MAX));
        let seats = weight * whole + ((weight * fraction + HALF) >> 64);
        u64::try_from(seats).unwrap_or(u64::MAX)
    }
}

/// Gives all candidates the `seats` of their weight, within their bounds.
fn fill_by(candidates: &mut [Candidate], seats: impl Fn(u64) -> u64) -> Need {
    let mut need = Need {
        replicas: 0,
        bound: 0,
        free_weight: 0,
    };
    for candidate in candidates {
        let seats = seats(candidate.weight);
        // Bounds in the right order are an invariant: `clamp` would check it for each.
        candidate.extra = seats.max(candidate.lower).min(candidate.upper);
        need.replicas += u128::from(candidate.extra);
        if candidate.extra == seats {
            need.free_weight += u128::from(candidate.weight);
        } else {
            need.bound += u128::from(candidate.extra);
        }
    }
    need
}
