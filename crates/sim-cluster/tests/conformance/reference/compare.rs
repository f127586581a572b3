//! Finds the differences between two responses, and whether they are known.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::Value;

use super::{
    known_differences::REASONS, normalize::normal, runner::Record, script::KnownDifference,
};

/// The most characters of a value that a report shows.
const SHOWN: usize = 600;

/// One place where two responses differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The path: names and indices, separated by slashes.
    pub(crate) at: String,
    /// The value of the real cluster, if any.
    pub(crate) real: Option<Value>,
    /// The value of the embedded cluster, if any.
    pub(crate) embedded: Option<Value>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// How many responses were compared.
    pub(crate) compared: usize,
    /// How many of them have known differences.
    pub(crate) known: usize,
    /// The unexpected differences, as a report; empty if there are none.
    pub(crate) unexpected: String,
}

/// Compares the responses of both clusters, step by step.
pub(crate) fn compare(
    real: &[Record],
    embedded: &[Record],
    known_differences: &[KnownDifference],
) -> Comparison {
    let mut comparison = Comparison::default();
    let mut used = BTreeSet::new();
    if real.len() != embedded.len() {
        let (one, other) = (real.len(), embedded.len());
        let _ = writeln!(
            comparison.unexpected,
            "{one} responses from the real cluster, {other} from the embedded one"
        );
    }
    for (number, (real, embedded)) in (1..).zip(real.iter().zip(embedded)) {
        comparison.compared += 1;
        for (side, record) in [("real", real), ("embedded", embedded)] {
            if record.timed_out {
                let _ = writeln!(
                    comparison.unexpected,
                    "step {number}: {}: timed out on the {side} cluster",
                    record.label
                );
            }
        }
        let mut all = Vec::new();
        find(
            "",
            &normal(&real.response),
            &normal(&embedded.response),
            &mut all,
        );
        let (known, unexpected): (Vec<_>, Vec<_>) = all.into_iter().partition(|difference| {
            let covering = known_differences
                .iter()
                .position(|known| covers(known, &real.label, difference));
            used.extend(covering);
            covering.is_some()
        });
        comparison.known += usize::from(!known.is_empty());
        if !unexpected.is_empty() {
            let _ = writeln!(comparison.unexpected, "step {number}: {}", real.label);
            for difference in &unexpected {
                show(difference, &mut comparison.unexpected);
            }
        }
    }
    for (index, known) in known_differences.iter().enumerate() {
        let KnownDifference { reason, step, at } = known;
        if !REASONS.iter().any(|(key, _)| key == reason) {
            let _ = writeln!(comparison.unexpected, "there is no reason {reason:?}");
        }
        if !used.contains(&index) {
            let _ = writeln!(
                comparison.unexpected,
                "known difference no longer exists ({reason}): {step}: {at}"
            );
        }
    }
    comparison
}

/// Whether a difference is a known one. A `?` at the end of the path means: only if the embedded cluster has no value.
fn covers(known: &KnownDifference, label: &str, difference: &Difference) -> bool {
    let (place, only_missing) = match known.at.strip_suffix('?') {
        Some(place) => (place, true),
        None => (known.at, false),
    };
    let wanted: Vec<&str> = place.split('/').collect();
    let parts: Vec<&str> = difference.at.split('/').collect();
    (known.step == "*" || known.step == label)
        && (!only_missing || difference.embedded.is_none() && parts.len() == wanted.len())
        && parts.len() >= wanted.len()
        && wanted
            .iter()
            .zip(&parts)
            .all(|(wanted, part)| *wanted == "*" || wanted == part)
}

/// All paths at which `real` and `embedded` differ, the deepest ones.
fn find(at: &str, real: &Value, embedded: &Value, found: &mut Vec<Difference>) {
    let below = |name: &str| {
        if at.is_empty() {
            name.to_owned()
        } else {
            format!("{at}/{name}")
        }
    };
    let mut differ =
        |at: String, real: Option<&Value>, embedded: Option<&Value>| match (real, embedded) {
            (Some(real), Some(embedded)) => find(&at, real, embedded, found),
            (real, embedded) => found.push(Difference {
                at,
                real: real.cloned(),
                embedded: embedded.cloned(),
            }),
        };
    match (real, embedded) {
        (Value::Object(real), Value::Object(embedded)) => {
            let names: BTreeSet<_> = real.keys().chain(embedded.keys()).collect();
            for name in names {
                differ(
                    below(&name.replace('/', "~1")),
                    real.get(name),
                    embedded.get(name),
                );
            }
        }
        (Value::Array(real), Value::Array(embedded)) => match (named(real), named(embedded)) {
            (Some(real), Some(embedded)) => {
                let names: BTreeSet<_> =
                    real.iter().chain(&embedded).map(|(name, _)| name).collect();
                let of = |all: &[(String, &Value)], name: &str| {
                    let found = all.iter().find(|(own, _)| own == name);
                    found.map(|(_, value)| Value::clone(value))
                };
                for name in names {
                    let at = below(&name.replace('/', "~1"));
                    differ(at, of(&real, name).as_ref(), of(&embedded, name).as_ref());
                }
                if let Some(orders) = orders(&real, &embedded) {
                    found.push(Difference {
                        at: below("(order)"),
                        real: Some(orders.0),
                        embedded: Some(orders.1),
                    });
                }
            }
            _ => {
                for place in 0..real.len().max(embedded.len()) {
                    differ(
                        below(&place.to_string()),
                        real.get(place),
                        embedded.get(place),
                    );
                }
            }
        },
        _ if real == embedded => {}
        _ => found.push(Difference {
            at: at.to_owned(),
            real: Some(real.clone()),
            embedded: Some(embedded.clone()),
        }),
    }
}

