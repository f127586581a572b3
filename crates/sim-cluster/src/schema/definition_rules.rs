//! Validation of CustomResourceDefinitions: names, versions, structural schemas, columns.

use serde_json::Value;

use super::rules::compile_error;
use crate::field::FieldError;
use crate::names::{is_dns1035_label, is_dns1123_subdomain};

/// Validates a new definition with its defaults, without its metadata.
pub(crate) fn validate_definition(definition: &Value) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let mut errors = Vec::new();
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let plural = spec["names"]["plural"].as_str().unwrap_or_default();
    let wanted = format!("{plural}.{}", text("group"));
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    if name != wanted {
        errors.push(FieldError::invalid(
            "metadata.name",
            name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    match text("group") {
        "" => errors.push(FieldError::required("spec.group", "")),
        group => {
            let wrong = is_dns1123_subdomain(group);
            errors.extend(
                wrong
                    .into_iter()
                    .map(|what| FieldError::invalid("spec.group", group, what)),
            );
            if !group.contains('.') {
                errors.push(FieldError::invalid(
                    "spec.group",
                    group,
                    "should be a domain with at least one dot",
                ));
            }
        }
    }
    match text("scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        scope => errors.push(FieldError::not_supported(
            "spec.scope",
            scope,
            &["Cluster", "Namespaced"],
        )),
    }
    validate_names(&spec["names"], &mut errors);
    validate_versions(&spec["versions"], &mut errors);
    errors
}

/// Validates the immutable fields of an established definition.
pub(crate) fn validate_definition_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = validate_definition(new);
    let established = old["status"]["conditions"].as_array().is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Established" && one["status"] == "True")
    });
    if established {
        for pointer in ["/spec/scope", "/spec/names/kind"] {
            frozen(old, new, pointer, &mut errors);
        }
    }
    for pointer in ["/spec/group", "/spec/names/plural"] {
        frozen(old, new, pointer, &mut errors);
    }
    let stored = new["status"]["storedVersions"]
        .as_array()
        .into_iter()
        .flatten();
    let served: Vec<&Value> = new["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| &one["name"])
        .collect();
    for (index, version) in stored
        .enumerate()
        .filter(|(_, version)| !served.contains(version))
    {
        let detail = "missing from spec.versions; the version was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in it and removes it from status.storedVersions";
        let path = format!("status.storedVersions[{index}]");
        errors.push(FieldError::invalid(path, version.clone(), detail));
    }
    errors
}

fn frozen(old: &Value, new: &Value, pointer: &str, errors: &mut Vec<FieldError>) {
    let (before, after) = (old.pointer(pointer), new.pointer(pointer));
    if before != after {
        let path = pointer.trim_start_matches('/').replace('/', ".");
        errors.push(FieldError::invalid(
            path,
            after.cloned().unwrap_or_default(),
            "field is immutable",
        ));
    }
}

fn validate_names(names: &Value, errors: &mut Vec<FieldError>) {
    let mut label = |path: String, text: &str, required: bool| {
        if text.is_empty() {
            if required {
                errors.push(FieldError::required(path, ""));
            }
            return;
        }
        let wrong = is_dns1035_label(text);
        errors.extend(
            wrong
                .into_iter()
                .map(|what| FieldError::invalid(&path, text, what)),
        );
    };
    let text = |field: &str| names[field].as_str().unwrap_or_default();
    label("spec.names.plural".to_owned(), text("plural"), true);
    label("spec.names.singular".to_owned(), text("singular"), false);
    label(
        "spec.names.kind".to_owned(),
        &text("kind").to_lowercase(),
        true,
    );
    label(
        "spec.names.listKind".to_owned(),
        &text("listKind").to_lowercase(),
        true,
    );
    for list in ["shortNames", "categories"] {
        for (index, name) in names[list].as_array().into_iter().flatten().enumerate() {
            label(
                format!("spec.names.{list}[{index}]"),
                name.as_str().unwrap_or_default(),
                true,
            );
        }
    }
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            "spec.names.listKind",
            text("listKind"),
            detail,
        ));
    }
}

fn validate_versions(versions: &Value, errors: &mut Vec<FieldError>) {
    let list = versions.as_array().map_or(&[][..], Vec::as_slice);
    let stored = list
        .iter()
        .filter(|version| version["storage"] == Value::Bool(true))
        .count();
    if stored != 1 {
        let shown = versions.clone();
        errors.push(FieldError::invalid(
            "spec.versions",
            shown,
            "must have exactly one version marked as storage version",
        ));
    }
    for (index, version) in list.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = version["name"].as_str().unwrap_or_default();
        let wrong = is_dns1035_label(name);
        errors.extend(
            wrong
                .into_iter()
                .map(|what| FieldError::invalid(format!("{path}.name"), name, what)),
        );
        if list[..index]
            .iter()
            .any(|other| other["name"] == version["name"])
        {
            errors.push(FieldError::invalid(
                "spec.versions",
                versions.clone(),
                "must contain unique version names",
            ));
        }
        validate_columns(
            &version["additionalPrinterColumns"],
            &format!("{path}.additionalPrinterColumns"),
            errors,
        );
        let at = format!("{path}.schema.openAPIV3Schema");
        match &version["schema"]["openAPIV3Schema"] {
            Value::Null => errors.push(FieldError::required(at, "schemas are required")),
            schema => {
                if schema["type"] != "object" {
                    let found = schema["type"].as_str().unwrap_or_default();
                    errors.push(FieldError::invalid(
                        format!("{at}.type"),
                        found,
                        "must be object at the root",
                    ));
                }
                validate_schema(schema, &at, true, errors);
            }
        }
        validate_scale(
            &version["subresources"]["scale"],
            &format!("{path}.subresources.scale"),
            errors,
        );
    }
}

