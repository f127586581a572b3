//! An object's uid, small enough to be the key of a large table.

use serde::{Deserialize, Deserializer};
use xxhash_rust::xxh3::xxh3_128;

use crate::partial::Text;

/// An object's uid in 16 bytes: the number of a UUID, or a hash of any other text a server uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid([u64; 2]);

impl Uid {
    /// The uid written as `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let number = uuid_number(text).unwrap_or_else(|| xxh3_128(text.as_bytes()));
        // Two halves instead of one u128: its alignment of 16 costs up to 8 bytes in each entry of a table.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower half is what is meant"
        )]
        Self([(number >> 64) as u64, number as u64])
    }
}

/// Reads `8-4-4-4-12` hexadecimal digits in lower case, as the API server writes them, and nothing else.
fn uuid_number(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut number = 0;
    for (position, byte) in bytes.iter().enumerate() {
        match (position, byte) {
            (8 | 13 | 18 | 23, b'-') => {}
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => number = number << 4 | u128::from(byte - b'0'),
            (_, b'a'..=b'f') => number = number << 4 | u128::from(byte - b'a' + 10),
            _ => return None,
        }
    }
    Some(number)
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
        assert_eq!(
            Uid::of(uuid),
            Uid([0x0b0d_1f0e_4a54_4b6f, 0x9d53_0123_4567_89ab])
        );
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
