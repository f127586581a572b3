//! The objects that make a cluster a member, in their desired state. Pure.
//!
//! ```text
//! member: Namespace, ClusterRole --owns--> ServiceAccount, bindings, Role --token--.
//! host:   Namespace, Secret with a kubeconfig of that account <-------------------'  <-- MemberCluster
//! ```

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use federation_controller::rbac::{ControllerAccount, Manifest};
use fedrs_api::{
    ClusterType, MemberCluster, MemberClusterSpec, NamespaceScope, SecretRef, annotations, labels,
    names::{CONTROLLER, DISCOVERY, KUBECONFIG_KEY, KUBECONFIG_TYPE},
};
use serde_json::{Value, json};

use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    rbac::v1::ClusterRole,
};

use crate::{object::ObjectRef, progress::Progress};

/// The label of objects that join created; its value is [`MANAGER`].
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
const MANAGER: &str = "fedrs-join";

/// The name of the Secret on the host with the kubeconfig of a member.
pub(crate) fn secret_name(member: &str) -> String {
    format!("member-{member}")
}

/// The name of the Secret on the host with which discovery reads a member. No member has this Secret as its own.
pub(crate) fn discovery_secret_name(member: &str) -> String {
    format!("discovery-{member}")
}

/// Whether join created `object`.
pub(crate) fn created_by_join(object: &Value) -> bool {
    object["metadata"]["labels"][MANAGED_BY] == MANAGER
}

/// Which cluster is a member of which host, and under which name.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    /// The member's name.
    pub(crate) name: String,
    /// The federation; empty for the one without a name.
    pub(crate) federation: String,
    /// The namespace of the controller on the host, and of its ServiceAccount in the member.
    pub(crate) namespace: String,
    /// The uid of the host's kube-system.
    pub(crate) host_id: String,
    /// The uid of the member's kube-system.
    pub(crate) cluster_id: String,
    /// The namespaces that the controller has permissions in; all if there is no list.
    pub(crate) namespaces: Option<Vec<String>>,
    /// Whether discovery gets an account of its own in the member.
    pub(crate) discovery: bool,
}

impl Membership {
    /// The name of the controller's ServiceAccount in the member, and of its roles and bindings. Each federation of each host
    /// has its own, so that two can share a member, and a host can be a member of itself.
    pub(crate) fn account(&self) -> String {
        self.account_of(CONTROLLER)
    }

    /// The name of the ServiceAccount of discovery in the member, and of its roles and bindings.
    pub(crate) fn discovery_account(&self) -> String {
        self.account_of(DISCOVERY)
    }

    fn account_of(&self, process: &str) -> String {
        let host: String = self.host_id.chars().take(8).collect();
        let account = format!("{process}-{host}");
        match &*self.federation {
            "" => account,
            federation => format!("{account}-{federation}"),
        }
    }

    /// The federation in the labels of local workloads (F40).
    pub(crate) fn federation_label(&self) -> &str {
        match &*self.federation {
            "" => &self.host_id,
            name => name,
        }
    }

    /// Whether the host is a member of itself.
    pub(crate) fn is_host(&self) -> bool {
        !self.host_id.is_empty() && self.host_id == self.cluster_id
    }

    /// The ServiceAccount and its permissions.
    pub(crate) fn controller_account(&self) -> ControllerAccount {
        ControllerAccount {
            cluster: ClusterType::Member,
            namespace: self.namespace.clone(),
            name: self.account(),
            namespaces: self.namespaces.clone(),
        }
    }

    /// The ClusterRole that owns the other objects in the member: the garbage collector deletes them with it.
    pub(crate) fn owner(&self) -> ObjectRef {
        ObjectRef::cluster_scoped::<ClusterRole>(&self.account())
    }

    /// What the user has to delete in the member.
    pub(crate) fn manual_cleanup(&self) -> Progress {
        Progress::ManualCleanup {
            account: self.account(),
            namespace: self.namespace.clone(),
        }
    }

    /// The namespace, in either cluster.
    pub(crate) fn namespace_ref(&self) -> ObjectRef {
        ObjectRef::cluster_scoped::<Namespace>(&self.namespace)
    }

    /// The Secret on the host.
    pub(crate) fn secret_ref(&self) -> ObjectRef {
        ObjectRef::namespaced::<Secret>(&self.namespace, &secret_name(&self.name))
    }

    /// The Secret of discovery on the host.
    pub(crate) fn discovery_secret_ref(&self) -> ObjectRef {
        let name = discovery_secret_name(&self.name);
        ObjectRef::namespaced::<Secret>(&self.namespace, &name)
    }

    /// The MemberCluster on the host.
    pub(crate) fn member_cluster_ref(&self) -> ObjectRef {
        ObjectRef::cluster_scoped::<MemberCluster>(&self.name)
    }

    /// The namespaces of the member that may have local workloads, if they are listed.
    pub(crate) fn listed_namespaces(&self) -> &[String] {
        self.namespaces.as_deref().unwrap_or_default()
    }

