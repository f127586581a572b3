//! Strategic merge patch, for built-in kinds: lists are merged by their merge keys, and directives control the rest.
//!
//! `$patch: replace | delete | merge`, `$retainKeys`, `$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`.

use serde_json::{Map, Value};

use super::error::PatchError;
use super::order::{arrange, identity};
use crate::field::{go_json_kind, go_text};
use crate::schema::{Node, TypeInfo};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";
const ORDER_PREFIX: &str = "$setElementOrder/";

/// Merges `patch` (a JSON object) into `object`, whose type is `info`.
pub(crate) fn strategic_patch(
    object: &mut Value,
    patch: &Value,
    info: &TypeInfo,
) -> Result<(), PatchError> {
    let (Value::Object(fields), Value::Object(patch)) = (&mut *object, patch) else {
        return Err(PatchError::Malformed("invalid JSON document".to_owned()));
    };
    merge_map(fields, patch.clone(), Some(info.root()))
}

fn merge_map(
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    node: Option<Node<'_>>,
) -> Result<(), PatchError> {
    match patch
        .remove(PATCH)
        .as_ref()
        .map(|directive| (directive.as_str(), directive))
    {
        None | Some((Some("merge"), _)) => {}
        Some((Some("replace"), _)) => {
            *object = patch;
            return Ok(());
        }
        Some((Some("delete"), _)) => {
            object.clear();
            return Ok(());
        }
        Some((_, directive)) => return Err(unknown_directive(directive, &patch)),
    }
    retain_keys(object, &mut patch)?;
    order_lists(object, &mut patch, node)?;
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(DELETE_PREFIX) {
            delete_primitives(object, field, &value);
            continue;
        }
        if value.is_null() {
            object.remove(&key);
            continue;
        }
        let child = node.and_then(|node| node.field(&key));
        match object.get_mut(&key) {
            None => {
                object.insert(key, without_directives(value));
            }
            Some(current) => merge_value(current, value, child)?,
        }
    }
    Ok(())
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    let text = directive
        .as_str()
        .map_or_else(|| directive.to_string(), str::to_owned);
    PatchError::Rejected(format!(
        "unknown patch type: {text} in map: {}",
        Value::Object(patch.clone())
    ))
}

fn merge_value(
    current: &mut Value,
    value: Value,
    node: Option<Node<'_>>,
) -> Result<(), PatchError> {
    match (current, value) {
        (Value::Object(fields), Value::Object(patch)) => {
            if node.is_some_and(|node| node.has_patch_strategy("replace")) {
                *fields = patch;
                return Ok(());
            }
            merge_map(fields, patch, node)
        }
        (Value::Array(items), Value::Array(patch))
            if node.is_some_and(|node| node.has_patch_strategy("merge")) =>
        {
            *items = merge_list(items, patch, node)?;
            Ok(())
        }
        (current, value) => {
            *current = value;
            Ok(())
        }
    }
}

/// `$retainKeys`: removes every other field of the object.
fn retain_keys(
    object: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys = directive.as_array().ok_or_else(malformed)?;
    if patch.iter().any(|(key, value)| {
        !key.starts_with('$') && !value.is_null() && !keys.iter().any(|one| one == key)
    }) {
        return Err(malformed());
    }
    object.retain(|key, _| keys.iter().any(|one| one == key));
    Ok(())
}

/// `$deleteFromPrimitiveList/FIELD`: removes these values from the list.
fn delete_primitives(object: &mut Map<String, Value>, field: &str, values: &Value) {
    if let (Some(Value::Array(items)), Value::Array(values)) = (object.get_mut(field), values) {
        items.retain(|item| !values.contains(item));
    }
}

