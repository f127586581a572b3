//! Mutations of valid documents, for tests of decoders of untrusted bytes.
//!
//! ```text
//! corpus: valid documents, and inputs that once failed --as they are, then mutated--> check --panics--> one more document
//! ```
//!
//! The parser rejects random bytes. A valid document with a few odd values reaches the code behind it.

mod bytes;
mod fuzz;
mod json;

pub use bytes::mutate_bytes;
pub use fuzz::fuzz;
pub use json::{ESCAPES, mutate_value};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;

/// `document` after one mutation for each of `seeds`: of its values while it is JSON, sometimes of its bytes.
#[must_use]
pub fn mutated(document: &[u8], seeds: &[u64]) -> Vec<u8> {
    let mut bytes = document.to_vec();
    for seed in seeds {
        let mut random = StdRng::seed_from_u64(*seed);
        bytes = match serde_json::from_slice::<Value>(&bytes) {
            Ok(mut value) if random.random_bool(0.85) => {
                mutate_value(&mut value, &mut random);
                value.to_string().into_bytes()
            }
            _ => mutate_bytes(bytes, &mut random),
        };
    }
    bytes
}
