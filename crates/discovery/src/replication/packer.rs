//! Packs updates into messages.

use std::{collections::HashMap, net::Ipv6Addr, sync::Arc};

use discovery_proto as proto;
use fedrs_api::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use prost::Message;
use serde::Serialize;

use crate::{
    balancer::LoadBalancer,
    freshness::Staleness,
    node::Node,
    pod::{Labels, Pod, PortNames},
    services::ServiceKey,
    set::SetKey,
    source::Source,
    state::{NamespacedPod, Update},
    tables::Table,
};

/// About how many bytes a message has at most. In tests there are many.
const MAX_BYTES: usize = if cfg!(test) { 64 } else { 1 << 20 };

/// The messages for `update` at `now`, one at least, which belong together. In the last one is how current everything is.
pub(super) fn pack(update: &Update, now: Timestamp) -> Vec<proto::ReplicateResponse> {
    let mut packer = Packer::default();
    for (member, pods) in &update.pods {
        packer.pods(member, pods);
    }
    let services = update.services.iter();
    for (member, key, service) in services.clone() {
        if let Some(service) = service {
            let mut selector = selector_of(service_id(key), &service.selector);
            selector.load_balancer = service.balancer.as_ref().map(load_balancer);
            let size = selector.encoded_len();
            packer.member(member, size).services.push(selector);
        }
    }
    packer.host(update);
    for (member, key, _) in services.filter(|(_, _, service)| service.is_none()) {
        let id = service_id(key);
        let size = id.encoded_len();
        packer.member(member, size).removed_services.push(id);
    }
    for (member, pods) in &update.removed_pods {
        for (namespace, name) in pods {
            let id = object_id("", namespace, name);
            let size = id.encoded_len();
            packer.member(member, size).removed_pods.push(id);
        }
    }
    if let Some((host, members)) = &update.currency {
        packer.host_part(0).currency = Some(currency(*host, now));
        for state in members {
            let member = packer.part(&state.name);
            member.pods_currency = Some(currency(state.pods, now));
            member.services_currency = Some(currency(state.services, now));
        }
    }
    let mut responses = packer.responses;
    let continued = responses.len() - 1;
    for response in &mut responses[..continued] {
        response.continued = true;
    }
    responses
}

struct Packer {
    /// The last one is not full.
    responses: Vec<proto::ReplicateResponse>,
    /// About how many bytes it has.
    size: usize,
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            responses: vec![proto::ReplicateResponse::default()],
            size: 0,
        }
    }
}

impl Packer {
    /// The message to add `size` bytes to.
    fn response(&mut self, size: usize) -> &mut proto::ReplicateResponse {
        if self.size > 0 && self.size + size > MAX_BYTES {
            self.responses.push(proto::ReplicateResponse::default());
            self.size = 0;
        }
        self.size += size;
        self.responses.last_mut().expect("there is one")
    }

    /// The part of a member, in the message to add `size` bytes to.
    fn member(&mut self, name: &str, size: usize) -> &mut proto::ReplicatedMember {
        self.response(size);
        self.part(name)
    }

    /// The part of a member, in the last message.
    fn part(&mut self, name: &str) -> &mut proto::ReplicatedMember {
        let response = self.responses.last_mut().expect("there is one");
        if response.members.last().is_none_or(|last| last.name != name) {
            response.members.push(proto::ReplicatedMember {
                name: name.to_owned(),
                ..proto::ReplicatedMember::default()
            });
            self.size += name.len();
        }
        response.members.last_mut().expect("it was added")
    }

    fn host_part(&mut self, size: usize) -> &mut proto::ReplicatedHost {
        self.response(size).host.get_or_insert_default()
    }

    fn pods(&mut self, member: &str, pods: &[NamespacedPod]) {
        let mut rest = pods;
        while !rest.is_empty() {
            let (part, count, size) =
                part_of_pods(member, rest, MAX_BYTES.saturating_sub(self.size));
            self.response(size).members.push(part);
            rest = &rest[count..];
        }
    }

    fn host(&mut self, update: &Update) {
        for (key, source) in &update.sources {
            if let Some(source) = source {
                let source = source_of(source_id(key), source);
                self.host_part(source.encoded_len()).sources.push(source);
            }
        }
        for (key, spec) in &update.sets {
            if let Some(spec) = spec {
                let set = proto::ReplicatedSet {
                    id: Some(set_id(key)),
                    spec: json(&**spec),
                };
                self.host_part(set.encoded_len()).sets.push(set);
            }
        }
        for (key, _) in update.sets.iter().filter(|(_, spec)| spec.is_none()) {
            let id = set_id(key);
            self.host_part(id.encoded_len()).removed_sets.push(id);
        }
        for (key, _) in (update.sources.iter()).filter(|(_, source)| source.is_none()) {
            let id = source_id(key);
            self.host_part(id.encoded_len()).removed_sources.push(id);
        }
    }
}

/// The part of a member with as many of its pods as `budget` bytes have, one at least. Returns it with their number, and its size.
fn part_of_pods(
    member: &str,
    pods: &[NamespacedPod],
    budget: usize,
) -> (proto::ReplicatedMember, usize, usize) {
    let mut tables = PodTables::default();
    let mut rows = Vec::new();
    let mut size = member.len();
    for (namespace, pod) in pods {
        let row = tables.row(namespace, pod);
        size += row.encoded_len() + tables.take_added();
        rows.push(row);
        if size >= budget {
            break;
        }
    }
    let count = rows.len();
    let part = proto::ReplicatedMember {
        name: member.to_owned(),
        pods: rows,
        ..tables.into_part()
    };
    (part, count, size)
}

