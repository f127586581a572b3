//! Mutations of bytes.

use rand::{RngExt, rngs::StdRng};

/// Truncates, changes or repeats some of `bytes`.
pub fn mutate_bytes(mut bytes: Vec<u8>, random: &mut StdRng) -> Vec<u8> {
    if bytes.is_empty() {
        return vec![random.random()];
    }
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..4) {
        0 => bytes.truncate(at),
        1 => bytes[at] = random.random(),
        2 => bytes.extend_from_within(at..),
        _ => bytes
            .splice(at..at, [0xff, 0xc0, b'"', b'{'])
            .for_each(drop),
    }
    bytes
}
