//! Validation of an object against a structural schema, with the API server's messages.

mod scalars;

use serde_json::{Number, Value};

use self::scalars::{check_number, check_string, limit};
use crate::field::{FieldError, FieldErrorKind, join};

/// Validates `value`, except the parts that are equal in `old`.
pub(super) fn validate(value: &Value, old: Option<&Value>, schema: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(value, old, schema, "", &mut errors);
    errors
}

fn check(
    value: &Value,
    old: Option<&Value>,
    schema: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if old == Some(value) {
        return;
    }
    if value.is_null() && schema.get("nullable") == Some(&Value::Bool(true)) {
        return;
    }
    // A wrong type hides no other error: the API server reports all, in this order.
    check_type(value, schema, path, errors);
    check_combinations(value, schema, path, errors);
    match value {
        Value::String(text) => check_string(text, schema, path, errors),
        Value::Number(number) => check_number(number, schema, path, errors),
        Value::Array(items) => check_list(items, old, schema, path, errors),
        _ => {}
    }
    check_enum(value, schema, path, errors);
    check_object(value, old, schema, path, errors);
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn check_type(value: &Value, schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let found = json_type(value);
    let int_or_string = schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let wanted = match schema.get("type").and_then(Value::as_str) {
        None | Some("") if int_or_string => "integer,string",
        None | Some("") => return,
        Some(wanted) => wanted,
    };
    let fits = wanted
        .split(',')
        .any(|one| one == found || (one == "number" && found == "integer"));
    if !fits {
        // A fraction is no integer of its format.
        let (wanted, found) = match schema.get("format").and_then(Value::as_str) {
            Some(format) if wanted == "integer" && found == "number" => (format, "float64"),
            _ => (wanted, found),
        };
        let detail = format!("{path} in body must be of type {wanted}: \"{found}\"");
        errors.push(FieldError::new(
            FieldErrorKind::TypeInvalid,
            path,
            found,
            detail,
        ));
    }
}

fn check_enum(value: &Value, schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(allowed) = schema
        .get("enum")
        .and_then(Value::as_array)
        .filter(|allowed| !allowed.is_empty())
    else {
        return;
    };
    if allowed.contains(value) {
        return;
    }
    let texts: Vec<String> = allowed
        .iter()
        .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    errors.push(FieldError::not_supported(path, value.clone(), &texts));
}

fn check_list(
    items: &[Value],
    old: Option<&Value>,
    schema: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let count = items.len();
    if let Some(max) = limit(schema, "maxItems").filter(|max| count as u64 > *max) {
        errors.push(FieldError::too_many(path, count, max));
    }
    if let Some(min) = limit(schema, "minItems").filter(|min| (count as u64) < *min) {
        errors.push(FieldError::invalid(
            path,
            count,
            format!("{path} in body should have at least {min} items"),
        ));
    }
    if schema.get("uniqueItems") == Some(&Value::Bool(true))
        && (1..count).any(|index| items[..index].contains(&items[index]))
    {
        errors.push(FieldError::invalid(
            path,
            "",
            format!("{path} in body shouldn't contain duplicates"),
        ));
    }
    if let Some(item_schema) = schema.get("items") {
        for (index, item) in items.iter().enumerate() {
            let before = old.and_then(|old| same_item(old, item, index, schema));
            check(
                item,
                before,
                item_schema,
                &format!("{path}[{index}]"),
                errors,
            );
        }
    }
    check_duplicates(items, schema, path, errors);
}

fn map_keys(schema: &Value) -> Option<Vec<&str>> {
    if schema.get("x-kubernetes-list-type")? != "map" {
        return None;
    }
    Some(
        schema
            .get("x-kubernetes-list-map-keys")?
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .collect(),
    )
}

/// The item of the old list that is the same as this one: by the keys of a list of type `map`, else by position.
pub(super) fn same_item<'a>(
    old: &'a Value,
    item: &Value,
    index: usize,
    schema: &Value,
) -> Option<&'a Value> {
    let old = old.as_array()?;
    match map_keys(schema) {
        Some(keys) => old
            .iter()
            .find(|one| keys.iter().all(|key| one.get(*key) == item.get(*key))),
        None => old.get(index),
    }
}

