//! Where two answers differ, and whether it is meant.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::Value;

use super::{normal::normal, play::Record, purpose::REASONS, talk::Differs};

/// A value is shown with at most so many characters.
const SHOWN: usize = 600;

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where, as names and numbers with slashes between.
    pub at: String,
    /// What the real cluster said there, if anything.
    pub real: Option<Value>,
    /// What the embedded one said.
    pub embedded: Option<Value>,
}

/// What a comparison came to.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// How many answers were compared.
    pub compared: usize,
    /// How many of them differ on purpose.
    pub meant: usize,
    /// What is wrong, ready to be read; empty if all is well.
    pub wrong: String,
}

/// Compares what two sides said, step by step.
pub fn compare(real: &[Record], embedded: &[Record], differs: &[Differs]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut used = BTreeSet::new();
    if real.len() != embedded.len() {
        let (one, other) = (real.len(), embedded.len());
        let _ = writeln!(
            verdict.wrong,
            "{one} answers from the real one, {other} from the embedded one"
        );
    }
    for (number, (real, embedded)) in (1..).zip(real.iter().zip(embedded)) {
        verdict.compared += 1;
        for (side, record) in [("real", real), ("embedded", embedded)] {
            if record.in_vain {
                let _ = writeln!(
                    verdict.wrong,
                    "step {number}: {}: the {side} one was waited for in vain",
                    record.label
                );
            }
        }
        let mut all = Vec::new();
        find(
            "",
            &normal(&real.answer),
            &normal(&embedded.answer),
            &mut all,
        );
        let (meant, wrong): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| {
            let mut covering = differs
                .iter()
                .enumerate()
                .filter(|(_, differs)| covers(differs, &real.label, it));
            covering.next().is_some_and(|(place, _)| {
                used.insert(place);
                true
            })
        });
        verdict.meant += usize::from(!meant.is_empty());
        if !wrong.is_empty() {
            let _ = writeln!(verdict.wrong, "step {number}: {}", real.label);
            for difference in &wrong {
                show(difference, &mut verdict.wrong);
            }
        }
    }
    for (place, differs) in differs.iter().enumerate() {
        if !REASONS.iter().any(|(key, _)| *key == differs.why) {
            let _ = writeln!(verdict.wrong, "no reason is given for {:?}", differs.why);
        }
        if !used.contains(&place) {
            let Differs { why, step, at } = differs;
            let _ = writeln!(
                verdict.wrong,
                "no longer differs, though meant to ({why}): {step}: {at}"
            );
        }
    }
    verdict
}

/// Whether a difference is a meant one. A `?` at the end of its place means: only if the embedded one has nothing there.
fn covers(differs: &Differs, label: &str, difference: &Difference) -> bool {
    let (place, only_missing) = match differs.at.strip_suffix('?') {
        Some(place) => (place, true),
        None => (differs.at, false),
    };
    let wanted: Vec<&str> = place.split('/').collect();
    let parts: Vec<&str> = difference.at.split('/').collect();
    (differs.step == "*" || differs.step == label)
        && (!only_missing || difference.embedded.is_none() && parts.len() == wanted.len())
        && parts.len() >= wanted.len()
        && wanted
            .iter()
            .zip(&parts)
            .all(|(wanted, part)| *wanted == "*" || wanted == part)
}

/// All places where `real` and `embedded` differ, the deepest ones.
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
                    let found = all.iter().find(|(it, _)| it == name);
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

/// The items by what tells them apart, if something does.
fn named(items: &[Value]) -> Option<Vec<(String, &Value)>> {
    let name = |item: &Value| {
        let text = |it: &Value| {
            it.as_str()
                .filter(|it| !it.is_empty())
                .map(ToOwned::to_owned)
        };
        let manager = text(&item["manager"]).map(|it| {
            let part = |name: &str| item[name].as_str().unwrap_or_default();
            format!("{it} {} {}", part("operation"), part("subresource"))
        });
        let is_condition = item["status"].is_string() && item["type"].is_string();
        let condition = is_condition.then(|| text(&item["type"])).flatten();
        manager
            .or(condition)
            .or_else(|| text(&item["name"]))
            .or_else(|| text(&item["metadata"]["name"]).filter(|it| !it.contains('<')))
    };
    let named: Option<Vec<_>> = items.iter().map(|it| Some((name(it)?, it))).collect();
    let named = named.filter(|it| !it.is_empty())?;
    let names: BTreeSet<_> = named.iter().map(|(name, _)| name).collect();
    (names.len() == named.len()).then_some(named)
}

/// In which orders two lists have what is in both, if these differ.
fn orders(real: &[(String, &Value)], embedded: &[(String, &Value)]) -> Option<(Value, Value)> {
    let shared = |of: &[(String, &Value)], with: &[(String, &Value)]| -> Vec<String> {
        let names = of.iter().map(|(name, _)| name);
        names
            .filter(|it| with.iter().any(|(name, _)| name == *it))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(answer: Value) -> Vec<Record> {
        vec![Record {
            label: "GET a".to_owned(),
            answer,
            in_vain: false,
        }]
    }

    #[test]
    fn a_difference_is_wrong_unless_it_is_meant_and_then_it_must_be_there() {
        let (real, same) = (
            record(json!({ "a": [1, 2], "b": 1 })),
            record(json!({ "a": [1, 2], "b": 1 })),
        );
        let other = record(json!({ "a": [1, 3], "b": 1 }));
        let meant = |step, at| {
            [Differs {
                why: "order",
                step,
                at,
            }]
        };
        assert_eq!(compare(&real, &same, &[]).wrong, "");
        assert_eq!(
            compare(&real, &other, &[]).wrong,
            "step 1: GET a\n  a/1\n    real:     2\n    embedded: 3\n"
        );
        for (step, at) in [("*", "a"), ("GET a", "a/1"), ("*", "*/1")] {
            let verdict = compare(&real, &other, &meant(step, at));
            assert_eq!(
                (verdict.wrong.as_str(), verdict.meant),
                ("", 1),
                "{step} {at}"
            );
        }
        for (step, at) in [("*", "a/0"), ("GET b", "a"), ("*", "a/1/x")] {
            let wrong = compare(&real, &other, &meant(step, at)).wrong;
            assert!(
                wrong.contains("a/1") && wrong.contains("no longer differs"),
                "{wrong}"
            );
        }
    }
}
