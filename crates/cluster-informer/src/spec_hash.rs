//! The hash that shows drift of a local ReplicaSet.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// Hash of the fields that decide which pods a workload creates (F29): XXH3-64 of the canonical JSON of template,
/// minReadySeconds and selector.
///
/// Statuses on the host contain it, so it must not change between versions of fedrs.
#[must_use]
pub fn spec_hash(template: &Value, min_ready_seconds: i32, selector: &Value) -> u64 {
    let mut canonical = Vec::with_capacity(1024);
    for part in [template, &Value::from(min_ready_seconds), selector] {
        write_canonical(part, &mut canonical);
        canonical.push(b'\n');
    }
    xxh3_64(&canonical)
}

/// JSON with sorted keys, whatever order the map type has, and without members that are null: these mean the same as
/// absent ones, and API servers differ in writing them (`creationTimestamp: null` in templates).
fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (key, value) in members {
                write_scalar(key, out);
                out.push(b':');
                write_canonical(value, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_canonical(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        scalar => write_scalar(scalar, out),
    }
}

fn write_scalar(scalar: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, scalar)
        .expect("text, numbers and booleans are JSON, and a Vec takes any bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let hash = |template: &str| spec_hash(&parse(template), 0, &Value::Null);
        assert_eq!(
            hash(r#"{"a": {"b": 1, "c": [1, 2]}, "d": ""}"#),
            hash(r#"{"d": "", "a": {"c": [1, 2], "b": 1}}"#)
        );
        assert_ne!(hash(r#"{"a": [1, 2]}"#), hash(r#"{"a": [2, 1]}"#));
        assert_ne!(hash(r#"{"a": "1"}"#), hash(r#"{"a": 1}"#));
    }
}