fn check_duplicates(items: &[Value], schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let keys = map_keys(schema);
    let is_set = schema
        .get("x-kubernetes-list-type")
        .is_some_and(|kind| kind == "set");
    if keys.is_none() && !is_set {
        return;
    }
    let identity = |item: &Value| match &keys {
        Some(keys) => keys
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), item.get(*key)?.clone())))
            .collect(),
        None => item.clone(),
    };
    let mut seen: Vec<Value> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let own = identity(item);
        if seen.contains(&own) {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), own));
        } else {
            seen.push(own);
        }
    }
}

fn check_object(
    value: &Value,
    old: Option<&Value>,
    schema: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Value::Object(fields) = value else { return };
    let count = fields.len();
    if let Some(max) = limit(schema, "maxProperties").filter(|max| count as u64 > *max) {
        errors.push(FieldError::too_many(path, count, max));
    }
    if let Some(min) = limit(schema, "minProperties").filter(|min| (count as u64) < *min) {
        errors.push(FieldError::invalid(
            path,
            count,
            format!("{path} in body should have at least {min} properties"),
        ));
    }
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(join(path, name), ""));
        }
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        let missing = |name: &&str| {
            fields
                .get(*name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty()
        };
        let missing = ["apiVersion", "kind"].into_iter().filter(missing);
        errors.extend(missing.map(|name| FieldError::required(join(path, name), "")));
    }
    let is_root = path.is_empty();
    for (name, child) in fields {
        // Metadata is validated apart, by what every object has to satisfy.
        if is_root && name == "metadata" {
            continue;
        }
        let child_schema = schema
            .get("properties")
            .and_then(|properties| properties.get(name))
            .or_else(|| {
                schema
                    .get("additionalProperties")
                    .filter(|schema| schema.is_object())
            });
        if let Some(child_schema) = child_schema {
            let before = old.and_then(|old| old.get(name));
            check(child, before, child_schema, &join(path, name), errors);
        }
    }
}

fn check_combinations(value: &Value, schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let alternatives = |name: &str| -> Vec<Vec<FieldError>> {
        let schemas = schema
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        schemas.map(|one| errors_of(value, one, path)).collect()
    };
    // The API server names the field in the message only.
    let mut wrong = |words: &str| {
        let words = format!("\"{path}\" must {words}");
        errors.push(FieldError::invalid("<nil>", "", words));
    };
    let any = alternatives("anyOf");
    if !any.is_empty() && any.iter().all(|one| !one.is_empty()) {
        wrong("validate at least one schema (anyOf)");
        errors.extend(any.into_iter().min_by_key(Vec::len).unwrap_or_default());
        return;
    }
    let one = alternatives("oneOf");
    let matching = one.iter().filter(|one| one.is_empty()).count();
    if !one.is_empty() && matching != 1 {
        let found = if matching == 0 {
            "Found none valid".to_owned()
        } else {
            format!("Found {matching} valid alternatives")
        };
        wrong(&format!(
            "validate one and only one schema (oneOf). {found}"
        ));
        if matching == 0 {
            errors.extend(one.into_iter().min_by_key(Vec::len).unwrap_or_default());
        }
        return;
    }
    if schema
        .get("not")
        .is_some_and(|not| errors_of(value, not, path).is_empty())
    {
        wrong("not validate the schema (not)");
    }
    let all = alternatives("allOf");
    if all.iter().any(|one| !one.is_empty()) {
        wrong("validate all the schemas (allOf)");
        errors.extend(all.into_iter().flatten());
    }
}

