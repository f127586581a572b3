//! Seats: the claims of the clusters to one more replica each, in the order in which they are honoured.
//!
//! Seat k (from 1) of a cluster of weight w costs (2k − 1) / w: Webster's divisors 1, 3, 5, ... Cheaper
//! seats are filled first; among equal prices the cluster that is earlier in the order of F11 goes first.

use std::cmp::Ordering;

use crate::bounds::Candidate;

/// One more replica for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Which extra of its cluster it is, from 1.
    pub(crate) number: u64,
    /// The cluster's weight, above 0.
    pub(crate) weight: u64,
    /// The cluster's place in the order.
    pub(crate) rank: usize,
}

impl Seat {
    /// The seat with this number of the candidate at `rank`.
    pub(crate) fn new(candidate: &Candidate, number: u64, rank: usize) -> Self {
        Self {
            number,
            weight: candidate.weight,
            rank,
        }
    }

    /// The candidate's last seat that is filled; `None` if only its lower bound fills seats.
    pub(crate) fn last_filled(candidate: &Candidate, rank: usize) -> Option<Self> {
        (candidate.extra > candidate.lower).then(|| Self::new(candidate, candidate.extra, rank))
    }

    /// The candidate's first seat that is free; `None` if it is at its upper bound.
    pub(crate) fn first_free(candidate: &Candidate, rank: usize) -> Option<Self> {
        (candidate.extra < candidate.upper).then(|| Self::new(candidate, candidate.extra + 1, rank))
    }

    /// Compares prices exactly, for all of `u64`: (2k − 1) / w against (2k' − 1) / w' by multiplying both with ww'.
    pub(crate) fn cmp_price(&self, other: &Self) -> Ordering {
        let all = self.number | self.weight | other.number | other.weight;
        if all >> 31 == 0 {
            // Nearly always; and much quicker.
            let odd = |seat: &Self, other: &Self| (2 * seat.number - 1) * other.weight;
            return odd(self, other).cmp(&odd(other, self));
        }
        // That is 2kw' + w against 2k'w + w'. The doubled products don't fit into 128 bits, their halves do:
        // kw' + ⌊w/2⌋ first, then the bit that halving dropped.
        let half = |seat: &Self, other: &Self| {
            u128::from(seat.number) * u128::from(other.weight) + u128::from(seat.weight >> 1)
        };
        half(self, other)
            .cmp(&half(other, self))
            .then((self.weight & 1).cmp(&(other.weight & 1)))
    }
}

impl Ord for Seat {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_price(other).then(self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Seat {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(number: u64, weight: u64) -> Seat {
        Seat {
            number,
            weight,
            rank: 0,
        }
    }

    #[test]
    fn prices_are_exact_over_all_of_u64() {
        let max = u64::MAX;
        assert_eq!(seat(1, 1).cmp_price(&seat(2, 3)), Ordering::Equal);
        assert_eq!(seat(1, 3).cmp_price(&seat(2, 9)), Ordering::Equal);
        assert_eq!(seat(1, 3).cmp_price(&seat(2, 8)), Ordering::Less);
        // Around the largest numbers whose products fit into 64 bits.
        for bits in [30, 31, 32] {
            let large = 1 << bits;
            assert_eq!(
                seat(large, large - 1).cmp_price(&seat(large, large - 1)),
                Ordering::Equal
            );
            assert_eq!(
                seat(large - 1, large - 1).cmp_price(&seat(large, large)),
                Ordering::Less
            );
            assert_eq!(
                seat(1, large - 1).cmp_price(&seat(1, large)),
                Ordering::Greater
            );
        }
        assert_eq!(seat(max, max).cmp_price(&seat(max, max)), Ordering::Equal);
        assert_eq!(seat(max, 1).cmp_price(&seat(1, max)), Ordering::Greater);
        assert_eq!(
            seat(max, max - 1).cmp_price(&seat(max, max)),
            Ordering::Greater
        );
        assert_eq!(
            seat(max - 1, max).cmp_price(&seat(max, max)),
            Ordering::Less
        );
    }
}
