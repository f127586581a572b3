//! A cluster while its share is computed.

use crate::quotient::Quotient;

/// A cluster while its share is computed. Its index among the candidates is its rank in the order of F11.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The cluster's position in the request.
    pub(crate) index: usize,
    /// Its weight, 1 where that is 0: clusters without weight are only ever compared with each other.
    pub(crate) weight: u64,
    /// Replicas granted as its minimum (F12). Extras come on top.
    pub(crate) minimum: u64,
    /// The fewest extras.
    pub(crate) lower: u64,
    /// The most extras.
    pub(crate) upper: u64,
    /// Extras granted.
    pub(crate) extra: u64,
}

impl Candidate {
    /// Replicas granted.
    pub(crate) fn replicas(&self) -> u64 {
        self.minimum + self.extra
    }

    /// The quotient of its `number`th extra.
    pub(crate) fn quotient(&self, number: u64) -> Quotient {
        Quotient {
            weight: self.weight,
            number,
        }
    }

    /// The quotient of the extra it would get next; `None` at its upper bound.
    pub(crate) fn next_quotient(&self) -> Option<Quotient> {
        (self.extra < self.upper).then(|| self.quotient(self.extra + 1))
    }

    /// The quotient of the extra it would lose first; `None` at its lower bound.
    pub(crate) fn last_quotient(&self) -> Option<Quotient> {
        (self.extra > self.lower).then(|| self.quotient(self.extra))
    }
}
