//! Which namespaces a member takes.

use fedrs_api::{NamespaceScope, names};

use crate::{check::NamespaceState, host_namespaces::HostNamespaces};

/// Whether a member with this scope takes `namespace`. Nothing is ever written in Kubernetes' own namespaces, nor in those
/// `of_controller`, where its accounts are.
pub(crate) fn namespace_state(
    namespace: &str,
    scope: Option<&NamespaceScope>,
    of_controller: [Option<&str>; 2],
    host: &HostNamespaces,
) -> NamespaceState {
    if namespace.starts_with(names::KUBERNETES_NAMESPACES)
        || of_controller.contains(&Some(namespace))
    {
        return NamespaceState::System;
    }
    let Some(scope) = scope else {
        return NamespaceState::Taken;
    };
    let is_named = |names: &Vec<String>| names.iter().any(|name| name == namespace);
    let is_taken = match (&scope.names, &scope.selector) {
        (Some(names), _) => Ok(is_named(names)),
        (None, Some(selector)) => host.selects(selector, namespace),
        (None, None) => Ok(true),
    };
    match is_taken {
        Ok(true) => NamespaceState::Taken,
        Ok(false) => NamespaceState::NotTaken,
        Err(why) => NamespaceState::Unknown(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(namespace: &str, scope: &Value) -> NamespaceState {
        let scope: Option<NamespaceScope> = serde_json::from_value(scope.clone()).unwrap();
        let of_controller = [Some("fedrs-system"), Some("fleet")];
        let host = HostNamespaces::default();
        namespace_state(namespace, scope.as_ref(), of_controller, &host)
    }

    #[test]
    fn s1_system_namespaces_are_never_taken_and_others_as_the_member_says() {
        let names = json!({ "names": ["shop", "kube-system"] });
        for (namespace, scope, expected) in [
            ("shop", Value::Null, NamespaceState::Taken),
            ("shop", names.clone(), NamespaceState::Taken),
            ("blog", names.clone(), NamespaceState::NotTaken),
            ("shop", json!({ "names": [] }), NamespaceState::NotTaken),
            ("kube-system", names, NamespaceState::System),
            ("kube-public", Value::Null, NamespaceState::System),
            ("kubernetes-dashboard", Value::Null, NamespaceState::Taken),
            ("fedrs-system", Value::Null, NamespaceState::System),
            ("fleet", Value::Null, NamespaceState::System),
        ] {
            assert_eq!(state(namespace, &scope), expected, "{namespace} {scope}");
        }
    }

    #[test]
    fn s1_a_selector_decides_nothing_before_the_host_shows_the_namespace() {
        let all = json!({ "selector": {} });
        let unknown = "the host does not show namespace shop yet".to_owned();
        assert_eq!(state("shop", &all), NamespaceState::Unknown(unknown));
        let expression = json!({ "key": "a", "operator": "Near" });
        let invalid = json!({ "selector": { "matchExpressions": [expression] } });
        let NamespaceState::Unknown(why) = state("shop", &invalid) else {
            panic!("an invalid selector selects nothing and excludes nothing");
        };
        assert!(why.starts_with("spec.namespaces.selector"), "{why}");
    }
}
