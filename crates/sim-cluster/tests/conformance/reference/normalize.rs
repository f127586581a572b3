//! Removes from a response what differs between any two clusters: UIDs, times, versions, addresses, generated names, and the
//! order of lists that have none by contract.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// The alphabet of generated names has no vowels, so that they form no words.
static GENERATED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"([A-Za-z0-9][-_])[bcdfghjklmnpqrstvwxz2456789]{5}\b"));
/// The hashes of templates, whose algorithm is that of Go's memory: encoded decimal digits.
static HASH: LazyLock<Regex> =
    LazyLock::new(|| regex(r"([A-Za-z0-9]-|pod-template-hash[=:] *)[456789bcdf]{6,10}\b"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b\d+\.\d+\.\d+\.\d+\b"));
static OLD_VERSION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b(\d+ \(\d+\)|current: \d+|record \(\d+\))"));
static EVENT: LazyLock<Regex> = LazyLock::new(|| regex(r"\.[0-9a-f]{16}$"));
static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern is one")
}

/// A response without the parts that differ between any two clusters.
pub(crate) fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => object(fields),
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(normal).collect();
            rows_of_events(&mut items);
            // The order of generated names is random.
            if items.iter().any(is_generated) {
                items.sort_by_key(ToString::to_string);
            }
            Value::Array(items)
        }
        Value::String(text) => self::text(text).into(),
        other => other.clone(),
    }
}

fn is_generated(item: &Value) -> bool {
    let metadata = |object: &Value| object["metadata"]["name"].as_str().map(ToOwned::to_owned);
    let name = metadata(item).or_else(|| metadata(&item["object"]));
    item["type"].is_null()
        && name.is_some_and(|name| {
            name.contains("<generated>") || name.ends_with("<stamp>") || name.ends_with("<hash>")
        })
}

fn object(fields: &Map<String, Value>) -> Value {
    let fields = fields.iter().map(|(name, value)| {
        // If only a part is compared, its name is its pointer.
        let field = name.rsplit('/').next().unwrap_or(name);
        let value = match (field, value) {
            ("resourceVersion", Value::String(version))
                if !version.is_empty() && version != "0" =>
            {
                "<version>".into()
            }
            ("continue", Value::String(token)) if !token.is_empty() => "<continue>".into(),
            // A flag of the API server: shorter where tests wait for it.
            ("tolerationSeconds", seconds) if *seconds == 10 || *seconds == 300 => {
                "<default>".into()
            }
            ("managedFields", Value::Array(all)) => managers(all),
            ("pod-template-hash", Value::String(_)) => "<hash>".into(),
            ("name", Value::String(name)) if EVENT.is_match(name) => {
                text(&EVENT.replace(name, ".<stamp>")).into()
            }
            _ => normal(value),
        };
        (text(name), value)
    });
    let mut object = Value::Object(fields.collect());
    if object["kind"] == "SelfSubjectRulesReview" {
        rules(&mut object["status"]);
    }
    if object["kind"] == "Table" || object["object"]["kind"] == "Table" {
        let table = if object["kind"] == "Table" {
            &mut object
        } else {
            &mut object["object"]
        };
        let columns = table["columnDefinitions"].clone();
        ages(table, &columns);
    }
    object
}

/// Only the first event of a watch declares the columns.
fn rows_of_events(events: &mut [Value]) {
    let columns = events
        .iter()
        .map(|event| &event["object"]["columnDefinitions"])
        .find(|event| event.is_array())
        .cloned();
    for event in events {
        if let (Some(columns), Some(object)) = (&columns, event.get_mut("object")) {
            ages(object, columns);
        }
    }
}

/// Their order depends on times.
fn managers(all: &[Value]) -> Value {
    let mut all: Vec<_> = all.iter().map(normal).collect();
    all.sort_by_key(|manager| {
        let field = |name: &str| manager[name].as_str().unwrap_or_default().to_owned();
        (
            field("manager"),
            field("operation"),
            field("subresource"),
            manager.to_string(),
        )
    });
    all.into()
}

/// "The list ordering isn't significant", says the type: at the real API server it is the order of a cache.
fn rules(status: &mut Value) {
    for list in ["resourceRules", "nonResourceRules"] {
        if let Some(rules) = status[list].as_array_mut() {
            rules.sort_by_key(ToString::to_string);
        }
    }
}

/// Replaces the ages in a Table.
fn ages(table: &mut Value, columns: &Value) {
    let is_age = |column: &Value| {
        let name = column["name"].as_str().unwrap_or_default();
        matches!(name, "Age" | "Last Seen" | "First Seen")
    };
    let ages: Vec<usize> = columns
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, column)| is_age(column))
        .map(|(place, _)| place)
        .collect();
    let rows = table.get_mut("rows").and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten() {
        for place in &ages {
            if let Some(cell) = row.pointer_mut(&format!("/cells/{place}")) {
                *cell = "<age>".into();
            }
        }
    }
}