    /// The manifest of a namespace.
    pub(crate) fn namespace_manifest(name: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": name, "labels": { MANAGED_BY: MANAGER } },
        })
    }

    /// The label selector of the objects in the member besides namespaces and workloads.
    pub(crate) fn account_selector(&self) -> String {
        let member = labels::MEMBER_CLUSTER;
        format!("{MANAGED_BY}={MANAGER},{member}={}", self.name)
    }

    /// The labels of the objects in the member besides namespaces and workloads.
    pub(crate) fn member_labels(&self) -> [(&'static str, String); 2] {
        [
            (MANAGED_BY, MANAGER.to_owned()),
            (labels::MEMBER_CLUSTER, self.name.clone()),
        ]
    }

    /// The references to the [owner](Self::owner), which has this uid.
    pub(crate) fn owner_references(&self, uid: &str) -> Value {
        json!([{
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": self.account(),
            "uid": uid,
        }])
    }

    /// The manifests in the member besides namespaces, in the order of creation. The first is the owner of the others and
    /// has the uid `owner`.
    pub(crate) fn member_manifests(&self, owner: &str) -> Vec<Value> {
        let mut objects = self.labelled(&self.controller_account().manifests());
        for object in &mut objects {
            if object["kind"] != "ClusterRole" {
                object["metadata"]["ownerReferences"] = self.owner_references(owner);
            }
        }
        objects
    }

    /// The objects besides namespaces, with the labels of this member.
    pub(crate) fn labelled(&self, manifests: &[Manifest]) -> Vec<Value> {
        let mut objects: Vec<Value> = manifests.iter().map(Manifest::to_value).collect();
        objects.retain(|object| object["kind"] != "Namespace");
        for object in &mut objects {
            object["metadata"]["labels"] = json!(BTreeMap::from(self.member_labels()));
        }
        objects
    }

    /// The manifest of the Secret on the host, with or without a kubeconfig.
    pub(crate) fn secret_manifest(&self, kubeconfig: Option<&str>) -> Value {
        self.secret_of(&secret_name(&self.name), kubeconfig)
    }

    /// The manifest of a Secret on the host, with or without a kubeconfig.
    pub(crate) fn secret_of(&self, name: &str, kubeconfig: Option<&str>) -> Value {
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {
                    MANAGED_BY: MANAGER,
                    labels::MEMBER_CLUSTER: self.name,
                    labels::CLUSTER_ID: self.cluster_id,
                },
                "annotations": { annotations::RENEW_TOKEN: "true" },
            },
            "type": KUBECONFIG_TYPE,
        });
        if !self.federation.is_empty() {
            secret["metadata"]["labels"][labels::FEDERATION] = (*self.federation).into();
        }
        if let Some(kubeconfig) = kubeconfig {
            secret["data"] = json!({ KUBECONFIG_KEY: STANDARD.encode(kubeconfig) });
        }
        secret
    }

    /// The manifest of the MemberCluster, with the user's `labels`.
    pub(crate) fn member_cluster_manifest(&self, labels: &BTreeMap<String, String>) -> Value {
        let mut labels = labels.clone();
        labels.insert(labels::CLUSTER_ID.to_owned(), self.cluster_id.clone());
        let spec = MemberClusterSpec {
            secret_ref: Some(SecretRef {
                name: secret_name(&self.name),
            }),
            discovery_secret_ref: self.discovery.then(|| SecretRef {
                name: discovery_secret_name(&self.name),
            }),
            federation: self.federation.clone(),
            namespaces: self.namespaces.clone().map(|names| NamespaceScope {
                names: Some(names),
                selector: None,
            }),
            ..MemberClusterSpec::default()
        };
        json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "MemberCluster",
            "metadata": { "name": self.name, "labels": labels },
            "spec": spec,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_role_owns_all_other_objects_in_the_member() {
        let membership = Membership {
            name: "eu".to_owned(),
            federation: String::new(),
            namespace: "system".to_owned(),
            host_id: "1a2b3c4d-5e6f".to_owned(),
            cluster_id: "c".to_owned(),
            namespaces: Some(vec!["shop".to_owned()]),
            discovery: false,
        };
        let objects = membership.member_manifests("owner");
        assert_eq!(objects.len(), 7);
        assert_eq!(objects[0]["kind"], "ClusterRole", "the owner comes first");
        for object in &objects {
            assert_eq!(object["metadata"]["name"], "fedrs-controller-1a2b3c4d");
            assert_eq!(object["metadata"]["labels"][labels::MEMBER_CLUSTER], "eu");
            let owner = object.pointer("/metadata/ownerReferences/0/uid");
            assert_eq!(owner.is_some(), object["kind"] != "ClusterRole");
        }
    }

    #[test]
    fn each_host_and_federation_has_an_account_of_its_own() {
        let account = |federation: &str| {
            let membership = Membership {
                name: String::new(),
                federation: federation.to_owned(),
                namespace: String::new(),
                host_id: "1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809".to_owned(),
                cluster_id: String::new(),
                namespaces: None,
                discovery: false,
            };
            membership.account()
        };
        assert_eq!(account(""), "fedrs-controller-1a2b3c4d");
        assert_eq!(account("blue"), "fedrs-controller-1a2b3c4d-blue");
    }
}
