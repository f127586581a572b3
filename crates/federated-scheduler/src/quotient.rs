//! The quotients of Webster's divisor method: who gets the next replica.
//!
//! The k-th extra replica of a cluster of weight w has the quotient w / (2k − 1): Webster's divisors are 1, 3, 5, ...
//! The next replica goes to the cluster with the highest quotient; among equal ones, to the cluster that is earlier in the
//! order of F11.

use std::cmp::Ordering;

/// w / (2k − 1), compared exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quotient {
    /// The cluster's weight, w.
    pub(crate) weight: u64,
    /// Which extra replica of its cluster it is: k, from 1.
    pub(crate) number: u64,
}

impl Ord for Quotient {
    fn cmp(&self, other: &Self) -> Ordering {
        // With both divisors multiplied out, w(2k' − 1) against w'(2k − 1) is 2wk' + w' against 2w'k + w. The doubled
        // products don't fit into 128 bits, their halves do: wk' + ⌊w'/2⌋ first, then the bit that halving drops.
        let half = |one: &Self, other: &Self| {
            let product = u128::from(one.weight) * u128::from(other.number);
            (product + u128::from(other.weight / 2), other.weight % 2)
        };
        half(self, other).cmp(&half(other, self))
    }
}

impl PartialOrd for Quotient {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quotient {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quotient {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares two quotients, each given as (k, w).
    fn compare(one: (u64, u64), other: (u64, u64)) -> Ordering {
        let quotient = |(number, weight)| Quotient { weight, number };
        quotient(one).cmp(&quotient(other))
    }

    #[test]
    fn quotients_are_exact_over_all_of_u64() {
        let max = u64::MAX;
        assert_eq!(compare((1, 1), (2, 3)), Ordering::Equal);
        assert_eq!(compare((1, 3), (2, 9)), Ordering::Equal);
        assert_eq!(compare((1, 3), (2, 8)), Ordering::Greater);
        assert_eq!(compare((max, max), (max, max)), Ordering::Equal);
        assert_eq!(compare((max, 1), (1, max)), Ordering::Less);
        assert_eq!(compare((max, max - 1), (max, max)), Ordering::Less);
        assert_eq!(compare((max - 1, max), (max, max)), Ordering::Greater);
    }
}
