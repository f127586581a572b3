//! Any JSON with a limit on its values: `[0,0,...]` takes 16 times its bytes once it is read, `[{"a":0},...]` 85 times.

use std::{cell::Cell, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Reads any JSON with at most `MAX` values: those of lists and objects, and these themselves. For
/// `#[serde(deserialize_with)]`.
pub fn limited_value<'de, const MAX: usize, D>(deserializer: D) -> Result<Value, D::Error>
where
    D: Deserializer<'de>,
{
    Limited(&Cell::new(MAX)).deserialize(deserializer)
}

/// Reads a value; holds how many more there may be.
#[derive(Clone, Copy)]
struct Limited<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for Limited<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.0.get().checked_sub(1);
        self.0
            .set(left.ok_or_else(|| D::Error::custom("too many values"))?);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Limited<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = members.next_key()? {
            values.insert(key, members.next_value_seed(self)?);
        }
        Ok(values.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1000;

    #[test]
    fn s5_any_json_is_read_as_it_is_and_a_wide_one_is_refused() {
        let read =
            |text: &str| limited_value::<MAX, _>(&mut serde_json::Deserializer::from_str(text));
        let text = r#"{"a":[1,-2,0.5,"x",true,null,{}],"b":{"c":18446744073709551615}}"#;
        assert_eq!(read(text).unwrap().to_string(), text);
        for wide in [
            format!("[{}0]", "0,".repeat(MAX)),
            format!("[{}[]]", "[],".repeat(MAX)),
        ] {
            let error = read(&wide).unwrap_err().to_string();
            assert!(error.starts_with("too many values"), "{error}");
        }
        assert!(read(&"[".repeat(1000)).is_err());
    }
}
