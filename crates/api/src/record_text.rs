//! A record that the controller continues from, as one string of JSON in a status.
//!
//! In contrast to other [state of the controller](crate::compact), one that can't be read does not count as absent: what it has lent
//! or begun would be lent or begun again.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::Error as _,
};

pub(crate) fn serialize<T: Serialize, S: Serializer>(record: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&serde_json::to_string(record).map_err(S::Error::custom)?)
}

pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    serde_json::from_str(&String::deserialize(from)?).map_err(D::Error::custom)
}
