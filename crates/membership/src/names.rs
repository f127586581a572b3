//! The names and labels of objects that join creates.

use fedrs_api::{labels, names};
use serde_json::Value;

/// The label of objects that join created; its value is [`MANAGER`].
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub(crate) const MANAGER: &str = "fedrs-join";

/// The name of the controller's ServiceAccount in a member, and of its roles and bindings. Each federation of each host has
/// its own, so that two can share a member, and a host can be a member of itself.
pub(crate) fn account(host_id: &str, federation: &str) -> String {
    let short: String = host_id.chars().take(8).collect();
    match federation {
        "" => format!("{}-{short}", names::CONTROLLER),
        name => format!("{}-{short}-{name}", names::CONTROLLER),
    }
}

/// The name of the Secret on the host with the kubeconfig of a member.
pub(crate) fn secret(member: &str) -> String {
    format!("member-{member}")
}

/// The federation of a Secret that join created; `None` if it has no label for it.
pub(crate) fn federation(secret: &Value) -> Option<String> {
    let label = secret["metadata"]["labels"][labels::FEDERATION].as_str()?;
    Some(label.to_owned())
}

/// Whether join created `object`.
pub(crate) fn created_by_join(object: &Value) -> bool {
    object["metadata"]["labels"][MANAGED_BY] == MANAGER
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_host_and_federation_has_an_account_of_its_own() {
        let account =
            |federation| super::account("1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809", federation);
        assert_eq!(account(""), "fedrs-controller-1a2b3c4d");
        assert_eq!(account("blue"), "fedrs-controller-1a2b3c4d-blue");
    }
}
