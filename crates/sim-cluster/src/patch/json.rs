//! JSON patch (RFC 6902) with the API server's limits and messages.

use json_patch::{AddOperation, Patch, PatchErrorKind, PatchOperation};
use serde::Deserialize as _;
use serde_json::Value;

use super::error::PatchError;
use crate::field::go_json_kind;

/// The most operations of one patch.
const OPERATIONS_MAX: usize = 10_000;

/// Applies the operations in `patch` (a JSON list) to `object`; on an error the object is as it was.
pub(crate) fn json_patch(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    if !patch.is_array() {
        let found = go_json_kind(patch);
        return Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
        )));
    }
    let operations =
        Patch::deserialize(patch).map_err(|error| PatchError::Rejected(error.to_string()))?;
    if operations.0.len() > OPERATIONS_MAX {
        let count = operations.0.len();
        let words = "The allowed maximum operations in a JSON patch is";
        return Err(PatchError::TooLarge(format!(
            "{words} {OPERATIONS_MAX}, got {count}"
        )));
    }
    let mut changed = object.clone();
    for operation in operations.0 {
        if tests_absence(&operation, &changed) {
            continue;
        }
        let operation = lenient(operation, &changed);
        json_patch::patch(&mut changed, std::slice::from_ref(&operation))
            .map_err(|error| PatchError::Rejected(explain(&operation, &error.kind)))?;
    }
    *object = changed;
    Ok(())
}

/// The API server's library takes a test for null as a test that the field is absent.
fn tests_absence(operation: &PatchOperation, object: &Value) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    let path = test.path.to_string();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let parent = object.pointer(parent).and_then(Value::as_object);
    test.value.is_null() && parent.is_some() && object.pointer(&path).is_none()
}

/// The API server's library replaces a field that is not there: it adds it.
fn lenient(operation: PatchOperation, object: &Value) -> PatchOperation {
    let PatchOperation::Replace(replace) = operation else {
        return operation;
    };
    let text = replace.path.to_string();
    let parent = text.rsplit_once('/').map(|(parent, _)| parent);
    let is_new_field = parent
        .and_then(|parent| object.pointer(parent))
        .is_some_and(|parent| parent.is_object() && object.pointer(&text).is_none());
    if is_new_field {
        PatchOperation::Add(AddOperation {
            path: replace.path,
            value: replace.value,
        })
    } else {
        PatchOperation::Replace(replace)
    }
}

fn explain(operation: &PatchOperation, kind: &PatchErrorKind) -> String {
    let path = operation.path().to_string();
    let key = path.rsplit('/').next().unwrap_or_default();
    match (operation, kind) {
        (_, PatchErrorKind::TestFailed) => format!("testing value {path} failed: test failed"),
        (PatchOperation::Test(_), _) => format!("testing path {path} failed: missing value"),
        (PatchOperation::Remove(_), _) => {
            format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
            )
        }
        (PatchOperation::Replace(_), _) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        (PatchOperation::Add(_), _) => {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        (PatchOperation::Move(_), _) => format!("error in move for path: '{key}': missing value"),
        (PatchOperation::Copy(_), _) => format!("error in copy for path: '{key}': missing value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(json!([{"op": "test", "path": "/spec/replicas", "value": 2}]), PatchError::Rejected("testing value /spec/replicas failed: test failed".into()))]
    #[case(json!([{"op": "replace", "path": "/size/x", "value": 2}]), PatchError::Rejected("replace operation does not apply: doc is missing key: /size/x: missing value".into()))]
    #[case(json!([{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]), PatchError::Rejected("error in remove for path: '/b': Unable to remove nonexistent key: b: missing value".into()))]
    fn a_patch_that_does_not_apply_changes_nothing(
        #[case] patch: Value,
        #[case] error: PatchError,
    ) {
        let mut object = json!({ "spec": { "replicas": 1 } });
        assert_eq!(json_patch(&mut object, &patch), Err(error));
        assert_eq!(object, json!({ "spec": { "replicas": 1 } }));
    }

    #[test]
    fn a_test_for_null_passes_if_the_field_is_absent() {
        let mut object = json!({ "spec": { "replicas": 1 } });
        let test = |path| json!([{ "op": "test", "path": path, "value": null }]);
        assert_eq!(json_patch(&mut object, &test("/spec/paused")), Ok(()));
        for present_or_without_parent in ["/spec/replicas", "/status/replicas"] {
            assert!(json_patch(&mut object, &test(present_or_without_parent)).is_err());
        }
    }

    #[test]
    fn operations_apply_in_order() {
        let mut object = json!({ "list": [1, 3] });
        let patch = json!([
            { "op": "add", "path": "/list/1", "value": 2 }, { "op": "remove", "path": "/list/0" },
            { "op": "replace", "path": "/new", "value": 4 },
        ]);
        json_patch(&mut object, &patch).unwrap();
        assert_eq!(object, json!({ "list": [2, 3], "new": 4 }));
    }
}
