//! A cluster's proportional share, and how it became a whole number.

use std::{cmp::Ordering, fmt};

use crate::{bounds::Candidate, number::Number, seat::Price};

/// A cluster's proportional share of the replicas that are shared out by weight.
///
/// Those are the replicas that the minimums and the clusters at one of their bounds leave; they are shared
/// by the clusters that aren't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The cluster's weight.
    pub weight: u64,
    /// The replicas that are shared.
    pub of_replicas: u64,
    /// How the share became a whole number.
    pub rounding: Rounding,
    // The sum of the weights in two parts: a `u128` would add half to the size of every reason. As many clusters as
    // would need more than 96 bits fit into no memory.
    pub(crate) of_weight_high: u32,
    pub(crate) of_weight_low: u64,
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
    /// Up: other clusters have the same claim, and this one comes first in the order of F11.
    UpByOrder,
    /// Down: other clusters have the same claim, and come first in the order of F11.
    DownByOrder,
    /// More than one above: many other clusters' shares were rounded down.
    FarUp,
    /// More than one below: many other clusters' shares were rounded up.
    FarDown,
}

/// What the clusters that share by weight have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool<N: Number> {
    /// The sum of their weights.
    pub(crate) weight: N::Sum,
    /// The replicas they share.
    pub(crate) replicas: N,
    /// The price at which some of the last seats were filled and others weren't, by order.
    pub(crate) tie: Option<Price<N>>,
}

impl<N: Number> Pool<N> {
    /// How the share of a cluster with `weight` became the `extra` that it was given.
    #[inline]
    pub(crate) fn rounding(&self, weight: N, extra: N) -> Rounding {
        match rounding(
            weight.get(),
            self.weight.into(),
            self.replicas.get(),
            extra.get(),
        ) {
            Rounding::Up if self.is_tie(weight, extra) => Rounding::UpByOrder,
            Rounding::Down if self.is_tie(weight, extra) => Rounding::DownByOrder,
            rounding => rounding,
        }
    }

    /// Whether the last seat of a cluster with `weight` and `extra`, or its next one, is part of the tie.
    #[inline]
    fn is_tie(&self, weight: N, extra: N) -> bool {
        self.tie.is_some_and(|tie| {
            let price = |number| Price { number, weight };
            extra > N::default() && tie == price(extra) || tie == price(extra.next())
        })
    }
}

/// How the share of `weight`, part of `of_weight`, in `of_replicas` became `extra`.
#[inline]
fn rounding(weight: u64, of_weight: u128, of_replicas: u64, extra: u64) -> Rounding {
    if (of_weight | u128::from(of_replicas)) >> 32 == 0 {
        // Nearly always. The weight is part of the sum and `extra` of the replicas, so that all products are small.
        let one = u64::try_from(of_weight).expect("it has 32 bits");
        return compare(extra * one, weight * of_replicas, one);
    }
    rounding_of_large(weight, of_weight, of_replicas, extra)
}

#[cold]
fn rounding_of_large(weight: u64, of_weight: u128, of_replicas: u64, extra: u64) -> Rounding {
    let share = u128::from(weight) * u128::from(of_replicas);
    let (whole, is_whole) = (share / of_weight, share.is_multiple_of(of_weight));
    let extra = u128::from(extra);
    match extra.cmp(&whole) {
        Ordering::Equal if is_whole => Rounding::Exact,
        Ordering::Equal => Rounding::Down,
        Ordering::Greater if extra - 1 == whole && !is_whole => Rounding::Up,
        Ordering::Greater => Rounding::FarUp,
        Ordering::Less => Rounding::FarDown,
    }
}

/// How `share` became `given`, both in units of which `one` replica has many.
#[inline]
fn compare(given: u64, share: u64, one: u64) -> Rounding {
    match given.cmp(&share) {
        Ordering::Equal => Rounding::Exact,
        Ordering::Greater if given - share < one => Rounding::Up,
        Ordering::Greater => Rounding::FarUp,
        Ordering::Less if share - given < one => Rounding::Down,
        Ordering::Less => Rounding::FarDown,
    }
}

