//! Random seeds.

use std::hash::{BuildHasher, RandomState};

/// A seed that differs in each process and call.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
