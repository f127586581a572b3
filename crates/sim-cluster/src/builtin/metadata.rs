//! Validation of metadata: names, labels, annotations, owners and finalizers.

use serde_json::Value;

use crate::field::{FieldError, quote};
use crate::names::{NameRule, is_dns1123_label, validate_label_value, validate_qualified_name};
use crate::object::strings;
use crate::validation::{Field, errors_of};

const ANNOTATIONS_MAX: u64 = 256 * 1024;

/// Validates labels, also those that a node selector wants. Errors are about the whole map.
pub(super) fn validate_labels(labels: &Field<'_>) {
    for (key, value) in labels.entries() {
        labels.invalid_text(key, validate_qualified_name(key));
        labels.invalid_text(value.text(), validate_label_value(value.text()));
    }
}

/// Validates annotations.
pub(super) fn validate_annotations(annotations: &Field<'_>) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        annotations.invalid_text(key, validate_qualified_name(&key.to_lowercase()));
        size += (key.len() + value.text().len()) as u64;
    }
    annotations.require_at_most(size, ANNOTATIONS_MAX);
}

/// Validates the metadata of a new object, with its generated name. Only `builtin` kinds have finalizers without a domain.
pub(crate) fn validate_metadata(
    object: &Value,
    namespaced: bool,
    rule: NameRule,
    builtin: bool,
) -> Vec<FieldError> {
    errors_of(object, |object| {
        let metadata = object.field("metadata");
        let prefix = metadata.field("generateName");
        if !prefix.text().is_empty() {
            // A suffix will follow: a dash at the end is valid.
            let wrong = rule.check(&format!("{}a", prefix.text()));
            prefix.invalid_text(prefix.text(), wrong);
        }
        let name = metadata.field("name");
        if name.require_text("name or generateName is required") {
            name.invalid_text(name.text(), rule.check(name.text()));
        }
        let namespace = metadata.field("namespace");
        match (namespaced, namespace.text()) {
            (true, "") => namespace.required(""),
            (true, text) => namespace.invalid_text(text, is_dns1123_label(text)),
            (false, "") => {}
            (false, _) => namespace.forbidden("not allowed on this type"),
        }
        validate_common(&metadata, builtin);
    })
}

/// Validates the metadata of an updated object against the stored one.
pub(crate) fn validate_metadata_update(old: &Value, new: &Value, builtin: bool) -> Vec<FieldError> {
    errors_of(new, |new| {
        let metadata = new.field("metadata");
        for field in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            metadata
                .field(field)
                .require_unchanged(&old["metadata"][field]);
        }
        validate_common(&metadata, builtin);
    })
}

/// The finalizers that an update adds: an error if the object is being deleted.
pub(crate) fn added_finalizers(old: &Value, new: &Value) -> Option<FieldError> {
    let known: Vec<&str> = strings(old, "/metadata/finalizers").collect();
    let added: Vec<String> = strings(new, "/metadata/finalizers")
        .filter(|name| !known.contains(name))
        .map(quote)
        .collect();
    (!added.is_empty()).then(|| {
        let words =
            "no new finalizers can be added if the object is being deleted, found new finalizers";
        FieldError::forbidden(
            "metadata.finalizers",
            format!("{words} []string{{{}}}", added.join(", ")),
        )
    })
}

fn validate_common(metadata: &Field<'_>, builtin: bool) {
    validate_labels(&metadata.field("labels"));
    validate_annotations(&metadata.field("annotations"));
    validate_owners(&metadata.field("ownerReferences"));
    validate_finalizers(&metadata.field("finalizers"), builtin);
}

/// Validates owners. Errors name a field of the list, not the item.
fn validate_owners(owners: &Field<'_>) {
    let mut controller = None;
    for owner in owners.items().map(|owner| owners.with(owner.value)) {
        let version = owner.field("apiVersion");
        if version.text().is_empty() || version.text().ends_with('/') {
            version.invalid_as(version.text(), "version must not be empty");
        }
        for field in ["kind", "name", "uid"].map(|name| owner.field(name)) {
            if field.text().is_empty() {
                field.invalid_as("", "must not be empty");
            }
        }
        if owner.value["controller"] == Value::Bool(true) {
            let name = owner.field("name").text();
            if let Some(first) = controller {
                owners.invalid(&format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                ));
                break;
            }
            controller = Some(name);
        }
    }
}

fn validate_finalizers(finalizers: &Field<'_>, builtin: bool) {
    const STANDARD: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
    for name in finalizers.items() {
        let text = name.text();
        finalizers.invalid_text(text, validate_qualified_name(text));
        if builtin && !text.contains('/') && !STANDARD.contains(&text) {
            name.invalid("name is neither a standard finalizer name nor is it fully qualified");
        }
    }
    let has = |wanted: &str| finalizers.items().any(|name| name.text() == wanted);
    if has("orphan") && has("foregroundDeletion") {
        finalizers.invalid("finalizer orphan and foregroundDeletion cannot be both set");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(
        "Web",
        NameRule::Subdomain,
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )]
    #[case(
        "a.b",
        NameRule::Label,
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )]
    fn a_bad_name_is_explained(#[case] name: &str, #[case] rule: NameRule, #[case] words: &str) {
        assert_eq!(rule.check(name), [words]);
    }

    #[test]
    fn label_keys_and_values_are_checked() {
        let object = json!({ "metadata": { "name": "a", "namespace": "b", "labels": { "x/y/z": "ok", "k": "not ok" } } });
        let errors = validate_metadata(&object, true, NameRule::Subdomain, true);
        assert_eq!(errors.len(), 2);
        assert!(errors.iter().any(|error| error.to_string().starts_with(
            r#"metadata.labels: Invalid value: "not ok": a valid label must be an empty string"#
        )));
    }

    #[test]
    fn an_object_being_deleted_accepts_no_new_finalizers() {
        let old =
            json!({ "metadata": { "name": "a", "deletionTimestamp": "x", "finalizers": ["a/b"] } });
        let new = json!({ "metadata": { "name": "a", "deletionTimestamp": "x", "finalizers": ["a/b", "c/d"] } });
        let error = added_finalizers(&old, &new).unwrap();
        assert_eq!(
            error.to_string(),
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}"#
        );
        assert_eq!(added_finalizers(&new, &old), None);
    }

    #[test]
    fn a_uid_never_changes() {
        let errors = validate_metadata_update(
            &json!({ "metadata": { "uid": "1" } }),
            &json!({ "metadata": { "uid": "2" } }),
            true,
        );
        assert_eq!(
            errors[0].to_string(),
            r#"metadata.uid: Invalid value: "2": field is immutable"#
        );
    }
}