fn validate_columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 9] = [
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
        "",
    ];
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}]");
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        for field in ["name", "jsonPath"] {
            if text(field).is_empty() {
                errors.push(FieldError::required(format!("{at}.{field}"), ""));
            }
        }
        match text("type") {
            "" => errors.push(FieldError::required(
                format!("{at}.type"),
                format!("must be one of {}", TYPES.join(",")),
            )),
            kind if !TYPES.contains(&kind) => {
                errors.push(FieldError::invalid(
                    format!("{at}.type"),
                    kind,
                    format!("must be one of {}", TYPES.join(",")),
                ));
            }
            _ => {}
        }
        if !FORMATS.contains(&text("format")) {
            let detail = format!("must be one of {}", FORMATS[..8].join(","));
            errors.push(FieldError::invalid(
                format!("{at}.format"),
                text("format"),
                detail,
            ));
        }
    }
}

fn validate_scale(scale: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if scale.is_null() {
        return;
    }
    for (field, prefix, required) in [
        ("specReplicasPath", ".spec.", true),
        ("statusReplicasPath", ".status.", true),
        ("labelSelectorPath", "", false),
    ] {
        let text = scale[field].as_str().unwrap_or_default();
        if text.is_empty() && required {
            errors.push(FieldError::required(format!("{path}.{field}"), ""));
        } else if !text.is_empty() && !text.starts_with(prefix) {
            let detail = format!(
                "should be a json path under {}",
                prefix.trim_end_matches('.')
            );
            errors.push(FieldError::invalid(format!("{path}.{field}"), text, detail));
        }
    }
}

/// Validates a structural schema: it specifies types, does not contradict pruning, and its rules compile.
fn validate_schema(schema: &Value, path: &str, is_root: bool, errors: &mut Vec<FieldError>) {
    if !is_root {
        errors.extend(missing_type(schema, path));
    }
    errors.extend(unsupported_keywords(schema, path));
    validate_list_type(schema, path, errors);
    let rules = schema["x-kubernetes-validations"].as_array();
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = format!("{path}.x-kubernetes-validations[{index}]");
        validate_rule(rule, &at, errors);
    }
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        validate_schema(child, &format!("{path}.properties[{name}]"), false, errors);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            validate_schema(&schema[key], &format!("{path}.{key}"), false, errors);
        }
    }
}

/// A schema below the root has a type, unless it allows several or all.
fn missing_type(schema: &Value, path: &str) -> Option<FieldError> {
    let flag = |name: &str| schema[name] == Value::Bool(true);
    let said = !schema["type"].as_str().unwrap_or_default().is_empty()
        || flag("x-kubernetes-int-or-string")
        || flag("x-kubernetes-preserve-unknown-fields");
    let (_, last) = path.rsplit_once('.').unwrap_or_default();
    let of = if last == "items" {
        "array items"
    } else {
        "object fields"
    };
    (!said).then(|| {
        FieldError::required(
            format!("{path}.type"),
            format!("must not be empty for specified {of}"),
        )
    })
}

/// The keywords of JSON schemas that structural schemas must not have.
fn unsupported_keywords(schema: &Value, path: &str) -> Vec<FieldError> {
    const FORBIDDEN: [&str; 5] = [
        "$ref",
        "definitions",
        "dependencies",
        "patternProperties",
        "additionalItems",
    ];
    let mut errors = Vec::new();
    if schema["type"] == "array" && !schema["items"].is_object() {
        let items = format!("{path}.items");
        errors.push(FieldError::required(items, "must be specified"));
    }
    let mut forbid = |keyword: &str, detail: &str| {
        errors.push(FieldError::forbidden(format!("{path}.{keyword}"), detail));
    };
    for keyword in FORBIDDEN {
        if !schema[keyword].is_null() {
            forbid(keyword, &format!("{keyword} is not supported"));
        }
    }
    if schema["uniqueItems"] == Value::Bool(true) {
        forbid(
            "uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        );
    }
    if schema["properties"].is_object() && schema["additionalProperties"].is_object() {
        forbid(
            "additionalProperties",
            "additionalProperties and properties are mutual exclusive",
        );
    }
    errors
}

fn validate_list_type(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let keys = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .map_or(0, Vec::len);
    match schema["x-kubernetes-list-type"].as_str() {
        Some("map") if keys == 0 => {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(
                format!("{path}.x-kubernetes-list-map-keys"),
                detail,
            ));
        }
        None | Some("atomic" | "set" | "map") => {}
        Some(other) => {
            let at = format!("{path}.x-kubernetes-list-type");
            errors.push(FieldError::not_supported(
                at,
                other,
                &["atomic", "map", "set"],
            ));
        }
    }
}

fn validate_rule(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match rule["rule"].as_str().map(str::trim).unwrap_or_default() {
        "" => errors.push(FieldError::required(
            format!("{path}.rule"),
            "rule is not specified",
        )),
        text => {
            if let Some(error) = compile_error(text) {
                errors.push(FieldError::invalid(
                    format!("{path}.rule"),
                    rule.clone(),
                    format!("compilation failed: {error}"),
                ));
            }
        }
    }
    if rule["message"]
        .as_str()
        .is_some_and(|message| message.trim().is_empty())
    {
        let detail = "message must be non-empty if specified";
        errors.push(FieldError::invalid(
            format!("{path}.message"),
            rule["message"].clone(),
            detail,
        ));
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
