//! Validation of metadata: names, labels, annotations, owners and finalizers.

use serde_json::Value;

use super::checks::fields;
use crate::field::{FieldError, quote};
use crate::names::{NameRule, is_dns1123_label, validate_label_value, validate_qualified_name};
use crate::object::strings;

const ANNOTATIONS_MAX: u64 = 256 * 1024;

/// Validates labels at `path`.
pub(super) fn validate_labels(labels: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in fields(labels) {
        errors.extend(
            validate_qualified_name(key)
                .into_iter()
                .map(|what| FieldError::invalid(path, key.as_str(), what)),
        );
        let text = value.as_str().unwrap_or_default();
        errors.extend(
            validate_label_value(text)
                .into_iter()
                .map(|what| FieldError::invalid(path, text, what)),
        );
    }
    errors
}

/// Validates annotations at `path`.
pub(super) fn validate_annotations(annotations: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in fields(annotations) {
        let wrong = validate_qualified_name(&key.to_lowercase());
        errors.extend(
            wrong
                .into_iter()
                .map(|what| FieldError::invalid(path, key.as_str(), what)),
        );
        size += (key.len() + value.as_str().map_or(0, str::len)) as u64;
    }
    if size > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX));
    }
    errors
}

/// Validates the metadata of a new object, with its generated name. Only `builtin` kinds have finalizers without a domain.
pub(crate) fn validate_metadata(
    object: &Value,
    namespaced: bool,
    rule: NameRule,
    builtin: bool,
) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors = Vec::new();
    if let Some(prefix) = metadata["generateName"]
        .as_str()
        .filter(|prefix| !prefix.is_empty())
    {
        // A suffix will follow: a dash at the end is valid.
        let wrong = rule.check(&format!("{prefix}a"));
        errors.extend(
            wrong
                .into_iter()
                .map(|what| FieldError::invalid("metadata.generateName", prefix, what)),
        );
    }
    match metadata["name"].as_str().unwrap_or_default() {
        "" => errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        )),
        name => errors.extend(
            rule.check(name)
                .into_iter()
                .map(|what| FieldError::invalid("metadata.name", name, what)),
        ),
    }
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    if namespaced && namespace.is_empty() {
        errors.push(FieldError::required("metadata.namespace", ""));
    } else if namespaced {
        let wrong = is_dns1123_label(namespace);
        errors.extend(
            wrong
                .into_iter()
                .map(|what| FieldError::invalid("metadata.namespace", namespace, what)),
        );
    } else if !namespace.is_empty() {
        errors.push(FieldError::forbidden(
            "metadata.namespace",
            "not allowed on this type",
        ));
    }
    errors.extend(validate_common(metadata, builtin));
    errors
}

/// Validates the metadata of an updated object against the stored one.
pub(crate) fn validate_metadata_update(old: &Value, new: &Value, builtin: bool) -> Vec<FieldError> {
    let (before, after) = (&old["metadata"], &new["metadata"]);
    let mut errors = Vec::new();
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if before[field] != after[field] {
            errors.push(FieldError::invalid(
                format!("metadata.{field}"),
                after[field].clone(),
                "field is immutable",
            ));
        }
    }
    errors.extend(validate_common(after, builtin));
    errors
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

fn validate_common(metadata: &Value, builtin: bool) -> Vec<FieldError> {
    let mut errors = validate_labels(&metadata["labels"], "metadata.labels");
    errors.extend(validate_annotations(
        &metadata["annotations"],
        "metadata.annotations",
    ));
    errors.extend(validate_owners(&metadata["ownerReferences"]));
    errors.extend(validate_finalizers(&metadata["finalizers"], builtin));
    errors
}

fn validate_owners(owners: &Value) -> Vec<FieldError> {
    const PATH: &str = "metadata.ownerReferences";
    let mut errors = Vec::new();
    let mut controller: Option<&str> = None;
    for owner in owners.as_array().into_iter().flatten() {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        if text("apiVersion")
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .is_empty()
        {
            errors.push(FieldError::invalid(
                format!("{PATH}.apiVersion"),
                text("apiVersion"),
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(
                    format!("{PATH}.{field}"),
                    "",
                    "must not be empty",
                ));
            }
        }
        if owner["controller"] == Value::Bool(true) {
            if let Some(first) = controller {
                let words = "Only one reference can have Controller set to true. Found \"true\" in references for";
                let detail = format!("{words} {first} and {}", text("name"));
                errors.push(FieldError::invalid(PATH, owners.clone(), detail));
                break;
            }
            controller = Some(text("name"));
        }
    }
    errors
}

fn validate_finalizers(finalizers: &Value, builtin: bool) -> Vec<FieldError> {
    const PATH: &str = "metadata.finalizers";
    const STANDARD: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
    let mut errors = Vec::new();
    let mut has = (false, false);
    let names = finalizers.as_array().into_iter().flatten();
    for (index, name) in names.filter_map(Value::as_str).enumerate() {
        errors.extend(
            validate_qualified_name(name)
                .into_iter()
                .map(|what| FieldError::invalid(PATH, name, what)),
        );
        if builtin && !name.contains('/') && !STANDARD.contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(
                format!("{PATH}[{index}]"),
                name,
                detail,
            ));
        }
        has = (
            has.0 || name == "orphan",
            has.1 || name == "foregroundDeletion",
        );
    }
    if has == (true, true) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(PATH, finalizers.clone(), detail));
    }
    errors
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
