//! JSON patch (RFC 6902) with the API server's limits and messages.

use json_patch::{Patch, PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::PatchError;

/// The most operations of one patch.
const OPERATIONS_MAX: usize = 10_000;

/// Applies the operations in `patch` (a JSON list) to `object`; on an error the object is as it was.
pub fn json_patch(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations: Patch = serde_json::from_value(patch.clone())
        .map_err(|error| PatchError::Malformed(format!("error decoding patch: {error}")))?;
    if operations.0.len() > OPERATIONS_MAX {
        let count = operations.0.len();
        let words = "The allowed maximum operations in a JSON patch is";
        return Err(PatchError::TooLarge(format!(
            "{words} {OPERATIONS_MAX}, got {count}"
        )));
    }
    json_patch::patch(object, &operations).map_err(|error| {
        let operation = operations.0.get(error.operation);
        PatchError::Rejected(
            operation.map_or_else(|| error.to_string(), |it| explain(it, &error.kind)),
        )
    })
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
    #[case(json!([{"op": "replace", "path": "/spec/size", "value": 2}]), PatchError::Rejected("replace operation does not apply: doc is missing key: /spec/size: missing value".into()))]
    fn what_does_not_fit_changes_nothing(#[case] patch: Value, #[case] error: PatchError) {
        let mut object = json!({ "spec": { "replicas": 1 } });
        assert_eq!(json_patch(&mut object, &patch), Err(error));
        assert_eq!(object, json!({ "spec": { "replicas": 1 } }));
    }

    #[test]
    fn operations_apply_in_order() {
        let mut object = json!({ "list": [1, 3] });
        let patch = json!([{ "op": "add", "path": "/list/1", "value": 2 }, { "op": "remove", "path": "/list/0" }]);
        json_patch(&mut object, &patch).unwrap();
        assert_eq!(object, json!({ "list": [2, 3] }));
    }
}