#[derive(Default)]
struct PodTables<'a> {
    labels: Table<'a, Labels>,
    ports: Table<'a, PortNames>,
    nodes: Table<'a, Node>,
    /// How many values of each have been counted.
    counted: [usize; 3],
}

impl<'a> PodTables<'a> {
    fn row(&mut self, namespace: &str, pod: &'a Arc<Pod>) -> proto::ReplicatedPod {
        let node = pod.node.as_ref().map(|node| self.nodes.place(node));
        proto::ReplicatedPod {
            namespace: namespace.to_owned(),
            name: pod.name.to_string(),
            labels: place(self.labels.place(&pod.labels)),
            ports: place(self.ports.place(&pod.ports)),
            node: node.map(place),
            ipv4: pod.v4.map(u32::from),
            ipv6: octets(pod.v6.as_deref()),
            ready: pod.is_ready,
            terminating: pod.is_terminating,
        }
    }

    /// About how many bytes the values have that were added since the last call.
    fn take_added(&mut self) -> usize {
        let [labels, ports, nodes] = &mut self.counted;
        let added = |counted: &mut usize, count: usize| std::mem::replace(counted, count)..count;
        let labels = self.labels.values[added(labels, self.labels.values.len())].iter();
        let ports = self.ports.values[added(ports, self.ports.values.len())].iter();
        let nodes = self.nodes.values[added(nodes, self.nodes.values.len())].iter();
        let labels = labels.flat_map(|labels| labels.iter());
        let labels = labels.map(|(key, value)| key.len() + value.len() + ENTRY);
        let ports = ports.flat_map(|ports| ports.keys());
        let ports = ports.map(|name| name.len() + ENTRY);
        let nodes = nodes.map(|node| {
            let zone = node.zone.as_ref().map_or(0, |zone| zone.len());
            node.name.len() + zone + ENTRY
        });
        labels.chain(ports).chain(nodes).sum()
    }

    fn into_part(self) -> proto::ReplicatedMember {
        let labels = self.labels.values.into_iter();
        let labels = labels.map(|labels| proto::PodLabels {
            labels: labels.clone().into_iter().collect(),
        });
        let ports = self.ports.values.into_iter().map(|ports| proto::PodPorts {
            ports: port_names(ports),
        });
        let nodes = self.nodes.values.into_iter().map(|node| proto::PodNode {
            name: node.name.to_string(),
            zone: node.zone.as_deref().unwrap_or_default().to_owned(),
        });
        proto::ReplicatedMember {
            labels: labels.collect(),
            ports: ports.collect(),
            nodes: nodes.collect(),
            ..proto::ReplicatedMember::default()
        }
    }
}

/// About how many bytes a value has in a message, beside its texts.
const ENTRY: usize = 12;

fn place(place: usize) -> u32 {
    u32::try_from(place).expect("a message has few pods")
}

fn object_id(kind: &str, namespace: &str, name: &str) -> proto::ObjectId {
    proto::ObjectId {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn set_id(key: &SetKey) -> proto::ObjectId {
    object_id("", &key.namespace, &key.name)
}

fn service_id(key: &ServiceKey) -> proto::ObjectId {
    object_id("", &key.namespace, &key.name)
}

fn source_id(key: &ObjectKey) -> proto::ObjectId {
    object_id(key.kind.as_str(), &key.namespace, &key.name)
}

fn selector_of(id: proto::ObjectId, selector: &LabelSelector) -> proto::ReplicatedSelector {
    proto::ReplicatedSelector {
        id: Some(id),
        selector: json(selector),
        ..proto::ReplicatedSelector::default()
    }
}

fn load_balancer(balancer: &LoadBalancer) -> proto::LoadBalancer {
    proto::LoadBalancer {
        ipv4: balancer.v4.map(u32::from),
        ipv6: octets(balancer.v6.as_ref()),
        ports: port_names(&balancer.ports),
    }
}

/// The bytes of an address; none without one.
fn octets(v6: Option<&Ipv6Addr>) -> Vec<u8> {
    v6.map_or_else(Vec::new, |v6| v6.octets().to_vec())
}

fn port_names(ports: &PortNames) -> HashMap<String, u32> {
    let ports = ports.iter();
    let ports = ports.map(|(name, number)| (name.clone(), u32::from(*number)));
    ports.collect()
}

fn source_of(id: proto::ObjectId, source: &Source) -> proto::ReplicatedSelector {
    proto::ReplicatedSelector {
        lost_clusters: source.lost.iter().map(|name| (**name).to_owned()).collect(),
        ..selector_of(id, &source.selector)
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("it is JSON that was read")
}

fn currency(staleness: Staleness, now: Timestamp) -> proto::Currency {
    let millis = |since| u64::try_from(now.duration_since(since).as_millis()).unwrap_or_default();
    proto::Currency {
        known: staleness.is_known,
        stale_millis: staleness.stale_since.map(millis),
    }
}
