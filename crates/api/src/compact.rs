//! State that the controller keeps in a status, as one string of JSON: `kubectl describe` shows it in one line.
//!
//! Not an API: what another version wrote, and this one can't read, counts as absent. The object stays readable.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, ser::Error as _,
};
use serde_json::Value;

/// Whether a field of such state has its default, which is not written.
pub(crate) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

pub(crate) fn serialize<T: Serialize, S: Serializer>(state: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&serde_json::to_string(state).map_err(S::Error::custom)?)
}

pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: DeserializeOwned + Default,
    D: Deserializer<'de>,
{
    let state = match Value::deserialize(from)? {
        Value::String(text) => serde_json::from_str(&text),
        state => serde_json::from_value(state),
    };
    Ok(state.unwrap_or_default())
}
