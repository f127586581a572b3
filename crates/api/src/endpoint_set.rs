//! The EndpointSet: which pods of all members clients find under one name (D1).

#![expect(
    unreachable_pub,
    reason = "the derive of KubeSchema repeats the struct inside a function"
)]

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, LabelSelector, Time},
    util::intstr::IntOrString,
};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    closed_set::closed_set,
    compact::is_default,
    object_key::SetKind,
    rules::{IS_NO_NAME, NAME_RULE},
};

closed_set! {
    /// Which pods of its source an EndpointSet has.
    #[derive(Default)]
    pub enum IncludedPods {
        /// Those that are ready, with an address; also while they are being removed, marked as terminating.
        #[default]
        Serving,
        /// Those with an address that have not ended, ready or not.
        Alive,
        /// All that have not ended, also those that have no address yet.
        All,
    }
}

closed_set! {
    /// What the endpoints of an EndpointSet are.
    #[derive(Default)]
    pub enum EndpointAddresses {
        /// The pods: clients have to reach their addresses, also from other clusters.
        #[default]
        Pods,
        /// The load balancers of the Service that is the source, one in each cluster. It is ready while a pod of the Service is.
        LoadBalancers,
    }
}

/// Pods of all member clusters under one name.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "fedrs.dev",
    version = "v1alpha1",
    kind = "EndpointSet",
    plural = "endpointsets",
    shortname = "eps",
    namespaced,
    status = "EndpointSetStatus",
    doc = "Pods of all member clusters under one name, for clients that look them up.",
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyEndpoints",
        description = "Endpoints that new requests may be sent to."
    ),
    printcolumn(
        name = "Endpoints",
        type_ = "integer",
        json_path = ".status.endpoints",
        description = "All endpoints, also those that are being removed."
    ),
    printcolumn(
        name = "Replica Set",
        type_ = "string",
        json_path = ".spec.source.federatedReplicaSet",
        description = "The FederatedReplicaSet whose pods it has."
    ),
    printcolumn(
        name = "Deployment",
        type_ = "string",
        json_path = ".spec.source.federatedDeployment",
        description = "The FederatedDeployment whose pods it has."
    ),
    printcolumn(
        name = "Service",
        type_ = "string",
        json_path = ".spec.source.service",
        description = "The Service of the members whose pods it has.",
        priority = 1
    ),
    printcolumn(
        name = "Include",
        type_ = "string",
        json_path = ".spec.include",
        description = "Which of the pods it has."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "The reason of the Ready condition.",
        priority = 1
    ),
    validation = Rule::new(NAME_RULE).message(IS_NO_NAME),
    derive = "PartialEq"
)]
#[x_kube(
    validation = Rule::new("self.addresses != 'LoadBalancers' || has(self.source.service)")
        .message(NEEDS_SERVICE)
        .field_path(".addresses")
)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSetSpec {
    /// Whose pods it has.
    pub source: EndpointSource,
    /// What the endpoints are. `LoadBalancers` needs a Service as the source. Defaults to `Pods`.
    #[serde(default)]
    pub addresses: EndpointAddresses,
    /// The ports of each endpoint. A pod, or load balancer, that has none of them is no endpoint. Without ports, endpoints are addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_PORTS))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub ports: Vec<EndpointPort>,
    /// Which of the pods it has. Defaults to `Serving`.
    #[serde(default)]
    pub include: IncludedPods,
    /// Whether pods that are not ready count as ready, as with `publishNotReadyAddresses` of a Service. Defaults to false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub publish_not_ready: bool,
    /// The keys of the labels of pods that clients get with each endpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_LABELS), inner(length(min = 1, max = 317)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub labels: Vec<String>,
    /// The names of the clusters whose pods it has. All, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub clusters: Option<Vec<String>>,
}

/// Why a set of load balancers is invalid.
pub(crate) const NEEDS_SERVICE: &str = "LoadBalancers needs source.service";
/// The most ports of an EndpointSet: as many as an EndpointSlice has.
pub const MAX_PORTS: usize = 100;
/// The most labels that travel along.
pub const MAX_LABELS: usize = 32;

/// Whose pods an EndpointSet has: exactly one of the fields, in the namespace of the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("[has(self.federatedReplicaSet), has(self.federatedDeployment), has(self.service), has(self.selector)].exists_one(set, set)")
        .message("exactly one of federatedReplicaSet, federatedDeployment, service and selector must be set")
)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSource {
    /// The name of a FederatedReplicaSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub federated_replica_set: Option<String>,
    /// The name of a FederatedDeployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub federated_deployment: Option<String>,
    /// The name of a Service of the members. In each of them, its own selector decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub service: Option<String>,
    /// Selects pods by their labels; must not be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

impl EndpointSource {
    /// The pods of a federated set.
    #[must_use]
    pub fn of_set(kind: SetKind, name: &str) -> Self {
        let name = Some(name.to_owned());
        match kind {
            SetKind::FederatedReplicaSet => Self {
                federated_replica_set: name,
                ..Self::default()
            },
            SetKind::FederatedDeployment => Self {
                federated_deployment: name,
                ..Self::default()
            },
        }
    }
}

/// A port of each endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointPort {
    /// The name by which clients know it.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// The number, from 1 to 65535, or the name of a container's port; of a port of the Service, if `addresses` is `LoadBalancers`.
    #[schemars(schema_with = "port_schema")]
    pub port: IntOrString,
}

/// What one replica of the service has seen of the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSetStatus {
    /// The generation of the spec that this status is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The version of the endpoints: answers have it, too.
    pub version: i64,
    /// The endpoints, also those that are being removed.
    pub endpoints: i32,
    /// The endpoints that new requests may be sent to.
    pub ready_endpoints: i32,
    /// `Accepted` and `Ready` always, `MembersStale` and `EndpointsOmitted` while they are true.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The member clusters with endpoints, and those of which changes may be missing.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub clusters: Vec<EndpointSetCluster>,
}

/// What an EndpointSet has in a member cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSetCluster {
    /// The name of the cluster.
    pub name: String,
    /// The endpoints, also those that are being removed.
    pub endpoints: i32,
    /// The endpoints that new requests may be sent to.
    pub ready_endpoints: i32,
    /// More endpoints, which answers leave out: the cluster is lost, and replicas run in others in their place.
    #[serde(skip_serializing_if = "is_default")]
    pub omitted_endpoints: i32,
    /// Since when changes may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<Time>,
    /// Whether the pods of the cluster have not been listed yet.
    #[serde(skip_serializing_if = "is_default")]
    pub unknown: bool,
}

fn port_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "description": "The number, from 1 to 65535, or the name of a container's port; of a port of the Service, if `addresses` is `LoadBalancers`.",
        "minimum": 1,
        "maximum": u16::MAX,
        "maxLength": 15,
        "x-kubernetes-validations": [{
            "rule": "type(self) != string || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "message": "must be a number from 1 to 65535, or the name of a container's port",
        }],
    })
}