/// A text without the parts that differ between any two clusters.
pub(crate) fn text(text: &str) -> String {
    if TOKEN.is_match(text) {
        return "<token>".to_owned();
    }
    let text = UID.replace_all(text, "<uid>");
    let text = TIME.replace_all(&text, |found: &Captures<'_>| {
        if found.get(1).is_some() {
            "<time.micro>"
        } else {
            "<time>"
        }
    });
    let text = ADDRESS.replace_all(&text, "<address>");
    let text = OLD_VERSION.replace_all(&text, "<versions>");
    let text = GENERATED.replace_all(&text, "$1<generated>");
    HASH.replace_all(&text, "$1<hash>").into_owned()
}

/// Checks of this module, which run beside the comparisons.
pub(crate) mod checks {
    use serde_json::json;

    use super::{Value, normal, text as normal_text};

    pub(crate) fn only_random_parts_are_removed() {
        for (text, wanted) in [
            ("2026-01-01T00:00:00Z", "<time>"),
            ("at 2026-01-01T00:00:00.123456Z", "at <time.micro>"),
            ("Created pod: web-bx7k2", "Created pod: web-<generated>"),
            ("Created pod: web-front", "Created pod: web-front"),
            ("web-6d4cf56db6-bx7k2", "web-<hash>-<generated>"),
            (
                "a=b,pod-template-hash=6d4cf56db6",
                "a=b,pod-template-hash=<hash>",
            ),
            (
                "too old resource version: 1 (123)",
                "too old resource version: <versions>",
            ),
            ("10.0.0.1", "<address>"),
        ] {
            assert_eq!(normal_text(text), wanted);
        }
        let object = json!({ "resourceVersion": "17", "generation": 2, "continue": "" });
        let wanted = json!({ "resourceVersion": "<version>", "generation": 2, "continue": "" });
        assert_eq!(normal(&object), wanted);
    }

    pub(crate) fn the_rules_of_a_review_are_unordered_and_other_lists_are_ordered() {
        let review = |kind: &str, list: &str, rules: Value| json!({ "kind": kind, "status": { list: rules } });
        let (one, other) = (
            json!([{ "verbs": ["get"] }, { "verbs": ["list"] }]),
            json!([{ "verbs": ["list"] }, { "verbs": ["get"] }]),
        );
        for list in ["resourceRules", "nonResourceRules"] {
            let of = |rules: &Value| normal(&review("SelfSubjectRulesReview", list, rules.clone()));
            assert_eq!(of(&one), of(&other), "{list}");
            assert_ne!(of(&one), of(&json!([{ "verbs": ["get"] }])), "{list}");
        }
        let of = |kind: &str, list: &str, rules: &Value| normal(&review(kind, list, rules.clone()));
        assert_ne!(
            of("Policy", "resourceRules", &one),
            of("Policy", "resourceRules", &other)
        );
        assert_ne!(
            of("SelfSubjectRulesReview", "rules", &one),
            of("SelfSubjectRulesReview", "rules", &other)
        );
    }

    pub(crate) fn ages_are_removed_from_tables_and_their_watch_events() {
        let columns = json!([{ "name": "Name" }, { "name": "Age" }]);
        let table = |columns: &Value, age: &str| json!({ "kind": "Table", "columnDefinitions": columns, "rows": [{ "cells": ["3s", age] }] });
        let cells = |table: &Value| table.pointer("/rows/0/cells").cloned();
        assert_eq!(
            cells(&normal(&table(&columns, "5s"))),
            Some(json!(["3s", "<age>"]))
        );
        let events = json!([
            { "type": "ADDED", "object": table(&columns, "0s") },
            { "type": "MODIFIED", "object": table(&Value::Null, "3s") },
            { "type": "ERROR", "object": { "kind": "Status" } },
        ]);
        let events = normal(&events);
        for number in 0..2 {
            assert_eq!(
                cells(&events[number]["object"]),
                Some(json!(["3s", "<age>"])),
                "{number}"
            );
        }
        assert_eq!(events[2]["object"], json!({ "kind": "Status" }));
    }

    pub(crate) fn lists_of_generated_names_are_sorted() {
        let pod = |name: &str, node: &str| json!({ "metadata": { "name": name }, "node": node });
        let list = json!([pod("web-xxxxx", "a"), pod("web-bbbbb", "b")]);
        let other = json!([pod("web-ccccc", "b"), pod("web-ddddd", "a")]);
        assert_eq!(normal(&list), normal(&other));
    }
}
