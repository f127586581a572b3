//! The seeds of random tests.

use std::ops::RangeInclusive;

/// The seeds from 1 to `usual`; `FEDRS_SEEDS=500` is another number of seeds, `FEDRS_SEED=17` that one alone.
#[must_use]
pub fn seeds(usual: u64) -> RangeInclusive<u64> {
    let number = |name| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().expect("a seed is a number"))
    };
    match number("FEDRS_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("FEDRS_SEEDS").unwrap_or(usual),
    }
}
