//! What files have, as JSON: compact, because a member may have a million pods.
//!
//! Labels, ports and nodes that pods have in common are in tables, and a pod has their places:
//! `["web-1", labels, ports, node, "10.0.0.1", null, flags]`.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use fedrs_api::{EndpointSetSpec, ObjectKey, SetKind};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::file::{FileError, open, seal};
use crate::{
    balancer::LoadBalancer,
    kept::{KeptHost, KeptMember, Mark},
    node::Node,
    pod::{Labels, Pod, PortNames, Shared},
    services::{Service, ServiceKey},
    set::SetKey,
    source::Source,
    tables::{PodRow, Table, Tables},
};

/// The flags of a pod.
const READY: u8 = 1;
const TERMINATING: u8 = 2;

/// What each file has.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File<C> {
    /// When it was last current, in microseconds since 1970.
    current_at: i64,
    /// The latest version that was published.
    version: i64,
    content: C,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HostContent<'a> {
    /// Namespace, name, and spec of EndpointSets.
    sets: Vec<(Text<'a>, Text<'a>, Cow<'a, EndpointSetSpec>)>,
    /// Kind, namespace, name, and selector of federated sets.
    sources: Vec<(SetKind, Text<'a>, Text<'a>, Cow<'a, LabelSelector>)>,
    /// For those that are believed to be gone in a cluster: the place in `sources`, and the names of the clusters. Absent
    /// in files of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lost: BTreeMap<usize, Vec<Text<'a>>>,
    /// The names of all members. Absent in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Vec<Text<'a>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MemberContent<'a> {
    cluster: Text<'a>,
    labels: Vec<Cow<'a, Labels>>,
    ports: Vec<Cow<'a, PortNames>>,
    /// Name and zone.
    nodes: Vec<(Text<'a>, Option<Text<'a>>)>,
    /// Pods by namespace.
    pods: Vec<(Text<'a>, Vec<Row<'a>>)>,
    /// Namespace, name and selector of Services, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    services: Option<Vec<(Text<'a>, Text<'a>, Cow<'a, LabelSelector>)>>,
    /// Those of Services that have one, by the place in `services`. Absent in files of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    load_balancers: BTreeMap<usize, Cow<'a, LoadBalancer>>,
}

type Text<'a> = Cow<'a, str>;

/// A pod: its name, the places of its labels, ports and node in their tables, its addresses and flags.
#[derive(Serialize, Deserialize)]
struct Row<'a>(
    Text<'a>,
    usize,
    usize,
    Option<usize>,
    Option<Ipv4Addr>,
    Option<Ipv6Addr>,
    u8,
);

/// The bytes of the file of the host.
pub(super) fn encode_host(host: &KeptHost, version: u64) -> Result<Vec<u8>, FileError> {
    let sets = host.sets.iter().map(|(SetKey { namespace, name }, spec)| {
        (text(namespace), text(name), Cow::Borrowed(&**spec))
    });
    let sources = host.sources.iter().map(|(key, source)| {
        let selector = Cow::Borrowed(&source.selector);
        (key.kind, text(&key.namespace), text(&key.name), selector)
    });
    let lost = (host.sources.iter().enumerate())
        .filter(|(_, (_, source))| !source.lost.is_empty())
        .map(|(place, (_, source))| (place, source.lost.iter().map(|name| text(name)).collect()));
    let content = HostContent {
        sets: sets.collect(),
        sources: sources.collect(),
        lost: lost.collect(),
        members: (host.members.as_ref()).map(|names| names.iter().map(|name| text(name)).collect()),
    };
    encode(host.mark, version, content)
}

/// What the file of the host has, and its version. What was last current in the future, by the clock, is so now.
pub(super) fn decode_host(bytes: &[u8], now: Timestamp) -> Result<(KeptHost, u64), FileError> {
    let (mut content, mark, version) = decode::<HostContent<'_>>(bytes, now)?;
    let sets = content.sets.into_iter();
    let sources = content.sources.into_iter().enumerate();
    let host = KeptHost {
        mark,
        sets: sets
            .map(|(namespace, name, spec)| {
                (SetKey::new(namespace, name), Arc::new(spec.into_owned()))
            })
            .collect(),
        sources: sources
            .map(|(place, (kind, namespace, name, selector))| {
                let key = ObjectKey::of_kind(kind, namespace, name);
                let lost = content.lost.remove(&place).unwrap_or_default();
                let source = Source {
                    selector: selector.into_owned(),
                    lost: lost.into_iter().map(Arc::from).collect(),
                };
                (key, Arc::new(source))
            })
            .collect(),
        members: (content.members).map(|names| names.into_iter().map(Arc::from).collect()),
    };
    Ok((host, version))
}

