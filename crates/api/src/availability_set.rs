//! The AvailabilitySet: how many of an application's pods may be unreachable at once, over all members together (A1, A2).
//!
//! The controller of the host counts, and lends parts of the budget to members: by a PodDisruptionBudget there, or by a
//! [`DisruptionLimit`] on LocalReplicaSets, whose controller has a PodDisruptionBudget for each of them.

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, LabelSelector},
    util::intstr::IntOrString,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    annotations,
    closed_set::closed_set,
    compact::is_default,
    deployment_strategy::max_unavailable_schema,
    rules::{IS_NO_NAME, NAME_RULE, immutable},
};

closed_set! {
    /// What can fail as a whole (A2).
    pub enum DomainType {
        /// A node.
        Node,
        /// The nodes with one value of the label of racks.
        Rack,
        /// The nodes with one value of the label of zones: a data centre.
        Zone,
        /// A member cluster.
        Cluster,
    }
}

closed_set! {
    /// What limits evictions in a member.
    pub enum LoanKind {
        /// The PodDisruptionBudget of the AvailabilitySet, or of one that selects its pods and more.
        PodDisruptionBudget,
        /// A LocalReplicaSet, by its own PodDisruptionBudget.
        LocalReplicaSet,
        /// A FederatedDeployment of the host, whose rollouts keep to it in all clusters together.
        FederatedDeployment,
    }
}

/// How many of an application's pods may be unreachable at once.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "AvailabilitySet",
    plural = "availabilitysets",
    shortname = "avset",
    namespaced,
    doc = "How many of an application's pods may be unreachable at once, over all member clusters together.",
    status = "AvailabilitySetStatus",
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Whether at most as many pods as the budget says are unreachable."
    ),
    printcolumn(
        name = "Pods",
        type_ = "integer",
        json_path = ".status.pods",
        description = "The pods that count."
    ),
    printcolumn(
        name = "Unreachable",
        type_ = "integer",
        json_path = ".status.unreachable",
        description = "Those of them that can't be reached."
    ),
    printcolumn(
        name = "Budget",
        type_ = "string",
        json_path = ".spec.budget",
        description = "How many may be."
    ),
    printcolumn(
        name = "Left",
        type_ = "integer",
        json_path = ".status.budgetLeft",
        description = "How many more may become unreachable."
    ),
    printcolumn(
        name = "Satisfiable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Satisfiable\")].status",
        description = "Whether it can be available with so many pods."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].reason",
        description = "The reason of the Available condition.",
        priority = 1
    ),
    validation = Rule::new(NAME_RULE).message(IS_NO_NAME),
    derive = "PartialEq"
)]
#[x_kube(
    validation = Rule::new(SELECTS_SOME)
        .message("must not be empty: it would select all pods of the namespace")
        .field_path(".selector")
)]
#[x_kube(
    validation = Rule::new("self.budget != 0 && self.budget != '0%'")
        .message(NO_BUDGET)
        .field_path(".budget")
)]
#[serde(rename_all = "camelCase")]
pub struct AvailabilitySetSpec {
    /// Selects pods of the namespace in all members. Pods with the label `fedrs.dev/enabled: "false"`, and those that have ended or are being
    /// removed, do not count.
    pub selector: LabelSelector,
    /// The pods that may be unreachable at once: a number, or a percentage of the pods, rounded up; at least 1. From 20 pods on at least
    /// 5 % of them.
    #[schemars(schema_with = "max_unavailable_schema")]
    pub budget: IntOrString,
    /// The keys of the labels of nodes that say in which rack and zone a node is.
    #[serde(default)]
    pub domain_labels: DomainLabels,
    /// Whether the budget is lent to one cluster at a time (M16), so that evictions, updates and migrations never happen in two clusters at
    /// once. Defaults to false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub one_cluster_at_a_time: bool,
    /// The federation whose members it is about (F40). Defaults to the federation without a name; immutable, for another federation does
    /// not know what was lent.
    // Without a default, the rule would not run when the field appears or disappears.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"),
        extend("default" = "", "x-kubernetes-validations" = immutable("federation"))
    )]
    pub federation: String,
}

/// Why a budget of nothing is invalid.
pub(crate) const NO_BUDGET: &str = "must be at least 1: no pod could ever be moved or updated";
/// An empty selector would select everything.
const SELECTS_SOME: &str = "(has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0) \
    || (has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)";
/// The most domains of one type that `status.domains` names.
pub const DOMAINS_SHOWN_MAX: usize = 20;

/// The keys of labels of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainLabels {
    /// Nodes with one value of it are in one rack, if they are in one zone, too. Defaults to `topology.kubernetes.io/rack`.
    #[schemars(length(min = 1, max = 317))]
    pub rack: String,
    /// Nodes with one value of it are in one data centre, also those of several clusters. Defaults to `topology.kubernetes.io/zone`.
    #[schemars(length(min = 1, max = 317))]
    pub zone: String,
}

