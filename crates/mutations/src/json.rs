//! Mutations of JSON: values of other types and ranges, missing, misplaced and repeated members.

use rand::{
    RngExt,
    rngs::StdRng,
    seq::{IndexedRandom, IteratorRandom},
};
use serde_json::{Value, json};

/// Text that harms a terminal or a log if it is not sanitized: an escape sequence, a bell, a line break.
pub const ESCAPES: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\nlevel=error\u{9b}31m\u{202e}";

/// Replaces a random value inside `value`, removes it, or puts a copy of another one in its place.
pub fn mutate_value(value: &mut Value, random: &mut StdRng) {
    let donor = random.random_bool(0.2).then(|| part_of(value, random));
    mutate_part(value, donor, random);
}

/// A random value inside `value`.
fn part_of(mut value: &Value, random: &mut StdRng) -> Value {
    while random.random_bool(0.8) {
        let inner = match value {
            Value::Object(members) => members.values().choose(random),
            Value::Array(items) => items.choose(random),
            _ => None,
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    value.clone()
}

fn mutate_part(value: &mut Value, donor: Option<Value>, random: &mut StdRng) {
    let descends = random.random_bool(0.9);
    match value {
        Value::Object(members) if descends && !members.is_empty() => {
            let key = members.keys().choose(random).cloned().unwrap_or_default();
            match random.random_range(0..40) {
                0 | 1 => {
                    members.remove(&key);
                }
                2 => {
                    let moved = members.remove(&key).unwrap_or_default();
                    members.insert(key.to_uppercase(), moved);
                }
                _ => mutate_part(&mut members[&key], donor, random),
            }
        }
        Value::Array(items) if descends && !items.is_empty() => {
            let index = random.random_range(0..items.len());
            match random.random_range(0..20) {
                0 => {
                    items.remove(index);
                }
                1 => items.push(items[index].clone()),
                _ => mutate_part(&mut items[index], donor, random),
            }
        }
        _ => *value = donor.unwrap_or_else(|| odd_value(random)),
    }
}

/// A value that a decoder may not expect.
fn odd_value(random: &mut StdRng) -> Value {
    let nested = (0..60).fold(json!(0), |inner, _| json!([inner]));
    let values = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(i32::MAX),
        json!(""),
        json!("7"),
        json!("99999999999999999999999999"),
        json!("2026-13-45T99:99:99Z"),
        json!("9999-12-31T23:59:59.999999999Z"),
        json!("-009999-01-01T00:00:00Z"),
        json!("0001-01-01T00:00:00+23:59"),
        json!(ESCAPES),
        json!("x".repeat(100_000)),
        json!([]),
        json!([null, 1, "a", {}]),
        json!({}),
        json!({ "": null, "a": { "b": [] } }),
        nested,
    ];
    values.choose(random).cloned().unwrap_or_default()
}
