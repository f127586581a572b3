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

use crate::{
    FEW_CLUSTERS,
    bounds::Candidate,
    number::{Number, Sum},
    seat::Seat,
};

/// Newton steps before the search for a threshold halves its interval instead. Two to four are usual; the
/// limit is there for bounds made so that each step meets another one.
const NEWTON_STEPS: u32 = 8;

/// Sets the extras of `candidates` so that they add up to `replicas`, as far as their upper bounds allow.
/// Returns what no candidate can take. Their lower bounds must not add up to more than `replicas`.
pub(crate) fn share_out<N: Number>(candidates: &mut [Candidate<N>], replicas: N) -> N {
    let (mut upper, mut weight) = (N::Sum::default(), N::Sum::default());
    for candidate in &*candidates {
        upper += candidate.upper.wide();
        weight += candidate.weight.wide();
    }
    if upper <= replicas.wide() {
        let mut left = replicas;
        for candidate in candidates {
            candidate.extra = candidate.upper;
            left = left - candidate.extra;
        }
        return left;
    }
    let filled = Threshold::fill_up(candidates, replicas, weight);
    let wanted = replicas.wide();
    if filled < wanted {
        take_steps::<N, Fill>(candidates, steps(wanted - filled));
    } else if filled > wanted {
        take_steps::<N, Free>(candidates, steps(filled - wanted));
    }
    N::default()
}

fn steps(missed: impl Sum) -> usize {
    let steps = missed.try_into().ok();
    steps.expect("a threshold misses by a few times the clusters")
}

/// A direction of single steps from one layout to the next.
trait Step<N> {
    /// A candidate's claim to a step. The least claim wins.
    type Claim: Copy + Ord;

    /// The candidate's first claim, if its bounds allow one.
    fn first(candidate: &Candidate<N>, rank: usize) -> Option<Self::Claim>;

    /// Its claim once `claim` has won, if its bounds allow another.
    fn following(candidate: &Candidate<N>, claim: Self::Claim) -> Option<Self::Claim>;

    /// The rank of the candidate whose claim it is.
    fn rank(claim: Self::Claim) -> usize;

    /// Carries the step out.
    fn grant(candidate: &mut Candidate<N>, claim: Self::Claim);
}

/// Fills the cheapest free seat.
struct Fill;

impl<N: Number> Step<N> for Fill {
    type Claim = Seat<N>;

    fn first(candidate: &Candidate<N>, rank: usize) -> Option<Seat<N>> {
        let price = candidate.first_free()?;
        Some(Seat { price, rank })
    }

    fn following(candidate: &Candidate<N>, seat: Seat<N>) -> Option<Seat<N>> {
        let number = seat.price.number;
        (number < candidate.upper).then(|| Seat {
            price: candidate.price(number.next()),
            ..seat
        })
    }

    fn rank(seat: Seat<N>) -> usize {
        seat.rank
    }

    fn grant(candidate: &mut Candidate<N>, seat: Seat<N>) {
        candidate.extra = seat.price.number;
    }
}

/// Frees the dearest filled seat.
struct Free;

impl<N: Number> Step<N> for Free {
    type Claim = Reverse<Seat<N>>;

    fn first(candidate: &Candidate<N>, rank: usize) -> Option<Reverse<Seat<N>>> {
        let price = candidate.last_filled()?;
        Some(Reverse(Seat { price, rank }))
    }

    fn following(
        candidate: &Candidate<N>,
        Reverse(seat): Reverse<Seat<N>>,
    ) -> Option<Reverse<Seat<N>>> {
        let number = seat.price.number - N::ONE;
        (number > candidate.lower).then(|| {
            Reverse(Seat {
                price: candidate.price(number),
                ..seat
            })
        })
    }

    fn rank(Reverse(seat): Reverse<Seat<N>>) -> usize {
        seat.rank
    }

    fn grant(candidate: &mut Candidate<N>, Reverse(seat): Reverse<Seat<N>>) {
        candidate.extra = seat.price.number - N::ONE;
    }
}

