//! What files have, as JSON: compact, because a member may have a million pods.
//!
//! Labels, ports and nodes that pods have in common are in tables, and a pod has their places:
//! `["web-1", labels, ports, node, "10.0.0.1", null, flags]`.

use std::{
    borrow::Cow,
    collections::HashMap,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use fedrs_api::{EndpointSetSpec, ObjectKey, SetKind};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::file::{FileError, open, seal};
use crate::{
    kept::{KeptHost, KeptMember, LoadedMember, Mark},
    node::Node,
    pod::{Labels, Pod, PortNames, Shared},
    services::ServiceKey,
    set::SetKey,
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
    let sources = host.sources.iter().map(|(key, selector)| {
        let selector = Cow::Borrowed(&**selector);
        (key.kind, text(&key.namespace), text(&key.name), selector)
    });
    let content = HostContent {
        sets: sets.collect(),
        sources: sources.collect(),
    };
    encode(host.mark, version, content)
}

/// What the file of the host has, and its version. What was last current in the future, by the clock, is so now.
pub(super) fn decode_host(bytes: &[u8], now: Timestamp) -> Result<(KeptHost, u64), FileError> {
    let (content, mark, version) = decode::<HostContent<'_>>(bytes, now)?;
    let sets = content.sets.into_iter();
    let sources = content.sources.into_iter();
    let host = KeptHost {
        mark,
        sets: sets
            .map(|(namespace, name, spec)| {
                (SetKey::new(namespace, name), Arc::new(spec.into_owned()))
            })
            .collect(),
        sources: sources
            .map(|(kind, namespace, name, selector)| {
                let key = ObjectKey::of_kind(kind, namespace, name);
                (key, Arc::new(selector.into_owned()))
            })
            .collect(),
    };
    Ok((host, version))
}

/// The bytes of the file of a member.
pub(super) fn encode_member(member: &KeptMember, version: u64) -> Result<Vec<u8>, FileError> {
    let (mut labels, mut ports, mut nodes) = (Table::new(), Table::new(), Table::new());
    let mut row = |pod| Row::of(pod, &mut labels, &mut ports, &mut nodes);
    let pods = member.pods.iter().map(|(namespace, pods)| {
        let rows = pods.iter().map(&mut row);
        (text(namespace), rows.collect())
    });
    let pods = pods.collect();
    let nodes = nodes.values.into_iter();
    let nodes = nodes.map(|node: &Node| (text(&node.name), node.zone.as_deref().map(text)));
    let content = MemberContent {
        cluster: text(&member.name),
        labels: labels.values.into_iter().map(Cow::Borrowed).collect(),
        ports: ports.values.into_iter().map(Cow::Borrowed).collect(),
        nodes: nodes.collect(),
        pods,
        services: member.services.as_ref().map(|services| {
            let services = services.iter();
            let services = services.map(|(ServiceKey { namespace, name }, selector)| {
                (text(namespace), text(name), Cow::Borrowed(&**selector))
            });
            services.collect()
        }),
    };
    encode(member.mark, version, content)
}

/// What the file of a member has, and its version, as [`decode_host`].
pub(super) fn decode_member(
    bytes: &[u8],
    now: Timestamp,
) -> Result<(LoadedMember, u64), FileError> {
    let (content, mark, version) = decode::<MemberContent<'_>>(bytes, now)?;
    let name: Arc<str> = content.cluster.into();
    let tables = Tables::of(content.labels, content.ports, content.nodes);
    let mut namespaces = Vec::with_capacity(content.pods.len());
    for (namespace, rows) in content.pods {
        let pods = rows.into_iter().map(|row| tables.pod(row, &name));
        let pods: Option<Vec<_>> = pods.collect();
        let pods = pods.ok_or(FileError::Invalid("a place that is not in its table"))?;
        namespaces.push((namespace.into(), pods));
    }
    let services = content.services.map(|services| {
        let services = services.into_iter();
        let kept = services.map(|(namespace, name, selector)| {
            let key = ServiceKey::new(namespace, name);
            (key, Arc::new(selector.into_owned()))
        });
        kept.collect()
    });
    let member = KeptMember {
        name,
        mark,
        pods: namespaces,
        services,
    };
    let shared = tables.shared;
    Ok((LoadedMember { member, shared }, version))
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

/// Values in the order in which they are used first, each once: equal ones are interned, and have the same address.
struct Table<'a, T> {
    values: Vec<&'a T>,
    places: HashMap<*const T, usize>,
}

impl<'a, T> Table<'a, T> {
    fn new() -> Self {
        Self {
            values: Vec::new(),
            places: HashMap::new(),
        }
    }

    fn place(&mut self, value: &'a Arc<T>) -> usize {
        *self.places.entry(Arc::as_ptr(value)).or_insert_with(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }
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
}

/// What the pods of a file have in common.
struct Tables {
    labels: Vec<Arc<Labels>>,
    ports: Vec<Arc<PortNames>>,
    nodes: Vec<Arc<Node>>,
    /// Keeps that one copy of each is in use, also after the first list.
    shared: Shared,
}

impl Tables {
    fn of(
        labels: Vec<Cow<'_, Labels>>,
        ports: Vec<Cow<'_, PortNames>>,
        nodes: Vec<(Text<'_>, Option<Text<'_>>)>,
    ) -> Self {
        let mut shared = Shared::default();
        let labels = labels.into_iter().map(Cow::into_owned);
        let ports = ports.into_iter().map(Cow::into_owned);
        let nodes = nodes.into_iter().map(|(name, zone)| Node {
            name: name.into(),
            zone: zone.map(Arc::from),
        });
        Self {
            labels: labels.map(|labels| shared.labels.get(labels)).collect(),
            ports: ports.map(|ports| shared.ports.get(ports)).collect(),
            nodes: nodes.map(|node| shared.nodes.get(node)).collect(),
            shared,
        }
    }

    /// The pod of a row; `None` if it has a place that is not in its table.
    fn pod(&self, row: Row<'_>, cluster: &Arc<str>) -> Option<Arc<Pod>> {
        let Row(name, labels, ports, node, v4, v6, flags) = row;
        let node = match node {
            Some(node) => Some(Arc::clone(self.nodes.get(node)?)),
            None => None,
        };
        Some(Arc::new(Pod {
            name: name.into(),
            cluster: Arc::clone(cluster),
            node,
            labels: Arc::clone(self.labels.get(labels)?),
            ports: Arc::clone(self.ports.get(ports)?),
            v4,
            v6: v6.map(Box::new),
            is_ready: flags & READY != 0,
            is_terminating: flags & TERMINATING != 0,
        }))
    }
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
