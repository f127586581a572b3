//! The built-in kinds, as `kubectl api-resources` lists them.

use std::sync::Arc;

use super::kind::{Kind, KindInfo, Subresource};

/// One row of the table below.
struct Row {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    subresources: &'static [&'static str],
    /// The collection of its objects, if not its own group and plural.
    storage: Option<&'static str>,
}

impl Row {
    fn to_kind(&self) -> Kind {
        let group_resource = if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        };
        Kind::new(KindInfo {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            namespaced: self.namespaced,
            subresources: (self.subresources.iter())
                .map(|name| self.subresource(name))
                .collect(),
            storage: Arc::from(self.storage.map_or(group_resource, str::to_owned)),
            custom: None,
        })
    }

    fn subresource(&self, name: &str) -> Subresource {
        let (kind, group_version) = match name {
            "scale" => ("Scale", Some(("autoscaling", "v1"))),
            "eviction" => ("Eviction", Some(("policy", "v1"))),
            "token" => ("TokenRequest", Some(("authentication.k8s.io", "v1"))),
            "binding" => ("Binding", None),
            _ => (self.kind, None),
        };
        Subresource {
            name: name.to_owned(),
            kind: kind.to_owned(),
            group_version: group_version
                .map(|(group, version)| (group.to_owned(), version.to_owned())),
        }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

macro_rules! builtin_kinds {
    ($($(#[$doc:meta])* $name:ident = $group:literal $version:literal $plural:literal $kind:literal
        $namespaced:ident [$($short:literal)*] [$($category:literal)*] [$($subresource:literal)*]
        $(stored as $storage:literal)?;)*) => {
        /// The built-in kinds by name.
        pub mod kinds {
            use std::sync::LazyLock;
            use super::{Kind, Row};

            $($(#[$doc])* pub static $name: LazyLock<Kind> = LazyLock::new(|| Row {
                group: $group, version: $version, plural: $plural, kind: $kind,
                namespaced: builtin_kinds!(@ $namespaced),
                short_names: &[$($short),*], categories: &[$($category),*],
                subresources: &[$($subresource),*],
                storage: None$(.or(Some($storage)))?,
            }.to_kind());)*

            /// All of them, in the order of discovery.
            pub fn all() -> Vec<Kind> {
                vec![$($name.clone()),*]
            }
        }
    };
    (@ namespaced) => { true };
    (@ cluster) => { false };
}

builtin_kinds! {
    /// Config maps.
    CONFIG_MAPS = "" "v1" "configmaps" "ConfigMap" namespaced ["cm"] [] [];
    /// Endpoints of a service.
    ENDPOINTS = "" "v1" "endpoints" "Endpoints" namespaced ["ep"] [] [];
    /// Events.
    EVENTS = "" "v1" "events" "Event" namespaced ["ev"] [] [];
    /// Limits and defaults for a namespace.
    LIMIT_RANGES = "" "v1" "limitranges" "LimitRange" namespaced ["limits"] [] [];
    /// Namespaces.
    NAMESPACES = "" "v1" "namespaces" "Namespace" cluster ["ns"] [] ["finalize" "status"];
    /// Nodes.
    NODES = "" "v1" "nodes" "Node" cluster ["no"] [] ["status"];
    /// Requests for storage.
    PERSISTENT_VOLUME_CLAIMS = "" "v1" "persistentvolumeclaims" "PersistentVolumeClaim" namespaced ["pvc"] [] ["status"];
    /// Storage.
    PERSISTENT_VOLUMES = "" "v1" "persistentvolumes" "PersistentVolume" cluster ["pv"] [] ["status"];
    /// Pods.
    PODS = "" "v1" "pods" "Pod" namespaced ["po"] ["all"] ["binding" "eviction" "resize" "status"];
    /// Templates of pods.
    POD_TEMPLATES = "" "v1" "podtemplates" "PodTemplate" namespaced [] [] [];
    /// Replication controllers; stored only.
    REPLICATION_CONTROLLERS = "" "v1" "replicationcontrollers" "ReplicationController" namespaced ["rc"] ["all"] ["scale" "status"];
    /// Quotas of a namespace.
    RESOURCE_QUOTAS = "" "v1" "resourcequotas" "ResourceQuota" namespaced ["quota"] [] ["status"];
    /// Secrets.
    SECRETS = "" "v1" "secrets" "Secret" namespaced [] [] [];
    /// Service accounts.
    SERVICE_ACCOUNTS = "" "v1" "serviceaccounts" "ServiceAccount" namespaced ["sa"] [] ["token"];
    /// Services; stored only.
    SERVICES = "" "v1" "services" "Service" namespaced ["svc"] ["all"] ["status"];
    /// Histories of daemon and stateful sets.
    CONTROLLER_REVISIONS = "apps" "v1" "controllerrevisions" "ControllerRevision" namespaced [] [] [];
    /// Daemon sets; stored only.
    DAEMON_SETS = "apps" "v1" "daemonsets" "DaemonSet" namespaced ["ds"] ["all"] ["status"];
    /// Deployments.
    DEPLOYMENTS = "apps" "v1" "deployments" "Deployment" namespaced ["deploy"] ["all"] ["scale" "status"];
    /// Replica sets.
    REPLICA_SETS = "apps" "v1" "replicasets" "ReplicaSet" namespaced ["rs"] ["all"] ["scale" "status"];
    /// Stateful sets; stored only.
    STATEFUL_SETS = "apps" "v1" "statefulsets" "StatefulSet" namespaced ["sts"] ["all"] ["scale" "status"];
    /// Events of `events.k8s.io`, stored with the core ones.
    EVENTS_V1 = "events.k8s.io" "v1" "events" "Event" namespaced ["ev"] [] [] stored as "events";
    /// The user of the request.
    SELF_SUBJECT_REVIEWS = "authentication.k8s.io" "v1" "selfsubjectreviews" "SelfSubjectReview" cluster [] [] [];
    /// Whether the user of the request is allowed one action.
    SELF_SUBJECT_ACCESS_REVIEWS = "authorization.k8s.io" "v1" "selfsubjectaccessreviews" "SelfSubjectAccessReview" cluster [] [] [];
    /// The permissions of the user of the request.
    SELF_SUBJECT_RULES_REVIEWS = "authorization.k8s.io" "v1" "selfsubjectrulesreviews" "SelfSubjectRulesReview" cluster [] [] [];
    /// Whether a user is allowed one action.
    SUBJECT_ACCESS_REVIEWS = "authorization.k8s.io" "v1" "subjectaccessreviews" "SubjectAccessReview" cluster [] [] [];
    /// Autoscalers; stored only.
    HORIZONTAL_POD_AUTOSCALERS = "autoscaling" "v2" "horizontalpodautoscalers" "HorizontalPodAutoscaler" namespaced ["hpa"] ["all"] ["status"];
    /// Autoscalers of `autoscaling/v1`, stored with the v2 ones.
    HORIZONTAL_POD_AUTOSCALERS_V1 = "autoscaling" "v1" "horizontalpodautoscalers" "HorizontalPodAutoscaler" namespaced ["hpa"] ["all"] ["status"]
        stored as "horizontalpodautoscalers.autoscaling";
    /// Disruption budgets.
    POD_DISRUPTION_BUDGETS = "policy" "v1" "poddisruptionbudgets" "PodDisruptionBudget" namespaced ["pdb"] [] ["status"];
    /// Bindings of cluster roles.
    CLUSTER_ROLE_BINDINGS = "rbac.authorization.k8s.io" "v1" "clusterrolebindings" "ClusterRoleBinding" cluster [] [] [];
    /// Cluster roles.
    CLUSTER_ROLES = "rbac.authorization.k8s.io" "v1" "clusterroles" "ClusterRole" cluster [] [] [];
    /// Bindings of roles.
    ROLE_BINDINGS = "rbac.authorization.k8s.io" "v1" "rolebindings" "RoleBinding" namespaced [] [] [];
    /// Roles.
    ROLES = "rbac.authorization.k8s.io" "v1" "roles" "Role" namespaced [] [] [];
    /// Storage classes; stored only.
    STORAGE_CLASSES = "storage.k8s.io" "v1" "storageclasses" "StorageClass" cluster ["sc"] [] [];
    /// Mutating webhooks; stored only, never called.
    MUTATING_WEBHOOK_CONFIGURATIONS = "admissionregistration.k8s.io" "v1" "mutatingwebhookconfigurations" "MutatingWebhookConfiguration" cluster [] ["api-extensions"] [];
    /// Validating webhooks; stored only, never called.
    VALIDATING_WEBHOOK_CONFIGURATIONS = "admissionregistration.k8s.io" "v1" "validatingwebhookconfigurations" "ValidatingWebhookConfiguration" cluster [] ["api-extensions"] [];
    /// Definitions of custom kinds.
    CUSTOM_RESOURCE_DEFINITIONS = "apiextensions.k8s.io" "v1" "customresourcedefinitions" "CustomResourceDefinition" cluster ["crd" "crds"] ["api-extensions"] ["status"];
    /// Priority classes.
    PRIORITY_CLASSES = "scheduling.k8s.io" "v1" "priorityclasses" "PriorityClass" cluster ["pc"] [] [];
    /// Leases: locks and heartbeats.
    LEASES = "coordination.k8s.io" "v1" "leases" "Lease" namespaced [] [] [];
    /// Slices of a service's endpoints.
    ENDPOINT_SLICES = "discovery.k8s.io" "v1" "endpointslices" "EndpointSlice" namespaced [] [] [];
}