impl Quota {
    /// The quota of a candidate that shares by weight in `pool`.
    #[inline]
    pub(crate) fn of<N: Number>(candidate: &Candidate<N>, pool: &Pool<N>) -> Self {
        let of_weight: u128 = pool.weight.into();
        Self {
            weight: candidate.weight.get(),
            of_replicas: pool.replicas.get(),
            rounding: pool.rounding(candidate.weight, candidate.extra),
            of_weight_high: u32::try_from(of_weight >> 64)
                .expect("less than 2^32 weights were added up"),
            of_weight_low: u64::try_from(of_weight & u128::from(u64::MAX))
                .expect("the upper bits are cut off"),
        }
    }

    /// The sum of the weights of the clusters that share. At least `weight`, above 0.
    #[must_use]
    pub fn of_weight(&self) -> u128 {
        u128::from(self.of_weight_high) << 64 | u128::from(self.of_weight_low)
    }
}

/// The share with two decimals and what became of it: `16.67 of 50 (weight 1 of 3), rounded up`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_weight = self.of_weight();
        let share = u128::from(self.weight) * u128::from(self.of_replicas);
        let (mut whole, rest) = (share / of_weight, share % of_weight);
        // Rounded to the nearest hundredth; 0.996 is 1.00.
        let mut hundredths = (rest * 100 + of_weight / 2) / of_weight;
        if hundredths == 100 {
            (whole, hundredths) = (whole + 1, 0);
        }
        match hundredths {
            0 if rest == 0 => write!(f, "{whole}")?,
            _ => write!(f, "{whole}.{hundredths:02}")?,
        }
        write!(
            f,
            " of {} (weight {} of {})",
            self.of_replicas, self.weight, of_weight
        )?;
        f.write_str(match self.rounding {
            Rounding::Exact => "",
            Rounding::Up => ", rounded up",
            Rounding::Down => ", rounded down",
            Rounding::UpByOrder => {
                ", rounded up: of equal claims to the last replica, this cluster's comes first in the set's order"
            }
            Rounding::DownByOrder => {
                ", rounded down: of equal claims to the last replica, another cluster's comes first in the set's order"
            }
            Rounding::FarUp => "; it gets more, because many clusters' shares were rounded down",
            Rounding::FarDown => "; it gets fewer, because many clusters' shares were rounded up",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(weight: u64, of_weight: u128, replicas: u64, extra: u64) -> Quota {
        let pool = Pool {
            weight: of_weight,
            replicas,
            tie: None,
        };
        let candidate = Candidate {
            weight,
            extra,
            ..Candidate::default()
        };
        Quota::of(&candidate, &pool)
    }

    #[test]
    fn f19_quotas_read_well() {
        let text = |weight, of_weight, replicas, extra| {
            quota(weight, of_weight, replicas, extra).to_string()
        };
        assert_eq!(text(2, 4, 48, 24), "24 of 48 (weight 2 of 4)");
        assert_eq!(
            text(1, 3, 50, 17),
            "16.67 of 50 (weight 1 of 3), rounded up"
        );
        assert_eq!(
            text(1, 1_000_002, 50, 0),
            "0.00 of 50 (weight 1 of 1000002), rounded down"
        );
        assert_eq!(
            text(1, 1_000, 999, 1),
            "1.00 of 999 (weight 1 of 1000), rounded up"
        );
        assert_eq!(
            text(40, 100, 100, 33),
            "40 of 100 (weight 40 of 100); it gets fewer, because many clusters' shares were rounded up"
        );
    }

    #[test]
    fn quotas_are_exact_over_the_whole_range() {
        let thirds = quota(u64::MAX, u128::from(u64::MAX) * 3, 50, 17);
        assert_eq!(thirds.rounding, Rounding::Up);
        let weights = format!(
            "16.67 of 50 (weight {} of {})",
            u64::MAX,
            u128::from(u64::MAX) * 3
        );
        assert!(thirds.to_string().starts_with(&weights), "{thirds}");
        let most = quota(u64::MAX, u128::from(u64::MAX), u64::MAX, u64::MAX);
        assert_eq!(most.rounding, Rounding::Exact);
        assert!(
            most.to_string().starts_with(&u64::MAX.to_string()),
            "{most}"
        );
    }
}
