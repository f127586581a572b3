//! Times in 4 bytes.

use jiff::Timestamp;
use reflector::partial::Text;
use serde::{Deserialize, Deserializer};

/// Seconds since 1970, up to the year 2106: the API server's times have no fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnixSeconds(pub(crate) u32);

impl UnixSeconds {
    /// The whole seconds of `time`, clamped to the range.
    pub(crate) fn of(time: Timestamp) -> Self {
        let seconds = time.as_second().clamp(0, i64::from(u32::MAX));
        Self(u32::try_from(seconds).expect("clamped"))
    }

    pub(crate) fn timestamp(self) -> Timestamp {
        Timestamp::from_second(i64::from(self.0)).expect("2106 is within jiff's range")
    }
}

impl<'de> Deserialize<'de> for UnixSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?.0;
        let time: Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self::of(time))
    }
}
