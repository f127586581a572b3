//! What differs between any two clusters is taken out of an answer: uids, times, versions, addresses, generated names.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// The alphabet of generated names has no vowels, so that they make no words.
static GENERATED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"([A-Za-z0-9][-_])[bcdfghjklmnpqrstvwxz2456789]{5}\b"));
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

/// An answer without what differs between any two clusters.
pub fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => object(fields),
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(normal).collect();
            // The order of generated names is chance.
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
    let metadata = |it: &Value| it["metadata"]["name"].as_str().map(ToOwned::to_owned);
    let name = metadata(item).or_else(|| metadata(&item["object"]));
    item["type"].is_null()
        && name.is_some_and(|it| it.contains("<generated>") || it.ends_with("<stamp>"))
}

fn object(fields: &Map<String, Value>) -> Value {
    let fields = fields.iter().map(|(name, value)| {
        // Where only a part is compared, its name is its pointer.
        let field = name.rsplit('/').next().unwrap_or(name);
        let value = match (field, value) {
            ("resourceVersion", Value::String(it)) if !it.is_empty() && it != "0" => {
                "<version>".into()
            }
            ("continue", Value::String(it)) if !it.is_empty() => "<continue>".into(),
            // A flag of the API server: shorter where tests wait for it.
            ("tolerationSeconds", it) if *it == 10 || *it == 300 => "<default>".into(),
            ("managedFields", Value::Array(all)) => managers(all),
            ("name", Value::String(it)) if EVENT.is_match(it) => {
                text(&EVENT.replace(it, ".<stamp>")).into()
            }
            _ => normal(value),
        };
        (text(name), value)
    });
    let mut object = Value::Object(fields.collect());
    if object["kind"] == "Table" || object["object"]["kind"] == "Table" {
        let table = if object["kind"] == "Table" {
            &mut object
        } else {
            &mut object["object"]
        };
        ages(table);
    }
    object
}

/// Their order depends on times.
fn managers(all: &[Value]) -> Value {
    let mut all: Vec<_> = all.iter().map(normal).collect();
    all.sort_by_key(|it| {
        let field = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        (
            field("manager"),
            field("operation"),
            field("subresource"),
            it.to_string(),
        )
    });
    all.into()
}

/// How long ago something was.
fn ages(table: &mut Value) {
    let columns = table["columnDefinitions"].as_array().cloned();
    let is_age = |it: &Value| {
        let name = it["name"].as_str().unwrap_or_default();
        matches!(name, "Age" | "Last Seen" | "First Seen")
    };
    let ages: Vec<usize> = columns
        .iter()
        .flatten()
        .enumerate()
        .filter(|(_, it)| is_age(it))
        .map(|(place, _)| place)
        .collect();
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for place in &ages {
            if let Some(cell) = row.pointer_mut(&format!("/cells/{place}")) {
                *cell = "<age>".into();
            }
        }
    }
}

/// A text without what differs between any two clusters.
pub fn text(text: &str) -> String {
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
    GENERATED.replace_all(&text, "$1<generated>").into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_chance_is_taken_out_and_nothing_else() {
        for (text, wanted) in [
            ("2026-01-01T00:00:00Z", "<time>"),
            ("at 2026-01-01T00:00:00.123456Z", "at <time.micro>"),
            ("Created pod: web-bx7k2", "Created pod: web-<generated>"),
            ("Created pod: web-front", "Created pod: web-front"),
            (
                "too old resource version: 1 (123)",
                "too old resource version: <versions>",
            ),
            ("10.0.0.1", "<address>"),
        ] {
            assert_eq!(self::text(text), wanted);
        }
        let object = json!({ "resourceVersion": "17", "generation": 2, "continue": "" });
        let wanted = json!({ "resourceVersion": "<version>", "generation": 2, "continue": "" });
        assert_eq!(normal(&object), wanted);
    }

    #[test]
    fn lists_of_generated_names_are_in_order() {
        let pod = |name: &str, node: &str| json!({ "metadata": { "name": name }, "node": node });
        let list = json!([pod("web-xxxxx", "a"), pod("web-bbbbb", "b")]);
        let other = json!([pod("web-ccccc", "b"), pod("web-ddddd", "a")]);
        assert_eq!(normal(&list), normal(&other));
    }
}