/// The items with the key that identifies each of them, if they have one.
fn named(items: &[Value]) -> Option<Vec<(String, &Value)>> {
    let name = |item: &Value| {
        let text = |value: &Value| {
            value
                .as_str()
                .filter(|text| !text.is_empty())
                .map(ToOwned::to_owned)
        };
        let manager = text(&item["manager"]).map(|manager| {
            let part = |name: &str| item[name].as_str().unwrap_or_default();
            format!("{manager} {} {}", part("operation"), part("subresource"))
        });
        let is_condition = item["status"].is_string() && item["type"].is_string();
        let condition = is_condition.then(|| text(&item["type"])).flatten();
        manager
            .or(condition)
            .or_else(|| text(&item["name"]))
            .or_else(|| text(&item["metadata"]["name"]).filter(|name| !name.contains('<')))
    };
    let named: Option<Vec<_>> = items.iter().map(|item| Some((name(item)?, item))).collect();
    let named = named.filter(|items| !items.is_empty())?;
    let names: BTreeSet<_> = named.iter().map(|(name, _)| name).collect();
    (names.len() == named.len()).then_some(named)
}

/// The orders in which two lists have their common items, if they differ.
fn orders(real: &[(String, &Value)], embedded: &[(String, &Value)]) -> Option<(Value, Value)> {
    let shared = |of: &[(String, &Value)], with: &[(String, &Value)]| -> Vec<String> {
        let names = of.iter().map(|(name, _)| name);
        names
            .filter(|name| with.iter().any(|(other, _)| other == *name))
            .cloned()
            .collect()
    };
    let (one, other) = (shared(real, embedded), shared(embedded, real));
    (one != other).then(|| (one.into(), other.into()))
}

fn show(difference: &Difference, text: &mut String) {
    let shown = |value: &Option<Value>| {
        let value = value
            .as_ref()
            .map_or_else(|| "(nothing)".to_owned(), ToString::to_string);
        match value.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &value[..end]),
            None => value,
        }
    };
    let Difference { at, real, embedded } = difference;
    let _ = writeln!(
        text,
        "  {at}\n    real:     {}\n    embedded: {}",
        shown(real),
        shown(embedded)
    );
}

/// Checks of this module, which run beside the comparisons.
pub(crate) mod checks {
    use serde_json::json;

    use super::{KnownDifference, Record, Value, compare};

    fn record(response: Value) -> Vec<Record> {
        vec![Record {
            label: "GET a".to_owned(),
            response,
            timed_out: false,
        }]
    }

    pub(crate) fn a_difference_is_unexpected_unless_it_is_declared_and_a_declared_one_must_exist() {
        let (real, same) = (
            record(json!({ "a": [1, 2], "b": 1 })),
            record(json!({ "a": [1, 2], "b": 1 })),
        );
        let other = record(json!({ "a": [1, 3], "b": 1 }));
        let known = |step, at| {
            [KnownDifference {
                reason: "order",
                step,
                at,
            }]
        };
        assert_eq!(compare(&real, &same, &[]).unexpected, "");
        assert_eq!(
            compare(&real, &other, &[]).unexpected,
            "step 1: GET a\n  a/1\n    real:     2\n    embedded: 3\n"
        );
        for (step, at) in [("*", "a"), ("GET a", "a/1"), ("*", "*/1")] {
            let comparison = compare(&real, &other, &known(step, at));
            assert_eq!(
                (comparison.unexpected.as_str(), comparison.known),
                ("", 1),
                "{step} {at}"
            );
        }
        for (step, at) in [("*", "a/0"), ("GET b", "a"), ("*", "a/1/x")] {
            let unexpected = compare(&real, &other, &known(step, at)).unexpected;
            assert!(
                unexpected.contains("a/1") && unexpected.contains("no longer exists"),
                "{unexpected}"
            );
        }
    }
}
