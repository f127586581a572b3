//! Validation of CustomResourceDefinitions: names, versions, structural schemas, columns.

use serde_json::Value;

use super::rules::compile_error;
use crate::field::FieldError;
use crate::names::{is_dns1035_label, is_dns1123_subdomain};
use crate::object::condition;
use crate::validation::{Field, errors_of};

/// Validates a new definition with its defaults, without its metadata.
pub(crate) fn validate_definition(definition: &Value) -> Vec<FieldError> {
    errors_of(definition, validate_spec)
}

/// Validates the immutable fields of an established definition.
pub(crate) fn validate_definition_update(old: &Value, new: &Value) -> Vec<FieldError> {
    errors_of(new, |new| {
        validate_spec(new);
        let (spec, before) = (new.field("spec"), &old["spec"]);
        let names = spec.field("names");
        if condition(old, "Established").is_some_and(|established| established["status"] == "True")
        {
            spec.field("scope").require_unchanged(&before["scope"]);
            names
                .field("kind")
                .require_unchanged(&before["names"]["kind"]);
        }
        spec.field("group").require_unchanged(&before["group"]);
        names
            .field("plural")
            .require_unchanged(&before["names"]["plural"]);
        let versions = spec.field("versions");
        let is_served = |name: &Value| {
            versions
                .items()
                .any(|version| version.value["name"] == *name)
        };
        for version in new.field("status").field("storedVersions").items() {
            if !is_served(version.value) {
                version.invalid("missing from spec.versions; the version was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in it and removes it from status.storedVersions");
            }
        }
    })
}

fn validate_spec(definition: &Field<'_>) {
    let spec = definition.field("spec");
    let (group, names) = (spec.field("group"), spec.field("names"));
    let name = definition.field("metadata").field("name");
    if name.text() != format!("{}.{}", names.field("plural").text(), group.text()) {
        name.invalid_as(name.text(), "must be spec.names.plural+\".\"+spec.group");
    }
    if group.require_text("") {
        group.invalid_text(group.text(), is_dns1123_subdomain(group.text()));
        if !group.text().contains('.') {
            group.invalid("should be a domain with at least one dot");
        }
    }
    spec.field("scope")
        .require_one_of(&["Cluster", "Namespaced"]);
    validate_names(&names);
    validate_versions(&spec.field("versions"));
}

fn validate_names(names: &Field<'_>) {
    let label = |name: &Field<'_>, text: &str| {
        if !text.is_empty() {
            name.invalid_text(text, is_dns1035_label(text));
        }
    };
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = names.field(field);
        if field != "singular" {
            name.require_text("");
        }
        // Kinds are labels, but for their upper case.
        if field.to_lowercase().ends_with("kind") {
            label(&name, &name.text().to_lowercase());
        } else {
            label(&name, name.text());
        }
    }
    for list in ["shortNames", "categories"] {
        for name in names.field(list).items() {
            name.require_text("");
            label(&name, name.text());
        }
    }
    let list_kind = names.field("listKind");
    if !list_kind.text().is_empty() && list_kind.value == names.field("kind").value {
        list_kind.invalid("kind and listKind may not be the same");
    }
}

fn validate_versions(versions: &Field<'_>) {
    let is_stored = |version: &Field<'_>| version.value["storage"] == true;
    if versions.items().filter(is_stored).count() != 1 {
        versions.invalid("must have exactly one version marked as storage version");
    }
    for (index, version) in versions.items().enumerate() {
        let name = version.field("name");
        name.invalid_text(name.text(), is_dns1035_label(name.text()));
        if versions
            .items()
            .take(index)
            .any(|other| other.value["name"] == *name.value)
        {
            versions.invalid("must contain unique version names");
        }
        for column in version.field("additionalPrinterColumns").items() {
            validate_column(&column);
        }
        let schema = version.field("schema").field("openAPIV3Schema");
        if schema.value.is_null() {
            schema.required("schemas are required");
        } else {
            let of_type = schema.field("type");
            if of_type.text() != "object" {
                of_type.invalid_as(of_type.text(), "must be object at the root");
            }
            validate_schema(&schema, true);
        }
        validate_scale(&version.field("subresources").field("scale"));
    }
}

fn validate_column(column: &Field<'_>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = [
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
    ];
    column.field("name").require_text("");
    column.field("jsonPath").require_text("");
    let (of_type, format) = (column.field("type"), column.field("format"));
    let detail = format!("must be one of {}", TYPES.join(","));
    if of_type.require_text(&detail) && !TYPES.contains(&of_type.text()) {
        of_type.invalid(&detail);
    }
    if !format.text().is_empty() && !FORMATS.contains(&format.text()) {
        format.invalid(&format!("must be one of {}", FORMATS.join(",")));
    }
}

