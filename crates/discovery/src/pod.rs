//! A pod of a member, decoded into what endpoints need.
//!
//! ```text
//! pod JSON (6 KB) --> PodObject (dropped after its event) --> Pod (kept)
//! ```

use std::{
    borrow::Cow,
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use fedrs_api::annotations;
use reflector::{
    Versioned,
    partial::{Text, for_each_entry, for_each_item, is_present, name, null_as_default},
};
use serde::{Deserialize, Deserializer};

use crate::{interner::Interner, node::Node};

/// The most labels that are kept of a pod, and the most named ports: a hostile member can't fill the memory.
const MAX_ENTRIES: usize = 256;

/// The labels of a pod.
pub(crate) type Labels = BTreeMap<String, String>;
/// The numbers of the ports that containers of a pod have names for.
pub(crate) type PortNames = BTreeMap<String, u16>;

/// A pod of a member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pod {
    pub(crate) name: Box<str>,
    pub(crate) cluster: Arc<str>,
    /// Its node, once it is scheduled.
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) labels: Arc<Labels>,
    pub(crate) ports: Arc<PortNames>,
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<Box<Ipv6Addr>>,
    /// Whether it is ready by its own condition; also while it is being removed.
    pub(crate) is_ready: bool,
    /// Whether it is being removed, or will be next: clients are to leave it.
    pub(crate) is_terminating: bool,
}

/// What one member's pods have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) labels: Interner<Labels>,
    pub(crate) ports: Interner<PortNames>,
    pub(crate) nodes: Interner<Node>,
}

impl Pod {
    pub(crate) fn has_address(&self) -> bool {
        self.v4.is_some() || self.v6.is_some()
    }

    /// Its addresses, the IPv4 one first.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let v6 = self.v6.as_deref().copied();
        self.v4
            .map(IpAddr::from)
            .into_iter()
            .chain(v6.map(IpAddr::from))
    }
}

/// The fields of a pod that endpoints need.
#[derive(Debug, Deserialize)]
pub(crate) struct PodObject {
    pub(crate) metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) spec: Spec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "name")]
    pub(crate) namespace: Box<str>,
    #[serde(deserialize_with = "name")]
    pub(crate) name: Box<str>,
    #[serde(deserialize_with = "name")]
    resource_version: Box<str>,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: Labels,
    #[serde(default, rename = "annotations", deserialize_with = "is_draining")]
    is_draining: bool,
    #[serde(default, deserialize_with = "is_present")]
    deletion_timestamp: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) node_name: Box<str>,
    #[serde(default, deserialize_with = "port_names")]
    containers: PortNames,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default, rename = "phase", deserialize_with = "has_ended")]
    has_ended: bool,
    #[serde(default, rename = "conditions", deserialize_with = "is_ready")]
    is_ready: bool,
    #[serde(default, rename = "podIPs", deserialize_with = "addresses")]
    addresses: (Option<Ipv4Addr>, Option<Ipv6Addr>),
}

/// Whether the controller removes the pod next (`spec.drainSeconds` of its set).
fn is_draining<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let mut draining = false;
    for_each_entry(deserializer, &[annotations::DRAINING], |_, _| {
        draining = true;
    })?;
    Ok(draining)
}

fn has_ended<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let phase = Option::<Text<'_>>::deserialize(deserializer)?;
    Ok(phase.is_some_and(|phase| matches!(&*phase.0, "Succeeded" | "Failed")))
}

fn is_ready<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct Condition<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
        #[serde(borrow)]
        status: Cow<'a, str>,
    }
    let mut ready = false;
    for_each_item(deserializer, |condition: Condition<'_>| {
        ready |= condition.r#type == "Ready" && condition.status == "True";
    })?;
    Ok(ready)
}