/// `$setElementOrder/FIELD`: merges the list, then sorts it in the given order.
fn order_lists(
    object: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    node: Option<Node<'_>>,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|key| key.starts_with(ORDER_PREFIX))
        .cloned()
        .collect();
    for directive in directives {
        let wanted = match patch.remove(&directive) {
            Some(Value::Array(wanted)) => wanted,
            other => return Err(no_list(&other.unwrap_or_default())),
        };
        let field = &directive[ORDER_PREFIX.len()..];
        let child = node.and_then(|node| node.field(field));
        if let Some(removed) = patch.remove(&format!("{DELETE_PREFIX}{field}")) {
            delete_primitives(object, field, &removed);
        }
        let before = object.get(field).and_then(Value::as_array).cloned();
        let changes = match patch.remove(field) {
            Some(Value::Array(changes)) => Some(changes),
            Some(Value::Null) => {
                object.remove(field);
                continue;
            }
            Some(other) => {
                object.insert(field.to_owned(), other);
                continue;
            }
            None => None,
        };
        let merged = match (before.clone(), changes) {
            (Some(before), Some(changes)) => merge_list(&before, changes, child)?,
            (Some(before), None) => before,
            (None, Some(changes)) => clean_items(changes),
            (None, None) => continue,
        };
        let key = child.and_then(|child| child.patch_merge_key());
        let arranged = arrange(merged, &wanted, before.as_deref().unwrap_or_default(), key);
        object.insert(field.to_owned(), Value::Array(arranged));
    }
    Ok(())
}

fn merge_list(
    before: &[Value],
    patch: Vec<Value>,
    node: Option<Node<'_>>,
) -> Result<Vec<Value>, PatchError> {
    let Some(key) = node.and_then(|node| node.patch_merge_key()) else {
        let mut merged = before.to_vec();
        for value in &patch {
            if !merged.contains(value) {
                merged.push(value.clone());
            }
        }
        return Ok(arrange(merged, &patch, before, None));
    };
    let item_type = node.and_then(|node| node.items());
    let (mut merged, changes) = match split_directives(before, patch, key)? {
        Split::Replace(items) => return Ok(items),
        Split::Merge { kept, changes } => (kept, changes),
    };
    for change in &changes {
        let Value::Object(fields) = change else {
            return Err(PatchError::Rejected(
                "lists of lists are not supported".to_owned(),
            ));
        };
        let wanted = fields.get(key).ok_or_else(|| missing_key(change, key))?;
        match merged
            .iter_mut()
            .find(|item| identity(item, Some(key)) == Some(wanted))
        {
            Some(Value::Object(item)) => merge_map(item, fields.clone(), item_type)?,
            _ => merged.push(without_directives(change.clone())),
        }
    }
    Ok(arrange(merged, &changes, before, Some(key)))
}

fn no_list(found: &Value) -> PatchError {
    let found = match found {
        Value::Object(_) => "map[string]interface {}",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        other => go_json_kind(other),
    };
    PatchError::Broken(format!(
        "expected a []interface {{}}, but received a {found}"
    ))
}

fn missing_key(item: &Value, key: &str) -> PatchError {
    PatchError::Broken(format!(
        "map: {} does not contain declared merge key: {key}",
        go_text(item)
    ))
}

enum Split {
    /// `$patch: replace` among the items: they replace the list.
    Replace(Vec<Value>),
    /// The object's items less the deleted ones, and the items to merge.
    Merge {
        kept: Vec<Value>,
        changes: Vec<Value>,
    },
}

fn split_directives(before: &[Value], patch: Vec<Value>, key: &str) -> Result<Split, PatchError> {
    let mut kept = before.to_vec();
    let mut changes = Vec::new();
    let mut replace = false;
    for mut item in patch {
        let directive = item.as_object_mut().and_then(|fields| fields.remove(PATCH));
        match directive.as_ref().map(|directive| directive.as_str()) {
            None | Some(Some("merge")) => changes.push(item),
            Some(Some("replace")) => replace = true,
            Some(Some("delete")) => {
                let gone = item.get(key).ok_or_else(|| missing_key(&item, key))?;
                kept.retain(|one| identity(one, Some(key)) != Some(gone));
            }
            Some(_) => {
                let fields = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(&directive.unwrap_or_default(), &fields));
            }
        }
    }
    Ok(if replace {
        Split::Replace(changes)
    } else {
        Split::Merge { kept, changes }
    })
}

