//! Which namespaces a member takes.

use fedrs_api::NamespaceScope;

use crate::{check::NamespaceState, host_namespaces::HostNamespaces};

/// The prefix of Kubernetes' own namespaces.
const KUBERNETES: &str = "kube-";

/// Whether a member with this scope takes `namespace`. Nothing is ever written in Kubernetes' own namespaces, nor in those
/// `of_controller`, where its accounts are.
pub(crate) fn namespace_state(
    namespace: &str,
    scope: Option<&NamespaceScope>,
    of_controller: [Option<&str>; 2],
    host: &HostNamespaces,
) -> NamespaceState {
    if namespace.starts_with(KUBERNETES) || of_controller.contains(&Some(namespace)) {
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
        Err(why) => NamespaceState::Unknown(why),
    }
}
