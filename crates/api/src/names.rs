//! Well-known names: the API version, the field manager, and the objects that an installation consists of.

/// The API version of fedrs's kinds.
pub const API_VERSION: &str = "fedrs.dev/v1alpha1";
/// The field manager of every write of the controller.
pub const FIELD_MANAGER: &str = "fedrs";
/// The name of the controller's Lease on the host, and of its ServiceAccount and roles. Objects that exist once for each
/// federation, or once for each host in a member, append `-` and the federation's or the host's name.
pub const CONTROLLER: &str = "fedrs-controller";
/// The name of the ServiceAccount of `fedrs discovery` on the host, and of its Lease. Accounts in members append `-` and the
/// host's name.
pub const DISCOVERY: &str = "fedrs-discovery";
/// The default namespace of the controller on the host, and of its ServiceAccount in members.
pub const SYSTEM_NAMESPACE: &str = "fedrs-system";
/// The readiness gate of pods that a LocalReplicaSet creates: false while a pod is updated in place (L12).
pub const IN_PLACE_UPDATE: &str = "fedrs.dev/InPlaceUpdate";
/// The scheduling gate of pods that a person starts (M7, M12).
pub const START: &str = "fedrs.dev/start";
/// The prefix of Kubernetes' own namespaces, in which nothing is ever written.
pub const KUBERNETES_NAMESPACES: &str = "kube-";
/// The type of a member's Secret. The controller watches Secrets of this type only, and never sees any other.
pub const KUBECONFIG_TYPE: &str = "fedrs.dev/kubeconfig";
/// The key of a member's Secret that holds its kubeconfig.
pub const KUBECONFIG_KEY: &str = "kubeconfig";

/// The name of the Lease and of the Deployment of a federation's controller: each federation on a host has its own.
#[must_use]
pub fn controller_name(federation: &str) -> String {
    match federation {
        "" => CONTROLLER.to_owned(),
        name => format!("{CONTROLLER}-{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::controller_name;

    #[test]
    fn each_federation_has_a_controller_name() {
        assert_eq!(controller_name(""), "fedrs-controller");
        assert_eq!(controller_name("blue"), "fedrs-controller-blue");
    }
}
