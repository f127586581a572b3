//! Random mutations of honest responses: values of other types and ranges, missing fields, broken bytes.

use std::hash::{DefaultHasher, Hash, Hasher};

use mutations::{mutate_bytes, mutate_value};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;

/// `body` with a few mutations, the same ones for the same `seed` and body. Half of the bodies stay as they are, so that the
/// client reaches its next request.
pub(super) fn mutated(body: &[u8], seed: u64) -> Vec<u8> {
    let mut hasher = DefaultHasher::new();
    (seed, body).hash(&mut hasher);
    let mut random = StdRng::seed_from_u64(hasher.finish());
    if random.random_bool(0.5) {
        return body.to_vec();
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) if random.random_bool(0.8) => {
            for _ in 0..random.random_range(1..4) {
                mutate_value(&mut value, &mut random);
            }
            // A line of a watch ends with one.
            value
                .to_string()
                .into_bytes()
                .into_iter()
                .chain([b'\n'])
                .collect()
        }
        _ => mutate_bytes(body.to_vec(), &mut random),
    }
}
