//! `fieldValidation`: the duplicate fields of a body, which a parsed value does not show, and the messages.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::field::{join, quote};

/// The paths of duplicate fields in a JSON body, each once, in order; empty for a body that is no JSON.
pub(crate) fn duplicate_fields(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let outcome = Place {
        path: String::new(),
        found: &mut found,
    }
    .deserialize(&mut reader);
    if outcome.is_err() {
        return Vec::new();
    }
    found
}

/// The error of `fieldValidation=Strict`, if there is one; `builtin::decode_message` completes it. With `Warn` each part is
/// a warning.
pub(crate) fn strict_error(unknown: &[String], duplicate: &[String]) -> Option<String> {
    let parts = strict_parts(unknown, duplicate);
    (!parts.is_empty()).then(|| format!("strict decoding error: {}", parts.join(", ")))
}

fn strict_parts(unknown: &[String], duplicate: &[String]) -> Vec<String> {
    let duplicates = duplicate
        .iter()
        .map(|path| format!("duplicate field {}", quote(path)));
    duplicates
        .chain(
            unknown
                .iter()
                .map(|path| format!("unknown field {}", quote(path))),
        )
        .collect()
}

struct Place<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Declares visits of scalars, which have no fields.
macro_rules! ignore {
    ($($method:ident $type:ty),*) => {
        $(fn $method<E>(self, _: $type) -> Result<(), E> { Ok(()) })*
    };
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    ignore!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items
            .next_element_seed(Place {
                path: format!("{}[{index}]", self.path),
                found: &mut *self.found,
            })?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = join(&self.path, &name);
            if !seen.insert(name) && !self.found.contains(&path) {
                self.found.push(path.clone());
            }
            fields.next_value_seed(Place {
                path,
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_found_at_any_depth() {
        let body = br#"{"spec": {"replicas": 1, "list": [{"a": 1, "a": 2}], "replicas": 2, "replicas": 3}}"#;
        assert_eq!(duplicate_fields(body), ["spec.list[0].a", "spec.replicas"]);
        assert_eq!(duplicate_fields(b"{"), Vec::<String>::new());
    }

    #[test]
    fn the_error_names_all() {
        let error = strict_error(&["spec.foo".to_owned()], &["spec.replicas".to_owned()]).unwrap();
        assert_eq!(
            error,
            r#"strict decoding error: duplicate field "spec.replicas", unknown field "spec.foo""#
        );
        assert_eq!(strict_error(&[], &[]), None);
    }
}
