//! Field selectors: `spec.nodeName=n1,status.phase!=Running`; each kind supports a few fields.

use std::borrow::Cow;

use serde_json::Value;

use crate::resources::Kind;
use crate::status::Status;

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    field: String,
    /// JSON pointers; the first one with a value counts.
    pointers: Vec<String>,
    /// The value of an absent field.
    absent: &'static str,
    value: String,
    equal: bool,
}

/// Fields that kinds support besides name and namespace.
const SUPPORTED: &[(&str, &[&str])] = &[
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("nodes", &["spec.unschedulable"]),
    ("namespaces", &["name", "status.phase"]),
    ("secrets", &["type"]),
    ("services", &["spec.clusterIP", "spec.type"]),
    ("replicationcontrollers", &["status.replicas"]),
];

impl FieldSelector {
    /// Parses the form of query strings for a kind.
    ///
    /// # Errors
    /// 400 for a field the kind does not support.
    pub(crate) fn parse(kind: &Kind, text: &str) -> Result<Self, Status> {
        let mut requirements = Vec::new();
        for term in split_terms(text) {
            let (field, equal, value) = split_term(&term).ok_or_else(|| {
                Status::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                ))
            })?;
            requirements.push(Requirement {
                pointers: pointers_of(kind, field)?,
                absent: absent_value(field),
                field: field.to_owned(),
                value,
                equal,
            });
        }
        Ok(Self(requirements))
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the object's fields meet every requirement.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|each| each.matches(object))
    }
}

impl Requirement {
    fn matches(&self, object: &Value) -> bool {
        let found = self
            .pointers
            .iter()
            .find_map(|pointer| object.pointer(pointer));
        let text = found.map_or(self.absent.into(), as_text);
        (text == self.value) == self.equal
    }
}

fn absent_value(field: &str) -> &'static str {
    match field {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        "status.replicas" => "0",
        _ => "",
    }
}

fn pointers_of(kind: &Kind, field: &str) -> Result<Vec<String>, Status> {
    let supported = SUPPORTED
        .iter()
        .find(|(storage, _)| *storage == &*kind.storage);
    let supported = supported.map_or(&[][..], |(_, fields)| fields);
    let known = matches!(field, "metadata.name" | "metadata.namespace")
        || supported.contains(&field)
        || is_selectable(kind, field);
    if !known {
        return Err(Status::bad_request(unsupported(kind, field, supported)));
    }
    let pointer = format!("/{}", field.replace('.', "/"));
    Ok(match (&*kind.storage, field) {
        ("namespaces", "name") => vec!["/metadata/name".to_owned()],
        ("events", "source") => vec![
            "/source/component".to_owned(),
            "/reportingComponent".to_owned(),
        ],
        ("pods", "status.podIPs") => vec!["/status/podIP".to_owned()],
        _ => vec![pointer],
    })
}

/// Whether a definition lists the field as selectable.
fn is_selectable(kind: &Kind, field: &str) -> bool {
    let custom = kind.custom.as_ref();
    let fields = custom.and_then(|custom| custom.version["selectableFields"].as_array());
    fields.is_some_and(|fields| {
        fields.iter().any(|each| {
            let path = each["jsonPath"].as_str().unwrap_or_default();
            path.trim_start_matches('.') == field
        })
    })
}

fn unsupported(kind: &Kind, field: &str, supported: &[&str]) -> String {
    if kind.is_custom() {
        return format!("field label not supported: {field}");
    }
    match (kind.group.as_str(), supported.is_empty()) {
        ("apps", false) => format!(
            "field label not supported for appsv1.{}: {field}",
            kind.kind
        ),
        (_, false) => format!("field label not supported: {field}"),
        (_, true) => format!(
            "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for letter in text.chars() {
        match letter {
            ',' if !escaped => terms.push(String::new()),
            _ => terms.last_mut().expect("never empty").push(letter),
        }
        escaped = letter == '\\' && !escaped;
    }
    terms.retain(|term| !term.is_empty());
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, String)> {
    let mut escaped = false;
    for (at, letter) in term.char_indices() {
        if !escaped {
            for (sign, equal) in [("!=", false), ("==", true), ("=", true)] {
                if let Some(value) = term[at..].strip_prefix(sign) {
                    return Some((&term[..at], equal, unescape(value)));
                }
            }
        }
        escaped = letter == '\\' && !escaped;
    }
    None
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' {
            letters.next()
        } else {
            Some(letter)
        });
    }
    plain
}

/// A scalar as a string, as selectors compare it.
fn as_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::kinds;

    #[test]
    fn selects_by_the_fields_of_a_kind() {
        let pod = json!({"metadata": {"name": "a", "namespace": "x"}, "spec": {"nodeName": "n1"},
            "status": {"phase": "Running"}});
        let rows = [
            ("metadata.name=a", true),
            ("metadata.name==b", false),
            ("spec.nodeName=n1,status.phase!=Pending", true),
            ("spec.nodeName=", false),
            ("spec.hostNetwork=false", true),
        ];
        for (text, expected) in rows {
            let selector = FieldSelector::parse(&kinds::PODS, text).unwrap();
            assert_eq!(selector.matches(&pod), expected, "{text}");
        }
    }

    #[test]
    fn rejects_other_fields() {
        let refused = FieldSelector::parse(&kinds::PODS, "spec.foo=1").unwrap_err();
        assert_eq!(refused.message, "field label not supported: spec.foo");
        let refused = FieldSelector::parse(&kinds::CONFIG_MAPS, "data.a=1").unwrap_err();
        assert_eq!(
            refused.message,
            "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
    }
}
