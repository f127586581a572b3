//! Validation of roles and bindings.

use serde_json::Value;

use crate::field::FieldError;

/// Validates the rules of a role.
pub(super) fn validate_role(object: &Value) -> Vec<FieldError> {
    let rules = object["rules"].as_array().into_iter().flatten();
    let wrong = rules.enumerate();
    wrong
        .flat_map(|(index, rule)| validate_rule(rule, &format!("rules[{index}]")))
        .collect()
}

fn validate_rule(rule: &Value, path: &str) -> Vec<FieldError> {
    let is_empty = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
    let mut errors = Vec::new();
    let mut require = |field: &str, detail: &str| {
        if is_empty(field) {
            errors.push(FieldError::required(format!("{path}.{field}"), detail));
        }
    };
    require("verbs", "verbs must contain at least one value");
    if is_empty("nonResourceURLs") {
        require(
            "apiGroups",
            "resource rules must supply at least one api group",
        );
        require(
            "resources",
            "resource rules must supply at least one resource",
        );
    }
    errors
}

/// Validates the role reference of a binding.
pub(super) fn validate_role_ref(kind: &str, object: &Value) -> Vec<FieldError> {
    let supported: &[&str] = if kind == "RoleBinding" {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    let given = object["roleRef"]["kind"].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !supported.contains(&given) {
        errors.push(FieldError::not_supported("roleRef.kind", given, supported));
    }
    if object["roleRef"]["name"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }), &[])]
    #[case(json!({ "verbs": ["get"], "nonResourceURLs": ["/metrics"] }), &[])]
    #[case(json!({ "verbs": [], "resources": ["pods"] }), &["rules[0].verbs", "rules[0].apiGroups"])]
    #[case(json!({ "verbs": ["get"] }), &["rules[0].apiGroups", "rules[0].resources"])]
    fn a_rule_has_verbs_and_targets(#[case] rule: Value, #[case] wrong: &[&str]) {
        let errors = validate_role(&json!({ "rules": [rule] }));
        let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(paths, wrong);
    }

    #[rstest]
    #[case("RoleBinding", "Role", "r", 0)]
    #[case("ClusterRoleBinding", "Role", "r", 1)]
    #[case("RoleBinding", "Foo", "", 2)]
    fn a_binding_names_a_role(
        #[case] binding: &str,
        #[case] kind: &str,
        #[case] name: &str,
        #[case] wrong: usize,
    ) {
        let object = json!({ "roleRef": { "kind": kind, "name": name } });
        assert_eq!(validate_role_ref(binding, &object).len(), wrong);
    }
}