/// The first address of each family in the items that have an `ip`. What is no address is ignored.
pub(crate) fn addresses<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), D::Error> {
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(borrow)]
        ip: Option<Text<'a>>,
    }
    let mut addresses = (None, None);
    for_each_item(deserializer, |Item { ip }: Item<'_>| {
        match ip.and_then(|ip| ip.0.parse().ok()) {
            Some(IpAddr::V4(v4)) => _ = addresses.0.get_or_insert(v4),
            Some(IpAddr::V6(v6)) => _ = addresses.1.get_or_insert(v6),
            None => {}
        }
    })?;
    Ok(addresses)
}

/// The ports that containers have names for; of two of one name the first, as in EndpointSlices.
fn port_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PortNames, D::Error> {
    #[derive(Deserialize)]
    struct Container<'a> {
        #[serde(borrow, default)]
        ports: Option<Vec<Port<'a>>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Port<'a> {
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        container_port: i64,
    }
    let mut names = PortNames::new();
    for_each_item(deserializer, |container: Container<'_>| {
        for port in container.ports.into_iter().flatten() {
            add_port(&mut names, port.name, port.container_port);
        }
    })?;
    Ok(names)
}

/// Adds a port, if it has a name and a valid number. The first one of its name stays.
pub(crate) fn add_port(names: &mut PortNames, name: Option<Cow<'_, str>>, number: i64) {
    if let (Some(name), Ok(number)) = (name, u16::try_from(number))
        && names.len() < MAX_ENTRIES
    {
        names.entry(name.into_owned()).or_insert(number);
    }
}

impl Versioned for PodObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl PodObject {
    /// What is kept of it; `None` of one that has ended, which has no address any more.
    pub(crate) fn into_pod(
        self,
        cluster: &Arc<str>,
        node: Option<Arc<Node>>,
        shared: &mut Shared,
    ) -> Option<Pod> {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        if status.has_ended {
            return None;
        }
        let (v4, v6) = status.addresses;
        let labels = metadata.labels.into_iter().take(MAX_ENTRIES).collect();
        Some(Pod {
            name: metadata.name,
            cluster: Arc::clone(cluster),
            node,
            labels: shared.labels.get(labels),
            ports: shared.ports.get(spec.containers),
            v4,
            v6: v6.map(Box::new),
            is_ready: status.is_ready,
            is_terminating: metadata.deletion_timestamp || metadata.is_draining,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(value: &serde_json::Value) -> Option<Pod> {
        let object: PodObject = serde_json::from_str(&value.to_string()).unwrap();
        object.into_pod(&"eu".into(), None, &mut Shared::default())
    }

    #[test]
    fn d1_a_pod_has_addresses_of_both_families_named_ports_and_readiness() {
        let read = pod(&json!({
            "metadata": { "namespace": "shop", "name": "web-1", "resourceVersion": "5", "labels": { "app": "web" } },
            "spec": { "nodeName": "n", "containers": [
                { "name": "main", "ports": [{ "name": "http", "containerPort": 8080 }, { "containerPort": 9 }] },
                { "name": "side", "ports": [{ "name": "http", "containerPort": 1 }] },
                { "name": "none", "ports": null },
            ] },
            "status": {
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "True" }],
                "podIPs": [{ "ip": "nonsense" }, { "ip": "fd00::1" }, { "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }],
            },
        }))
        .unwrap();
        let addresses: Vec<_> = read
            .addresses()
            .map(|address| address.to_string())
            .collect();
        assert_eq!(addresses, ["10.0.0.1", "fd00::1"]);
        assert_eq!(*read.ports, PortNames::from([("http".to_owned(), 8080)]));
        assert!(read.is_ready && !read.is_terminating);
    }

    #[test]
    fn d1_a_pod_that_has_ended_is_none_and_one_without_status_has_no_address() {
        let metadata =
            json!({ "namespace": "shop", "name": "web-1", "resourceVersion": "5", "labels": null });
        let with = |status| pod(&json!({ "metadata": metadata, "status": status }));
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(with(json!({ "phase": phase })), None);
        }
        let read = with(json!(null)).unwrap();
        assert!(!read.has_address() && !read.is_ready);
    }
}
