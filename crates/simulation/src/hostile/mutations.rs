//! Random mutations of honest responses: values of other types and ranges, missing members, broken bytes.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::{
    RngExt, SeedableRng,
    rngs::StdRng,
    seq::{IndexedRandom, IteratorRandom},
};
use serde_json::{Value, json};

use super::objects::ESCAPES;

/// `body` with a few mutations, the same ones for the same `seed` and body; every other body stays as it is, so that the
/// client gets on to its next request.
pub(super) fn mutated(body: &[u8], seed: u64) -> Vec<u8> {
    let mut hasher = DefaultHasher::new();
    (seed, body).hash(&mut hasher);
    let mut random = StdRng::seed_from_u64(hasher.finish());
    if random.random_bool(0.5) {
        return body.to_vec();
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) if random.random_bool(0.8) => {
            for _ in 0..random.random_range(1..4) {
                mutate_value(&mut value, &mut random);
            }
            // A line of a watch ends with one.
            value
                .to_string()
                .into_bytes()
                .into_iter()
                .chain([b'\n'])
                .collect()
        }
        _ => mutate_bytes(body.to_vec(), &mut random),
    }
}

/// Replaces a random value inside `value`, or removes it.
fn mutate_value(value: &mut Value, random: &mut StdRng) {
    let descends = random.random_bool(0.9);
    match value {
        Value::Object(members) if descends && !members.is_empty() => {
            let key = members.keys().choose(random).cloned().unwrap_or_default();
            if random.random_bool(0.05) {
                members.remove(&key);
            } else {
                mutate_value(&mut members[&key], random);
            }
        }
        Value::Array(items) if descends && !items.is_empty() => {
            let index = random.random_range(0..items.len());
            mutate_value(&mut items[index], random);
        }
        _ => *value = odd_value(random),
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

/// Truncates, changes or repeats some of `bytes`.
fn mutate_bytes(mut bytes: Vec<u8>, random: &mut StdRng) -> Vec<u8> {
    if bytes.is_empty() {
        return vec![random.random()];
    }
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..4) {
        0 => bytes.truncate(at),
        1 => bytes[at] = random.random(),
        2 => bytes.extend_from_within(at..),
        _ => bytes
            .splice(at..at, [0xff, 0xc0, b'"', b'{'])
            .for_each(drop),
    }
    bytes
}