impl Default for DomainLabels {
    fn default() -> Self {
        Self {
            rack: "topology.kubernetes.io/rack".to_owned(),
            zone: "topology.kubernetes.io/zone".to_owned(),
        }
    }
}

/// Whether the set is available, and what it has lent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AvailabilitySetStatus {
    /// The generation of the spec that this status was decided for; -1 before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The pods that count, with those that their controllers have not created yet. Of a cluster that does not answer, as many as there
    /// were.
    pub pods: i32,
    /// Those of them that are ready, on ready nodes, in clusters that answer.
    pub available: i32,
    /// The others.
    pub unreachable: i32,
    /// `spec.budget` as a number.
    pub budget: i32,
    /// How many more pods may become unreachable; 0 if the set can't be available.
    pub budget_left: i32,
    /// What would happen if a node, a rack, a zone or a cluster failed.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainStatus>,
    /// The clusters that have pods of the set, or to which something is lent, by name.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<AvailabilityCluster>,
    /// What is lent to rollouts of FederatedDeployments, by name: the pods that may be unavailable in all clusters together.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<Loan>,
    /// `Accepted`, `Satisfiable`, `Available`, `MembersReachable` and, while evictions are not limited, `EvictionsNotLimited`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What would happen if a domain of one type failed, while nothing else does (A2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainStatus {
    /// The type.
    #[serde(rename = "type")]
    pub type_: DomainType,
    /// The domains that the nodes of all clusters are in.
    #[serde(default)]
    pub domains: i32,
    /// Pods on nodes without the label, of which it is not known what they fail with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unlabeled_pods: i32,
    /// The domains with more pods than the budget: the set breaks if one of them fails. At most 20, those with the most pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub breaking: Vec<DomainPods>,
    /// All domains with more pods than the budget.
    #[serde(default)]
    pub breaking_total: i32,
    /// The domains that are needed so that none has more pods than the budget.
    #[serde(default)]
    pub needed: i32,
}

/// The pods in one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainPods {
    /// The domain: `CLUSTER/NODE`, `ZONE/RACK`, or `CLUSTER/RACK` of nodes without a zone, `ZONE`, `CLUSTER`.
    pub name: String,
    /// The pods.
    pub pods: i32,
}

/// The pods of one cluster, and what is lent to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AvailabilityCluster {
    /// The cluster.
    pub name: String,
    /// The pods that count. Of a cluster that does not answer, as many as there were.
    pub pods: i32,
    /// Those of them that can't be reached.
    pub unreachable: i32,
    /// What is lent.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loans: Vec<Loan>,
}

/// How many pods may be unavailable in a cluster, or of one LocalReplicaSet there, whoever evicts or updates them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Loan {
    /// What limits them.
    pub kind: LoanKind,
    /// Its name.
    pub name: String,
    /// The pods that may be unavailable: more than what is written until the cluster has observed that.
    pub max_unavailable: i32,
    /// The number of the last write that may have been sent.
    pub revision: i64,
}

/// The value of an annotation [`availability.fedrs.dev/NAME`](annotations::AVAILABILITY_PREFIX) of a LocalReplicaSet, of the
/// PodDisruptionBudget of an AvailabilitySet, or of a FederatedDeployment on the host, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionLimit {
    /// The pods that may be unavailable.
    pub max_unavailable: u32,
    /// Grows with each write.
    pub revision: i64,
    /// The federation that has written it (F40).
    pub federation: String,
    /// Of a FederatedDeployment: whether its rollouts update one cluster at a time (M16).
    #[serde(skip_serializing_if = "is_default")]
    pub one_cluster_at_a_time: bool,
}

impl DisruptionLimit {
    /// The longest annotation that is read, in bytes.
    pub const BYTES_MAX: usize = 1024;

    /// The limit that an annotation holds. One that can't be read lets nothing be unavailable.
    #[must_use]
    pub fn parse(annotation: &str) -> Self {
        let is_short = annotation.len() <= Self::BYTES_MAX;
        let limit = is_short.then(|| serde_json::from_str(annotation).ok());
        limit.flatten().unwrap_or_default()
    }

    /// The limit as the value of an annotation.
    #[must_use]
    pub fn to_annotation(&self) -> String {
        serde_json::to_string(self).expect("a limit is made of strings and numbers")
    }

    /// All limits in the annotations of an object, by the name of the AvailabilitySet.
    #[must_use]
    pub fn all(annotations: Option<&BTreeMap<String, String>>) -> BTreeMap<String, Self> {
        let limits = annotations
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| {
                let set = key.strip_prefix(annotations::AVAILABILITY_PREFIX)?;
                Some((set.to_owned(), Self::parse(value)))
            });
        limits.collect()
    }
}

/// A limit that the controller of LocalReplicaSets has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedLimit {
    /// The AvailabilitySet.
    pub availability_set: String,
    /// The pods that it lets be unavailable.
    pub max_unavailable: i32,
    /// The number of the write.
    pub revision: i64,
}
