//! Reads what messages have.

use std::{collections::HashMap, net::Ipv6Addr, sync::Arc};

use discovery_proto as proto;
use fedrs_api::{ObjectKey, SetKind};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;

use crate::{
    balancer::LoadBalancer,
    freshness::Staleness,
    node::Node,
    pod::{Pod, PortNames, Shared},
    services::ServiceKey,
    set::SetKey,
    tables::{PodRow, Tables},
};

/// A message that does not fit.
#[derive(Debug, thiserror::Error)]
pub(super) enum Misfit {
    #[error("{0}")]
    Invalid(&'static str),
    #[error("invalid JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The pods of a part, with their namespaces.
pub(super) fn pods(
    part: proto::ReplicatedMember,
    cluster: &Arc<str>,
    shared: &mut Shared,
) -> Result<Vec<(Box<str>, Pod)>, Misfit> {
    let labels = part.labels.into_iter();
    let labels = labels.map(|labels| labels.labels.into_iter().collect());
    let ports = part.ports.into_iter().map(|ports| port_names(ports.ports));
    let nodes = part.nodes.into_iter().map(|node| Node {
        name: node.name.into(),
        zone: Some(node.zone)
            .filter(|zone| !zone.is_empty())
            .map(Arc::from),
    });
    let tables = Tables::of(shared, labels, ports, nodes);
    let pods = part.pods.into_iter().map(|pod| {
        let (namespace, row) = row(pod)?;
        let pod = tables.pod(row, cluster);
        let pod = pod.ok_or(Misfit::Invalid("a place that is not in its table"))?;
        Ok((namespace, pod))
    });
    pods.collect()
}

fn row(pod: proto::ReplicatedPod) -> Result<(Box<str>, PodRow), Misfit> {
    if pod.namespace.is_empty() || pod.name.is_empty() {
        return Err(Misfit::Invalid("a pod without a name"));
    }
    let v6 = v6(&pod.ipv6)?;
    let place = |place: u32| place.try_into().unwrap_or(usize::MAX);
    let row = PodRow {
        name: pod.name.into(),
        labels: place(pod.labels),
        ports: place(pod.ports),
        node: pod.node.map(place),
        v4: pod.ipv4.map(Into::into),
        v6,
        is_ready: pod.ready,
        is_terminating: pod.terminating,
    };
    Ok((pod.namespace.into(), row))
}

/// None, or 16 bytes.
fn v6(bytes: &[u8]) -> Result<Option<Ipv6Addr>, Misfit> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let octets = <[u8; 16]>::try_from(bytes);
    let octets = octets.map_err(|_| Misfit::Invalid("an IPv6 address of another length"))?;
    Ok(Some(octets.into()))
}

fn port_names(ports: HashMap<String, u32>) -> PortNames {
    let ports = ports.into_iter();
    let ports = ports.filter_map(|(name, number)| Some((name, u16::try_from(number).ok()?)));
    ports.collect()
}

/// The load balancer of a Service.
pub(super) fn load_balancer(balancer: proto::LoadBalancer) -> Result<LoadBalancer, Misfit> {
    Ok(LoadBalancer {
        v4: balancer.ipv4.map(Into::into),
        v6: v6(&balancer.ipv6)?,
        ports: port_names(balancer.ports),
    })
}

/// Kind, namespace and name.
fn names(id: Option<proto::ObjectId>) -> Result<(String, String, String), Misfit> {
    let id = id.unwrap_or_default();
    if id.namespace.is_empty() || id.name.is_empty() {
        return Err(Misfit::Invalid("an object without a name"));
    }
    Ok((id.kind, id.namespace, id.name))
}

pub(super) fn set_key(id: Option<proto::ObjectId>) -> Result<SetKey, Misfit> {
    let (_, namespace, name) = names(id)?;
    Ok(SetKey::new(namespace, name))
}

pub(super) fn service_key(id: Option<proto::ObjectId>) -> Result<ServiceKey, Misfit> {
    let (_, namespace, name) = names(id)?;
    Ok(ServiceKey::new(namespace, name))
}

pub(super) fn source_key(id: Option<proto::ObjectId>) -> Result<ObjectKey, Misfit> {
    let (kind, namespace, name) = names(id)?;
    let mut kinds = SetKind::ALL.into_iter();
    let kind = kinds.find(|known| known.as_str() == kind);
    let kind = kind.ok_or(Misfit::Invalid("a source of an unknown kind"))?;
    Ok(ObjectKey::of_kind(kind, namespace, name))
}

pub(super) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Misfit> {
    Ok(serde_json::from_slice(bytes)?)
}

/// How current something is, by the clock of this process.
pub(super) fn staleness(currency: proto::Currency, now: Timestamp) -> Staleness {
    let since = |millis| {
        let age = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
        now.checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH)
    };
    Staleness {
        is_known: currency.known,
        stale_since: currency.stale_millis.map(since),
    }
}
