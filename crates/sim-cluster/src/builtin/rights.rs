//! Validation of roles and bindings.

use crate::validation::Field;

/// Validates the rules of a role.
pub(super) fn validate_role(role: &Field<'_>) {
    for rule in role.field("rules").items() {
        let require = |field: &str, detail: &str| {
            if rule.field(field).len() == 0 {
                rule.field(field).required(detail);
            }
        };
        require("verbs", "verbs must contain at least one value");
        if rule.field("nonResourceURLs").len() == 0 {
            require(
                "apiGroups",
                "resource rules must supply at least one api group",
            );
            require(
                "resources",
                "resource rules must supply at least one resource",
            );
        }
    }
}

/// Validates the role that a binding refers to.
pub(super) fn validate_role_ref(kind: &str, binding: &Field<'_>) {
    let supported: &[&str] = if kind == "RoleBinding" {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    let role = binding.field("roleRef");
    if !supported.contains(&role.field("kind").text()) {
        role.field("kind").not_supported(supported);
    }
    role.field("name").require_text("");
}
