//! Seats: the claims of the clusters to one more replica each, in the order in which they are honoured.
//!
//! Seat k (from 1) of a cluster of weight w costs (2k − 1) / w: Webster's divisors 1, 3, 5, ... Cheaper
//! seats are filled first; among equal prices the cluster that is earlier in the order of F11 goes first.

use std::cmp::Ordering;

use crate::{bounds::Candidate, number::Number};

/// What a seat costs: (2k − 1) / w. Compared exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price<N> {
    /// Which extra of its cluster the seat is: k, from 1.
    pub(crate) number: N,
    /// The cluster's weight: w, above 0.
    pub(crate) weight: N,
}

impl<N: Number> Ord for Price<N> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        N::compare_odds((self.number, self.weight), (other.number, other.weight))
    }
}

impl<N: Number> PartialOrd for Price<N> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N: Number> PartialEq for Price<N> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<N: Number> Eq for Price<N> {}

/// One more replica for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat<N: Number> {
    /// What it costs.
    pub(crate) price: Price<N>,
    /// The cluster's place in the order.
    pub(crate) rank: usize,
}

impl<N: Number> Candidate<N> {
    /// The price of its seat with this number.
    #[inline]
    pub(crate) fn price(&self, number: N) -> Price<N> {
        Price {
            number,
            weight: self.weight,
        }
    }

    /// The price of its last seat that is filled; `None` if only its lower bound fills seats.
    #[inline]
    pub(crate) fn last_filled(&self) -> Option<Price<N>> {
        (self.extra > self.lower).then(|| self.price(self.extra))
    }

    /// The price of its first seat that is free; `None` if it is at its upper bound.
    #[inline]
    pub(crate) fn first_free(&self) -> Option<Price<N>> {
        (self.extra < self.upper).then(|| self.price(self.extra.next()))
    }
}
