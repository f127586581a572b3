//! Seeded randomness: uids and the suffixes of generated names.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Kubernetes' letters for suffixes: no vowels, so that there are no words, and no characters that look alike.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// The longest base of a generated name, which is a DNS label with its suffix.
const GENERATED_BASE_LENGTH: usize = 63 - SUFFIX_LENGTH;

/// The random number generator of a cluster. The same seed gives the same sequence on every machine.
#[derive(Debug)]
pub(crate) struct Identities {
    random: Xoshiro256PlusPlus,
}

impl Identities {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// A uid in the form of RFC 4122, version 4.
    pub(crate) fn uid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.random.random())
            .into_uuid()
            .to_string()
    }

    /// `base` with five random letters.
    pub(crate) fn name(&mut self, base: &str) -> String {
        let base = base.get(..GENERATED_BASE_LENGTH).unwrap_or(base);
        let mut name = String::with_capacity(base.len() + SUFFIX_LENGTH);
        name.push_str(base);
        for _ in 0..SUFFIX_LENGTH {
            let letter = SUFFIX_LETTERS[self.random.random_range(0..SUFFIX_LETTERS.len())];
            name.push(char::from(letter));
        }
        name
    }

    /// A number in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.random.random_range(0..bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides() {
        let (mut one, mut same, mut other) = (
            Identities::seeded(1),
            Identities::seeded(1),
            Identities::seeded(2),
        );
        let uid = one.uid();
        assert_eq!(uid, same.uid());
        assert_ne!(uid, other.uid());
        assert_eq!(uid.as_bytes()[14], b'4');
        assert_eq!(one.name("web-").len(), 9);
        assert_eq!(one.name(&"x".repeat(80)).len(), 63);
    }
}