/// The value of a patch for an absent field.
fn without_directives(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(key, value)| !value.is_null() && !is_directive(key))
                .map(|(key, value)| (key, without_directives(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(clean_items(items)),
        other => other,
    }
}

fn clean_items(items: Vec<Value>) -> Vec<Value> {
    let dropped = |item: &Value| {
        item.get(PATCH)
            .is_some_and(|directive| directive == "delete" || directive == "replace")
    };
    items
        .into_iter()
        .filter(|item| !dropped(item))
        .map(without_directives)
        .collect()
}

fn is_directive(key: &str) -> bool {
    key == PATCH
        || key == RETAIN_KEYS
        || key.starts_with(DELETE_PREFIX)
        || key.starts_with(ORDER_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn patched(mut object: Value, patch: &Value) -> Result<Value, PatchError> {
        strategic_patch(
            &mut object,
            patch,
            &TypeInfo::builtin("", "v1", "Pod").unwrap(),
        )?;
        Ok(object)
    }

    fn containers(names: &[&str]) -> Value {
        let items: Vec<Value> = names
            .iter()
            .map(|name| json!({ "name": name, "image": "old" }))
            .collect();
        json!({ "spec": { "containers": items } })
    }

    fn names(pod: &Value) -> Vec<&str> {
        pod["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn containers_merge_by_name() {
        let patch = json!({ "spec": { "containers": [{ "name": "b", "image": "new" }] } });
        let pod = patched(containers(&["a", "b"]), &patch).unwrap();
        assert_eq!(
            pod["spec"]["containers"],
            json!([{ "name": "a", "image": "old" }, { "name": "b", "image": "new" }])
        );
    }

    #[rstest]
    #[case(json!([{"name": "b", "$patch": "delete"}]), &["a", "c"])]
    #[case(json!([{"$patch": "replace"}, {"name": "x"}]), &["x"])]
    #[case(json!([{"name": "x"}]), &["x", "a", "b", "c"])]
    #[case(json!([{"name": "c"}, {"name": "a"}]), &["b", "c", "a"])]
    fn directives_change_a_list(#[case] items: Value, #[case] expected: &[&str]) {
        let pod = patched(
            containers(&["a", "b", "c"]),
            &json!({ "spec": { "containers": items } }),
        )
        .unwrap();
        assert_eq!(names(&pod), expected);
    }

    #[test]
    fn a_stated_order_is_kept() {
        let patch = json!({ "spec": { "$setElementOrder/containers": [{ "name": "c" }, { "name": "x" }, { "name": "a" }],
            "containers": [{ "name": "x", "image": "new" }] } });
        assert_eq!(
            names(&patched(containers(&["a", "b", "c"]), &patch).unwrap()),
            ["b", "c", "x", "a"]
        );
    }

    #[test]
    fn finalizers_are_a_set() {
        let object = json!({ "metadata": { "finalizers": ["a", "b"] } });
        let patch = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["b", "c"] } });
        assert_eq!(
            patched(object, &patch).unwrap(),
            json!({ "metadata": { "finalizers": ["b", "c"] } })
        );
    }

    #[test]
    fn a_volume_keeps_only_the_named_source() {
        let object = json!({ "spec": { "volumes": [{ "name": "v", "emptyDir": {} }] } });
        let patch = json!({ "spec": { "volumes": [{ "name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": { "path": "/x" } }] } });
        assert_eq!(
            patched(object, &patch).unwrap(),
            json!({ "spec": { "volumes": [{ "name": "v", "hostPath": { "path": "/x" } }] } })
        );
    }

    #[test]
    fn tolerations_are_replaced_and_labels_merge() {
        let object = json!({ "metadata": { "labels": { "a": "1", "b": "2" } }, "spec": { "tolerations": [{ "key": "x" }] } });
        let patch = json!({ "metadata": { "labels": { "a": null, "c": "3" } }, "spec": { "tolerations": [{ "key": "y" }] } });
        let expected = json!({ "metadata": { "labels": { "b": "2", "c": "3" } }, "spec": { "tolerations": [{ "key": "y" }] } });
        assert_eq!(patched(object, &patch).unwrap(), expected);
    }

    #[test]
    fn an_item_without_its_merge_key_is_refused() {
        let error = patched(
            containers(&["a"]),
            &json!({ "spec": { "containers": [{ "image": "x" }] } }),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "map: map[image:x] does not contain declared merge key: name"
        );
    }

    #[test]
    fn a_map_can_be_replaced_or_emptied() {
        let object = json!({ "metadata": { "labels": { "a": "1" }, "annotations": { "x": "y" } } });
        let patch = json!({ "metadata": { "labels": { "$patch": "replace", "b": "2" }, "annotations": { "$patch": "delete" } } });
        assert_eq!(
            patched(object, &patch).unwrap(),
            json!({ "metadata": { "labels": { "b": "2" }, "annotations": {} } })
        );
    }
}