/// The bytes of the file of a member.
pub(super) fn encode_member(member: &KeptMember, version: u64) -> Result<Vec<u8>, FileError> {
    let (mut labels, mut ports, mut nodes) = (Table::default(), Table::default(), Table::default());
    let mut row = |pod| Row::of(pod, &mut labels, &mut ports, &mut nodes);
    let pods = member.pods.iter().map(|(namespace, pods)| {
        let rows = pods.iter().map(&mut row);
        (text(namespace), rows.collect())
    });
    let pods = pods.collect();
    let nodes = nodes.values.into_iter();
    let nodes = nodes.map(|node: &Node| (text(&node.name), node.zone.as_deref().map(text)));
    let services = member.services.iter().flatten().enumerate();
    let balancers = services.filter_map(|(place, (_, service))| {
        Some((place, Cow::Borrowed(service.balancer.as_ref()?)))
    });
    let content = MemberContent {
        cluster: text(&member.name),
        labels: labels.values.into_iter().map(Cow::Borrowed).collect(),
        ports: ports.values.into_iter().map(Cow::Borrowed).collect(),
        nodes: nodes.collect(),
        pods,
        services: member.services.as_ref().map(|services| {
            let services = services.iter();
            let services = services.map(|(ServiceKey { namespace, name }, service)| {
                (
                    text(namespace),
                    text(name),
                    Cow::Borrowed(&service.selector),
                )
            });
            services.collect()
        }),
        load_balancers: balancers.collect(),
    };
    encode(member.mark, version, content)
}

/// What the file of a member has, and its version, as [`decode_host`]. Its pods use what is in `shared`.
pub(super) fn decode_member(
    bytes: &[u8],
    now: Timestamp,
    shared: &mut Shared,
) -> Result<(KeptMember, u64), FileError> {
    let (mut content, mark, version) = decode::<MemberContent<'_>>(bytes, now)?;
    let name: Arc<str> = content.cluster.into();
    let nodes = content.nodes.into_iter().map(|(name, zone)| Node {
        name: name.into(),
        zone: zone.map(Arc::from),
    });
    let labels = content.labels.into_iter().map(Cow::into_owned);
    let ports = content.ports.into_iter().map(Cow::into_owned);
    let tables = Tables::of(shared, labels, ports, nodes);
    let mut namespaces = Vec::with_capacity(content.pods.len());
    for (namespace, rows) in content.pods {
        let pods = rows.into_iter().map(|row| {
            let pod = tables.pod(row.into_pod_row(), &name);
            pod.map(Arc::new)
        });
        let pods: Option<Vec<_>> = pods.collect();
        let pods = pods.ok_or(FileError::Invalid("a place that is not in its table"))?;
        namespaces.push((namespace.into(), pods));
    }
    let services = content.services.map(|services| {
        let services = services.into_iter().enumerate();
        let kept = services.map(|(place, (namespace, name, selector))| {
            let key = ServiceKey::new(namespace, name);
            let balancer = content.load_balancers.remove(&place);
            let service = Service {
                selector: selector.into_owned(),
                balancer: balancer.map(Cow::into_owned),
            };
            (key, Arc::new(service))
        });
        kept.collect()
    });
    let member = KeptMember {
        name,
        mark,
        pods: namespaces,
        services,
    };
    Ok((member, version))
}

fn encode(mark: Mark, version: u64, content: impl Serialize) -> Result<Vec<u8>, FileError> {
    let file = File {
        current_at: mark.current_at.as_microsecond(),
        version: i64::try_from(version).unwrap_or(i64::MAX),
        content,
    };
    seal(&serde_json::to_vec(&file)?)
}

fn decode<C: DeserializeOwned>(bytes: &[u8], now: Timestamp) -> Result<(C, Mark, u64), FileError> {
    let file: File<C> = serde_json::from_slice(open(bytes)?)?;
    let current_at = Timestamp::from_microsecond(file.current_at);
    let current_at = current_at.map_err(|_| FileError::Invalid("a time out of range"))?;
    let mark = Mark {
        revision: 0,
        current_at: current_at.min(now),
    };
    let version = u64::try_from(file.version);
    let version = version.map_err(|_| FileError::Invalid("a negative version"))?;
    Ok((file.content, mark, version))
}

fn text(text: &str) -> Text<'_> {
    Cow::Borrowed(text)
}

impl<'a> Row<'a> {
    fn of(
        pod: &'a Arc<Pod>,
        labels: &mut Table<'a, Labels>,
        ports: &mut Table<'a, PortNames>,
        nodes: &mut Table<'a, Node>,
    ) -> Self {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        Self(
            text(&pod.name),
            labels.place(&pod.labels),
            ports.place(&pod.ports),
            pod.node.as_ref().map(|node| nodes.place(node)),
            pod.v4,
            pod.v6.as_deref().copied(),
            flag(pod.is_ready, READY) | flag(pod.is_terminating, TERMINATING),
        )
    }

    fn into_pod_row(self) -> PodRow {
        let Self(name, labels, ports, node, v4, v6, flags) = self;
        PodRow {
            name: name.into(),
            labels,
            ports,
            node,
            v4,
            v6,
            is_ready: flags & READY != 0,
            is_terminating: flags & TERMINATING != 0,
        }
    }
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
