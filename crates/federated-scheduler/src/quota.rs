//! A cluster's proportional share, and how it became a whole number.

use std::cmp::Ordering;

/// A cluster's proportional share of the replicas that are shared out by weight: what the minimums and the clusters at one
/// of their bounds leave. The clusters at none of their bounds share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The cluster's weight.
    pub weight: u64,
    /// The weight of all clusters that share. At least `weight`, above 0.
    pub total_weight: u128,
    /// The replicas that they share.
    pub replicas: u64,
    /// How the share became a whole number.
    pub rounding: Rounding,
}

/// How a proportional share became a whole number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// It is one.
    Exact,
    /// To the next number above.
    Up,
    /// To the next number below.
    Down,
    /// Up: other clusters have the same quotient, and this one comes first in the order of F11.
    UpByOrder,
    /// Down: other clusters have the same quotient, and come first in the order of F11.
    DownByOrder,
    /// More than one above: many other clusters' shares were rounded down.
    FarUp,
    /// More than one below: many other clusters' shares were rounded up.
    FarDown,
}

impl Rounding {
    /// How the share of `weight`, part of `total_weight`, in `replicas` became `granted`.
    pub(crate) fn of(weight: u64, total_weight: u128, replicas: u64, granted: u64) -> Self {
        let share = u128::from(weight) * u128::from(replicas);
        let whole = share / total_weight;
        let is_whole = whole * total_weight == share;
        let granted = u128::from(granted);
        match granted.cmp(&whole) {
            Ordering::Equal if is_whole => Self::Exact,
            Ordering::Equal => Self::Down,
            Ordering::Greater if granted - 1 == whole && !is_whole => Self::Up,
            Ordering::Greater => Self::FarUp,
            Ordering::Less => Self::FarDown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f19_rounding_is_exact_over_all_of_u64() {
        let max = u64::MAX;
        let thrice = u128::from(max) * 3;
        for (weight, total, replicas, granted, expected) in [
            (2, 4, 48, 24, Rounding::Exact),
            (1, 3, 50, 17, Rounding::Up),
            (1, 3, 50, 16, Rounding::Down),
            (40, 100, 100, 42, Rounding::FarUp),
            (40, 100, 100, 33, Rounding::FarDown),
            (max, thrice, 50, 17, Rounding::Up),
            (max, max.into(), max, max, Rounding::Exact),
        ] {
            assert_eq!(Rounding::of(weight, total, replicas, granted), expected);
        }
    }
}
