//! Seats: the claims of the clusters to one more replica each, in the order in which they are honoured.
//!
//! Seat k (from 1) of a cluster of weight w costs (2k − 1) / w: Webster's divisors 1, 3, 5, ... Cheaper
//! seats are filled first; among equal prices the cluster that is earlier in the order of F11 goes first.

use std::cmp::Ordering;

use crate::bounds::Candidate;

/// What a seat costs: (2k − 1) / w. Compared exactly, for all of `u64`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    /// Which extra of its cluster the seat is: k, from 1.
    pub(crate) number: u64,
    /// The cluster's weight: w, above 0.
    pub(crate) weight: u64,
}

impl Ord for Price {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // (2k − 1) / w against (2k' − 1) / w', both multiplied by ww'.
        let all = self.number | self.weight | other.number | other.weight;
        if all >> 31 == 0 {
            // Nearly always; and much quicker.
            let odd = |price: &Self, other: &Self| (2 * price.number - 1) * other.weight;
            return odd(self, other).cmp(&odd(other, self));
        }
        // That is 2kw' + w against 2k'w + w'. The doubled products don't fit into 128 bits, their halves do:
        // kw' + ⌊w/2⌋ first, then the bit that halving dropped.
        let half = |price: &Self, other: &Self| {
            u128::from(price.number) * u128::from(other.weight) + u128::from(price.weight >> 1)
        };
        half(self, other)
            .cmp(&half(other, self))
            .then((self.weight & 1).cmp(&(other.weight & 1)))
    }
}

impl PartialOrd for Price {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Price {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Price {}

/// One more replica for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    /// What it costs.
    pub(crate) price: Price,
    /// The cluster's place in the order.
    pub(crate) rank: usize,
}

impl Candidate {
    /// The price of its seat with this number.
    pub(crate) fn price(&self, number: u64) -> Price {
        Price {
            number,
            weight: self.weight,
        }
    }

    /// The price of its last seat that is filled; `None` if only its lower bound fills seats.
    pub(crate) fn last_filled(&self) -> Option<Price> {
        (self.extra > self.lower).then(|| self.price(self.extra))
    }

    /// The price of its first seat that is free; `None` if it is at its upper bound.
    pub(crate) fn first_free(&self) -> Option<Price> {
        (self.extra < self.upper).then(|| self.price(self.extra + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(number: u64, weight: u64) -> Price {
        Price { number, weight }
    }

    #[test]
    fn prices_are_exact_over_all_of_u64() {
        let max = u64::MAX;
        assert_eq!(price(1, 1).cmp(&price(2, 3)), Ordering::Equal);
        assert_eq!(price(1, 3).cmp(&price(2, 9)), Ordering::Equal);
        assert_eq!(price(1, 3).cmp(&price(2, 8)), Ordering::Less);
        // Around the largest numbers whose products fit into 64 bits.
        for bits in [30, 31, 32] {
            let large = 1 << bits;
            assert_eq!(
                price(large, large - 1).cmp(&price(large, large - 1)),
                Ordering::Equal
            );
            assert_eq!(
                price(large - 1, large - 1).cmp(&price(large, large)),
                Ordering::Less
            );
            assert_eq!(price(1, large - 1).cmp(&price(1, large)), Ordering::Greater);
        }
        assert_eq!(price(max, max).cmp(&price(max, max)), Ordering::Equal);
        assert_eq!(price(max, 1).cmp(&price(1, max)), Ordering::Greater);
        assert_eq!(price(max, max - 1).cmp(&price(max, max)), Ordering::Greater);
        assert_eq!(price(max - 1, max).cmp(&price(max, max)), Ordering::Less);
    }
}