fn validate_scale(scale: &Field<'_>) {
    if scale.value.is_null() {
        return;
    }
    for (field, parent) in [
        ("specReplicasPath", ".spec"),
        ("statusReplicasPath", ".status"),
    ] {
        let path = scale.field(field);
        if path.require_text("") && !path.text().starts_with(&format!("{parent}.")) {
            path.invalid(&format!("should be a json path under {parent}"));
        }
    }
}

/// Validates a structural schema: it specifies types, does not contradict pruning, and its rules compile.
fn validate_schema(schema: &Field<'_>, is_root: bool) {
    if !is_root {
        require_type(schema);
    }
    reject_keywords(schema);
    validate_list_type(schema);
    for rule in schema.field("x-kubernetes-validations").items() {
        validate_rule(&rule);
    }
    for (_, child) in schema.field("properties").entries() {
        validate_schema(&child, false);
    }
    for child in ["items", "additionalProperties"].map(|key| schema.field(key)) {
        if child.value.is_object() {
            validate_schema(&child, false);
        }
    }
}

/// A schema below the root has a type, unless it allows several or all.
fn require_type(schema: &Field<'_>) {
    let flag = |name: &str| schema.value[name] == true;
    if !flag("x-kubernetes-int-or-string") && !flag("x-kubernetes-preserve-unknown-fields") {
        let of = if schema.is_named("items") {
            "array items"
        } else {
            "object fields"
        };
        let detail = format!("must not be empty for specified {of}");
        schema.field("type").require_text(&detail);
    }
}

/// Rejects the keywords of JSON schemas that structural schemas must not have.
fn reject_keywords(schema: &Field<'_>) {
    let has = |keyword: &str| schema.value[keyword].is_object();
    if schema.value["type"] == "array" && !has("items") {
        schema.field("items").required("must be specified");
    }
    for keyword in [
        "$ref",
        "definitions",
        "dependencies",
        "patternProperties",
        "additionalItems",
    ] {
        if !schema.value[keyword].is_null() {
            let detail = format!("{keyword} is not supported");
            schema.field(keyword).forbidden(&detail);
        }
    }
    if schema.value["uniqueItems"] == true {
        schema.field("uniqueItems").forbidden(
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        );
    }
    if has("properties") && has("additionalProperties") {
        let detail = "additionalProperties and properties are mutual exclusive";
        schema.field("additionalProperties").forbidden(detail);
    }
}

fn validate_list_type(schema: &Field<'_>) {
    let list_type = schema.field("x-kubernetes-list-type");
    let keys = schema.field("x-kubernetes-list-map-keys");
    match list_type.value.as_str() {
        Some("map") if keys.len() == 0 => {
            keys.required("must not be empty if x-kubernetes-list-type is map");
        }
        None | Some("atomic" | "set" | "map") => {}
        Some(_) => list_type.not_supported(&["atomic", "map", "set"]),
    }
}

fn validate_rule(rule: &Field<'_>) {
    let (expression, message) = (rule.field("rule"), rule.field("message"));
    match expression.text().trim() {
        "" => expression.required("rule is not specified"),
        text => {
            if let Some(error) = compile_error(text) {
                let detail = format!("compilation failed: {error}");
                expression.with(rule.value).invalid(&detail);
            }
        }
    }
    if message.value.is_string() && message.text().trim().is_empty() {
        message.invalid("message must be non-empty if specified");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn definition(change: impl Fn(&mut Value)) -> Value {
        let mut definition = json!({
            "metadata": { "name": "crontabs.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced",
                "names": { "plural": "crontabs", "kind": "CronTab", "singular": "crontab", "listKind": "CronTabList" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object" } } } } }] }
        });
        change(&mut definition);
        definition
    }

    #[test]
    fn a_plain_definition_is_fine() {
        assert_eq!(validate_definition(&definition(|_| {})), []);
    }

    #[rstest]
    #[case("/metadata/name", json!("x"), "metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group")]
    #[case("/spec/scope", json!("Global"), "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\"")]
    #[case("/spec/versions/0/schema/openAPIV3Schema/properties/spec", json!({}), "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields")]
    #[case("/spec/versions/0/schema", json!({}), "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required")]
    fn a_bad_definition_is_explained(
        #[case] pointer: &str,
        #[case] value: Value,
        #[case] message: &str,
    ) {
        let bad =
            definition(|definition| *definition.pointer_mut(pointer).unwrap() = value.clone());
        let texts: Vec<String> = validate_definition(&bad)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, [message]);
    }

    #[test]
    fn exactly_one_version_is_stored() {
        let bad =
            definition(|definition| definition["spec"]["versions"][0]["storage"] = false.into());
        let text = validate_definition(&bad)[0].to_string();
        assert!(
            text.ends_with("must have exactly one version marked as storage version"),
            "{text}"
        );
    }
}
