//! JSON merge patch (RFC 7396).

use serde_json::Value;

use super::error::PatchError;

/// Merges `patch` (a JSON object) into `object`; `null` removes.
pub(crate) fn merge_patch(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    if !patch.is_object() {
        let found = crate::field::go_json_kind(patch);
        let words = "json: cannot unmarshal";
        let detail = format!(
            "error decoding patch: {words} {found} into Go value of type map[string]interface {{}}"
        );
        return Err(PatchError::Malformed(detail));
    }
    json_patch::merge(object, patch);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_removes_and_lists_are_replaced() {
        let mut object = json!({ "a": { "b": 1, "c": 2 }, "list": [1, 2] });
        merge_patch(
            &mut object,
            &json!({ "a": { "b": null, "d": 3 }, "list": [3] }),
        )
        .unwrap();
        assert_eq!(object, json!({ "a": { "c": 2, "d": 3 }, "list": [3] }));
    }

    #[test]
    fn a_list_is_no_patch() {
        assert!(matches!(
            merge_patch(&mut json!({}), &json!([])),
            Err(PatchError::Malformed(_))
        ));
    }
}
