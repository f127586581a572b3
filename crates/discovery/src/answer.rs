//! An answer, as JSON.

use std::{collections::BTreeMap, net::IpAddr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    freshness::Staleness,
    member_state::MemberState,
    set::SetKey,
    snapshot::{Endpoint, EndpointSnapshot},
};

/// What `GET /v1/endpoints/NAMESPACE/SET` returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The namespace of the set.
    pub namespace: String,
    /// The name of the set.
    pub name: String,
    /// Grows with each change of the endpoints.
    pub version: u64,
    /// The endpoints, by cluster and name.
    pub endpoints: Vec<AnswerEndpoint>,
    /// Members of which changes may be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale_members: Vec<StaleMember>,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerEndpoint {
    /// The name of the pod, or of the Service whose load balancer it is.
    pub name: String,
    /// Its cluster.
    pub cluster: String,
    /// The zone of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its addresses, the IPv4 one first.
    pub addresses: Vec<IpAddr>,
    /// Its ports, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, u16>,
    /// Whether new requests may be sent to it: it serves, and is not being removed.
    pub ready: bool,
    /// Whether it takes requests, also while it is being removed.
    pub serving: bool,
    /// Whether it is being removed.
    pub terminating: bool,
    /// Those labels of the pod that the set asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A member of which changes may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleMember {
    /// Its name.
    pub name: String,
    /// For how long, in seconds; absent if its pods are not known at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl Answer {
    /// The answer for the set `key`, from what is known at `now`.
    #[must_use]
    pub fn new(
        key: &SetKey,
        snapshot: &EndpointSnapshot,
        members: &[MemberState],
        now: Timestamp,
    ) -> Self {
        Self {
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            version: snapshot.version,
            endpoints: (snapshot.endpoints.iter())
                .map(|endpoint| AnswerEndpoint::of(endpoint, snapshot))
                .collect(),
            stale_members: StaleMember::all(snapshot, members, now),
        }
    }
}

impl AnswerEndpoint {
    pub(crate) fn of(endpoint: &Endpoint, snapshot: &EndpointSnapshot) -> Self {
        let serving = endpoint.is_serving(snapshot);
        let terminating = endpoint.is_terminating();
        let ports = endpoint.ports().iter();
        let labels = endpoint.pod.labels.iter();
        let labels = labels.filter(|(key, _)| snapshot.set.labels.contains(*key));
        Self {
            name: endpoint.name().to_owned(),
            cluster: endpoint.cluster().to_owned(),
            zone: endpoint.zone().map(str::to_owned),
            node: endpoint.node().map(str::to_owned),
            addresses: endpoint.addresses().collect(),
            ports: ports
                .map(|port| (port.name.to_string(), port.number))
                .collect(),
            ready: serving && !terminating,
            serving,
            terminating,
            labels: labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        }
    }
}

impl StaleMember {
    /// The members of which changes of the set may be missing at `now`.
    pub(crate) fn all(
        snapshot: &EndpointSnapshot,
        members: &[MemberState],
        now: Timestamp,
    ) -> Vec<Self> {
        let concerned = members
            .iter()
            .filter(|member| snapshot.concerns(&member.name));
        concerned
            .filter_map(|member| Self::of(&member.name, member.staleness(&snapshot.set), now))
            .collect()
    }

    fn of(name: &str, staleness: Staleness, now: Timestamp) -> Option<Self> {
        let seconds = staleness.stale_since.map(|since| {
            let seconds = now.duration_since(since).as_secs();
            u64::try_from(seconds).unwrap_or_default()
        });
        (!staleness.is_known || seconds.is_some()).then(|| Self {
            name: name.to_owned(),
            seconds: seconds.filter(|_| staleness.is_known),
        })
    }
}
