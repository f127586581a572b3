//! An object's uid, small enough to be the key of a large table.

use serde::{Deserialize, Deserializer};
use xxhash_rust::xxh3::xxh3_128;

use crate::partial::Text;

/// An object's uid in 16 bytes: a hash of its text, so that any text is a uid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid([u64; 2]);

impl Uid {
    /// The uid written as `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let hash = xxh3_128(text.as_bytes());
        // Two halves instead of one u128: its alignment of 16 costs up to 8 bytes in each entry of a table.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower half is what is meant"
        )]
        Self([(hash >> 64) as u64, hash as u64])
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Text::deserialize(deserializer)?.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_texts_are_different_uids() {
        let uuid = "0b0d1f0e-4a54-4b6f-9d53-0123456789ab";
        let texts = [
            uuid,
            "",
            "a",
            "0B0D1F0E-4A54-4B6F-9D53-0123456789AB",
            "0b0d1f0e-4a54-4b6f-9d53-0123456789a\u{e4}",
        ];
        let uids: std::collections::BTreeSet<_> = texts.iter().map(|text| Uid::of(text)).collect();
        assert_eq!(uids.len(), texts.len());
    }
}
