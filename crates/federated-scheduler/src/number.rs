//! The numbers a layout is made of, in as many bits as they need.
//!
//! Shares are exact over all of `u64`, for which products take 128 bits. Nearly always all numbers have 31 bits: then
//! products of 64 bits are enough, and a plan takes an eighth less time. So what lies between the request and the layout
//! is written once, for numbers of either size.

use std::{
    cmp::Ordering,
    fmt::Debug,
    ops::{Add, AddAssign, Div, Shl, Shr, Sub},
};

/// A number of replicas, or a weight.
pub(crate) trait Number:
    Copy + Debug + Default + Ord + Add<Output = Self> + Sub<Output = Self>
{
    const ONE: Self;

    /// Holds the sum of the numbers of all clusters, and a number with [`Self::FRACTION`] more bits.
    type Sum: Sum;

    /// How many bits after the point it takes so that one unit in the last of them changes no product with a weight by as
    /// much as one.
    const FRACTION: u32;

    /// `number`, which is one of the request's or less than one of them.
    fn of(number: u64) -> Self;

    fn get(self) -> u64;

    fn wide(self) -> Self::Sum;

    /// The number after this one, or the greatest.
    fn next(self) -> Self;

    /// Compares (2k − 1) / w with (2k' − 1) / w', each given as (k, w), exactly. No number may be 0.
    fn compare_odds(odd: (Self, Self), other: (Self, Self)) -> Ordering;

    /// The seats of `weight` at `each` for a unit of weight, with [`Self::FRACTION`] bits after the point: ⌊w·x + 1/2⌋,
    /// exactly, or more than any number of the request if it is.
    fn seats(weight: Self, each: Self::Sum) -> Self;
}

/// A sum of [`Number`]s.
pub(crate) trait Sum:
    Copy
    + Debug
    + Default
    + Ord
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Div<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + TryInto<usize>
    + Into<u128>
{
    const MAX: Self;
}

impl Sum for u64 {
    const MAX: Self = Self::MAX;
}

impl Sum for u128 {
    const MAX: Self = Self::MAX;
}

/// A number of 31 bits. It takes the space of a `u64`: where the processor has to put two numbers together that were just
/// written, half the space costs more time than it saves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Small(u64);

impl Small {
    /// Whether a number of these `bits` is a small one.
    pub(crate) const fn has_room_for(bits: u64) -> bool {
        bits >> 31 == 0
    }
}

impl Add for Small {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Small {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Number for Small {
    const ONE: Self = Self(1);

    type Sum = u64;

    const FRACTION: u32 = 32;

    fn of(number: u64) -> Self {
        debug_assert!(Self::has_room_for(number), "{number} is too large");
        Self(number)
    }

    fn get(self) -> u64 {
        self.0
    }

    fn wide(self) -> u64 {
        self.0
    }

    fn next(self) -> Self {
        Self(self.0 + 1)
    }

    fn compare_odds(
        (number, weight): (Self, Self),
        (other, other_weight): (Self, Self),
    ) -> Ordering {
        // Both multiplied by ww'.
        let odd = |Self(number), Self(weight)| (2 * number - 1) * weight;
        odd(number, other_weight).cmp(&odd(other, weight))
    }

    fn seats(Self(weight): Self, each: u64) -> Self {
        let seats = (u128::from(weight) * u128::from(each) + (1 << 31)) >> 32;
        Self(u64::try_from(seats).expect("the product has 95 bits"))
    }
}

impl Number for u64 {
    const ONE: Self = 1;

    type Sum = u128;

    const FRACTION: u32 = 64;

    fn of(number: u64) -> Self {
        number
    }

    fn get(self) -> u64 {
        self
    }

    fn wide(self) -> u128 {
        self.into()
    }

    fn next(self) -> Self {
        self.saturating_add(1)
    }

    fn compare_odds(
        (number, weight): (Self, Self),
        (other, other_weight): (Self, Self),
    ) -> Ordering {
        // Multiplied by ww' that is 2kw' + w against 2k'w + w'. The doubled products don't fit into 128 bits, their
        // halves do: kw' + ⌊w/2⌋ first, then the bit that halving dropped.
        let half = |number, other_weight, weight: Self| {
            u128::from(number) * u128::from(other_weight) + u128::from(weight >> 1)
        };
        half(number, other_weight, weight)
            .cmp(&half(other, weight, other_weight))
            .then((weight & 1).cmp(&(other_weight & 1)))
    }

    fn seats(weight: Self, each: u128) -> Self {
        const HALF: u128 = 1 << 63;
        let weight = u128::from(weight);
        let (whole, fraction) = (each >> 64, each & u128::from(Self::MAX));
        let seats = weight * whole + ((weight * fraction + HALF) >> 64);
        Self::try_from(seats).unwrap_or(Self::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares, in both sizes where the numbers are small.
    fn compare(odd: (u64, u64), other: (u64, u64)) -> Ordering {
        let ordering = u64::compare_odds(odd, other);
        if Small::has_room_for(odd.0 | odd.1 | other.0 | other.1) {
            let small = |(number, weight)| (Small::of(number), Small::of(weight));
            assert_eq!(Small::compare_odds(small(odd), small(other)), ordering);
        }
        ordering
    }

    #[test]
    fn prices_are_exact_over_all_of_u64() {
        let max = u64::MAX;
        assert_eq!(compare((1, 1), (2, 3)), Ordering::Equal);
        assert_eq!(compare((1, 3), (2, 9)), Ordering::Equal);
        assert_eq!(compare((1, 3), (2, 8)), Ordering::Less);
        // Around the largest numbers whose products fit into 64 bits.
        for large in [(1 << 31) - 1, 1 << 31, 1 << 32] {
            assert_eq!(
                compare((large, large - 1), (large, large - 1)),
                Ordering::Equal
            );
            assert_eq!(
                compare((large - 1, large - 1), (large, large)),
                Ordering::Less
            );
            assert_eq!(compare((1, large - 1), (1, large)), Ordering::Greater);
        }
        assert_eq!(compare((max, max), (max, max)), Ordering::Equal);
        assert_eq!(compare((max, 1), (1, max)), Ordering::Greater);
        assert_eq!(compare((max, max - 1), (max, max)), Ordering::Greater);
        assert_eq!(compare((max - 1, max), (max, max)), Ordering::Less);
    }

    #[test]
    fn seats_are_rounded_to_the_nearest() {
        // Ten thirds for a unit of weight.
        for (weight, seats) in [(1, 3), (2, 7), (3, 10), (100_000, 333_333)] {
            let small = Small::seats(Small::of(weight), (10 << 32) / 3);
            assert_eq!(small, Small::of(seats));
            assert_eq!(u64::seats(weight, (10 << 64) / 3), seats);
        }
        let most = (1 << 31) - 1;
        assert!(Small::seats(Small::of(most), u64::MAX) > Small::of(most));
        assert_eq!(u64::seats(u64::MAX, u128::MAX), u64::MAX);
        assert_eq!(u64::seats(u64::MAX, 1 << 64), u64::MAX);
    }
}