/// The first claims of all candidates.
fn claims<N: Number, S: Step<N>>(candidates: &[Candidate<N>]) -> impl Iterator<Item = S::Claim> {
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
fn take_steps<N: Number, S: Step<N>>(candidates: &mut [Candidate<N>], steps: usize) {
    if steps == 1 || candidates.len() <= FEW_CLUSTERS {
        // Looking at all of them for each step is quicker than keeping a queue.
        for _ in 0..steps {
            let claim = claims::<N, S>(candidates)
                .min()
                .expect("the bounds allow all steps");
            S::grant(&mut candidates[S::rank(claim)], claim);
        }
        return;
    }
    // As many claims as there are steps stand before all others: those lose, whatever follows.
    let claims = least(claims::<N, S>(candidates), steps);
    let last = claims.peek().copied().filter(|_| claims.len() == steps);
    let following = |candidates: &[Candidate<N>], claim| {
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

/// Replicas for each unit of weight, with the bits after the point that the numbers' width has.
///
/// Two neighbouring thresholds differ by less than one replica in every cluster, since a weight has no more bits than
/// that: so there is always a threshold that misses the number of replicas by no more than the number of clusters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
struct Threshold<N: Number>(N::Sum);

/// What the clusters need at a threshold.
struct Need<N: Number> {
    /// Replicas of all clusters.
    replicas: N::Sum,
    /// Replicas of the clusters that are at one of their bounds.
    bound: N::Sum,
    /// The weights of the others.
    free_weight: N::Sum,
}

impl<N: Number> Threshold<N> {
    /// Fills `candidates`, whose weights add up to `weight`, to a threshold at which they miss `replicas` by about their
    /// number or less. Returns the number of seats filled.
    ///
    /// Newton's method: at each step the clusters between their bounds share what the others leave. Where it
    /// leaves the interval known to hold the answer, or takes too many steps, the interval is halved: at most
    /// as often as it has bits, so that the time is bounded whatever the numbers are.
    fn fill_up(candidates: &mut [Candidate<N>], replicas: N, weight: N::Sum) -> N::Sum {
        let wanted = replicas.wide();
        let (mut too_low, mut too_high) = (Self(N::Sum::default()), Self(N::Sum::MAX));
        let mut threshold = Self::quotient(wanted, weight);
        // So few single steps are quicker than another look at all candidates.
        let close_enough = 2 + candidates.len() / 16;
        for step in 0.. {
            let need = threshold.fill(candidates);
            let is_low = need.replicas < wanted;
            let missed = if is_low {
                wanted - need.replicas
            } else {
                need.replicas - wanted
            };
            if missed
                .try_into()
                .is_ok_and(|missed: usize| missed <= close_enough)
            {
                return need.replicas;
            }
            if is_low {
                too_low = threshold;
            } else {
                too_high = threshold;
            }
            let newton = (step < NEWTON_STEPS
                && need.free_weight > N::Sum::default()
                && need.bound <= wanted)
                .then(|| Self::quotient(wanted - need.bound, need.free_weight));
            if newton == Some(threshold) {
                // All that is left is due to rounding.
                return need.replicas;
            }
            threshold = match newton {
                Some(newton) if too_low < newton && newton < too_high => newton,
                _ => Self(too_low.0 + ((too_high.0 - too_low.0) >> 1)),
            };
            if threshold == too_low {
                break;
            }
        }
        threshold.fill(candidates).replicas
    }

    /// The threshold of `replicas` (a number) for a total of `weight`.
    #[inline]
    fn quotient(replicas: N::Sum, weight: N::Sum) -> Self {
        Self((replicas << N::FRACTION) / weight)
    }

    /// Gives all candidates the seats that cost at most twice the threshold, within their bounds.
    #[inline]
    fn fill(self, candidates: &mut [Candidate<N>]) -> Need<N> {
        let mut need = Need {
            replicas: N::Sum::default(),
            bound: N::Sum::default(),
            free_weight: N::Sum::default(),
        };
        for candidate in candidates {
            let seats = N::seats(candidate.weight, self.0);
            // Bounds in the right order are an invariant: `clamp` would check it for each.
            candidate.extra = seats.max(candidate.lower).min(candidate.upper);
            need.replicas += candidate.extra.wide();
            if candidate.extra == seats {
                need.free_weight += candidate.weight.wide();
            } else {
                need.bound += candidate.extra.wide();
            }
        }
        need
    }
}
