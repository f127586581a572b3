//! Helpers to deserialize partial types: a type that names only the fields it needs lets everything else, `managedFields`
//! above all, be skipped while the bytes are scanned.
//!
//! ```
//! use reflector::partial::{Text, is_present, null_as_default};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! #[serde(rename_all = "camelCase")]
//! struct Metadata {
//!     name: String,
//!     #[serde(default, deserialize_with = "is_present")]
//!     deletion_timestamp: bool,
//!     #[serde(default, deserialize_with = "null_as_default")]
//!     finalizers: Vec<String>,
//! }
//!
//! let json = r#"{"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": null}"#;
//! let metadata: Metadata = serde_json::from_str(json)?;
//! assert!(metadata.deletion_timestamp && metadata.finalizers.is_empty());
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::printable::printable;

/// A string that is borrowed from the input unless it contains escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Reads `null` as the default value, as Go's decoder does. For `#[serde(deserialize_with)]`.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a text that people see, made [printable](crate::printable); `null` is an empty one. For
/// `#[serde(deserialize_with)]`.
pub fn printable_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = Option::<Text<'_>>::deserialize(deserializer)?;
    Ok(text.map(|text| printable(&text.0)).unwrap_or_default())
}

/// The longest [`name`]: names of objects have at most 253 characters, names of labels at most 317.
const MAX_NAME_BYTES: usize = 320;

/// Reads a name, a uid, a version or a label; rejects one that is longer than Kubernetes allows. For
/// `#[serde(deserialize_with)]`.
pub fn name<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> From<&'a str>,
{
    let Text(text) = Text::deserialize(deserializer)?;
    if text.len() > MAX_NAME_BYTES {
        return Err(D::Error::custom(format!(
            "a name, uid or version of {} bytes",
            text.len()
        )));
    }
    Ok(T::from(&text))
}

/// Whether a value exists that matters only by its existence, such as a deletion timestamp. For
/// `#[serde(deserialize_with)]`.
pub fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

/// Passes those entries of a map of strings to `take` whose keys are in `keys`, and skips the others.
pub fn for_each_entry<'de, D: Deserializer<'de>>(
    deserializer: D,
    keys: &[&str],
    take: impl FnMut(&str, &str),
) -> Result<(), D::Error> {
    struct Entries<'k, F>(&'k [&'k str], F);

    impl<'de, F: FnMut(&str, &str)> Visitor<'de> for Entries<'_, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of strings")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
            while let Some(Text(key)) = entries.next_key()? {
                if self.0.contains(&&*key) {
                    let Text(value) = entries.next_value()?;
                    self.1(&key, &value);
                } else {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }

    deserializer.deserialize_map(Entries(keys, take))
}

/// Passes the items of a sequence to `take` one by one, without collecting them; `null` has none.
pub fn for_each_item<'de, D, T>(deserializer: D, take: impl FnMut(T)) -> Result<(), D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Items<T, F>(F, PhantomData<T>);

    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Items<T, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                self.0(item);
            }
            Ok(())
        }

        fn visit_none<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_seq(self)
        }
    }

    deserializer.deserialize_option(Items(take, PhantomData))
}