fn errors_of(value: &Value, schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(value, None, schema, path, &mut errors);
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!({"type": "integer", "maximum": 5}), json!(6), "x: Invalid value: 6: x in body should be less than or equal to 5")]
    #[case(json!({"type": "integer"}), json!("6"), r#"x: Invalid value: "string": x in body must be of type integer: "string""#)]
    #[case(json!({"type": "string", "enum": ["a", "b"]}), json!("c"), r#"x: Unsupported value: "c": supported values: "a", "b""#)]
    #[case(json!({"type": "string", "pattern": "^a+$"}), json!("b"), r#"x: Invalid value: "b": x in body should match '^a+$'"#)]
    #[case(json!({"type": "string", "minLength": 1}), json!(""), r#"x: Invalid value: "": x in body should be at least 1 chars long"#)]
    #[case(json!({"type": "string", "maxLength": 1}), json!("ab"), "x: Too long: may not be more than 1 byte")]
    #[case(json!({"type": "array", "maxItems": 1}), json!([1, 2]), "x: Too many: 2: must have at most 1 item")]
    #[case(json!({"type": "array", "x-kubernetes-list-type": "set"}), json!(["a", "a"]), r#"x[1]: Duplicate value: "a""#)]
    #[case(json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}), json!([{"n": "a"}, {"n": "a", "v": 1}]), r#"x[1]: Duplicate value: {"n":"a"}"#)]
    #[case(json!({"x-kubernetes-int-or-string": true}), json!(true), r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#)]
    #[case(json!({"type": "string", "format": "date-time"}), json!("now"), r#"x: Invalid value: "now": x in body must be of type date-time: "now""#)]
    #[case(json!({"type": "object", "additionalProperties": {"type": "integer"}}), json!({"k": "v"}), r#"x.k: Invalid value: "string": x.k in body must be of type integer: "string""#)]
    #[case(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({"a": 1, "b": 1}), r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#)]
    #[case(json!({"type": "string", "minLength": 1, "pattern": "^a+$"}), json!(""), r#"x: Invalid value: "": x in body should be at least 1 chars long"#)]
    #[case(json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"apiVersion": {"type": "string"}}}), json!({"kind": "Pod"}), "x.apiVersion: Required value")]
    #[case(json!({"type": "object", "x-kubernetes-embedded-resource": true}), json!({"apiVersion": "v1", "kind": ""}), "x.kind: Required value")]
    fn each_keyword_has_its_message(
        #[case] schema: Value,
        #[case] value: Value,
        #[case] message: &str,
    ) {
        let root = json!({ "type": "object", "properties": { "x": schema } });
        let texts: Vec<String> = validate(&json!({ "x": value }), None, &root)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, [message]);
    }

    #[test]
    fn unchanged_invalid_parts_are_accepted() {
        let root = json!({ "type": "object", "properties": { "a": { "type": "integer", "maximum": 1 }, "b": { "type": "integer" } } });
        assert_eq!(
            validate(
                &json!({ "a": 2, "b": 2 }),
                Some(&json!({ "a": 2, "b": 1 })),
                &root
            ),
            []
        );
        assert_eq!(
            validate(&json!({ "a": 3 }), Some(&json!({ "a": 2 })), &root).len(),
            1
        );
    }

    #[test]
    fn a_wrong_type_does_not_hide_a_wrong_value() {
        let root = json!({ "type": "object", "properties": { "a": { "type": "integer", "enum": [1, 2] } } });
        let texts: Vec<String> = validate(&json!({ "a": "x" }), None, &root)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                r#"a: Invalid value: "string": a in body must be of type integer: "string""#,
                r#"a: Unsupported value: "x": supported values: "1", "2""#,
            ]
        );
    }

    #[test]
    fn null_is_rejected_unless_nullable() {
        let root = |nullable: bool| json!({ "type": "object", "properties": { "a": { "type": "string", "nullable": nullable } } });
        assert_eq!(validate(&json!({ "a": null }), None, &root(true)), []);
        assert_eq!(validate(&json!({ "a": null }), None, &root(false)).len(), 1);
    }
}
