//! What was true of the pods of all members, and of the sets of the host, by their API servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use fedrs_api::{ClusterState, SetKind, annotations};
use serde_json::Value;
use sim_cluster::{Api, Change, Object, kinds};

use super::currency::Currency;
use crate::{history::History, ready_pods::name_of, set_kind, sim_federation::NAMESPACE};

/// What a pod is to the EndpointSet whose pods it is one of, while it serves: it is ready, and has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Serves {
    /// The addresses, the IPv4 one first.
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether no new requests are to be sent to it.
    pub(crate) is_terminating: bool,
}

/// The pods of a member.
#[derive(Default)]
pub(super) struct MemberTruth {
    pub(super) currency: Currency,
    /// By name: the set that the pod serves for.
    pub(super) pods: BTreeMap<String, History<Option<(String, Serves)>>>,
}

/// What the host has of an EndpointSet, and of the set whose pods it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostTruth {
    /// Whether the EndpointSet exists.
    pub(super) is_there: bool,
    /// Whether the set whose pods it has exists.
    pub(super) has_source: bool,
    /// The clusters in which replicas are lost, by the status of that set.
    pub(super) lost: BTreeSet<String>,
}

impl HostTruth {
    /// Whether there is something to answer.
    pub(super) fn exists(&self) -> bool {
        self.is_there && self.has_source
    }
}

impl MemberTruth {
    /// A member has changed.
    pub(super) fn changed(&mut self, change: &Change) {
        if change.kind == *kinds::PODS && change.namespace == NAMESPACE {
            self.put(&change.name, change.new.as_ref().and_then(serves));
        }
    }

    /// A member has what its API server shows, and nothing else.
    pub(super) fn restored(&mut self, api: &Api) {
        let pods = api.list(&kinds::PODS, Some(NAMESPACE));
        let mut restored: BTreeMap<_, _> =
            pods.iter().map(|pod| (name_of(pod), serves(pod))).collect();
        for name in self.pods.keys() {
            restored.entry(name.clone()).or_default();
        }
        for (name, serves) in restored {
            self.put(&name, serves);
        }
    }

    /// What a pod is from now on.
    pub(super) fn put(&mut self, name: &str, serves: Option<(String, Serves)>) {
        let known = self.pods.entry(name.to_owned());
        known.or_insert_with(|| History::starting(None)).put(serves);
    }
}

impl HostTruth {
    /// What the host has of the set `name` after a change; none if that is as before.
    pub(super) fn after(&self, kind: SetKind, change: &Change) -> Option<Self> {
        let mut now = self.clone();
        let object = change.new.as_ref();
        if change.kind.plural == ENDPOINT_SETS {
            now.is_there = object.is_some();
        } else if change.kind.plural == set_kind::resource(kind) {
            now.set_source(object);
        }
        (now != *self).then_some(now)
    }

    /// What a host has that was restored.
    pub(super) fn restored(name: &str, kind: SetKind, api: &Api) -> Self {
        let object = |kind| {
            let kind = api.kind_of("fedrs.dev/v1alpha1", kind)?;
            api.get(&kind, NAMESPACE, name).ok()
        };
        let mut now = Self {
            is_there: object("EndpointSet").is_some(),
            ..Self::default()
        };
        now.set_source(object(set_kind::name(kind)).as_ref());
        now
    }

    fn set_source(&mut self, source: Option<&Object>) {
        self.has_source = source.is_some();
        let clusters = source.map(|source| &source["status"]["clusters"]);
        let clusters = clusters.and_then(Value::as_array).into_iter().flatten();
        let lost = clusters.filter(|cluster| cluster["state"] == ClusterState::Lost.as_str());
        let names = lost.filter_map(|cluster| cluster["name"].as_str());
        self.lost = names.map(str::to_owned).collect();
    }
}

/// EndpointSets in paths of the host.
const ENDPOINT_SETS: &str = "endpointsets";

/// The set that a pod serves for, by the label that the selectors of all sets have, and what it is to its EndpointSet.
fn serves(pod: &Object) -> Option<(String, Serves)> {
    let (metadata, status) = (&pod["metadata"], &pod["status"]);
    let set = metadata["labels"]["app"].as_str()?;
    let has_ended = ["Succeeded", "Failed"]
        .iter()
        .any(|end| status["phase"] == *end);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
    let ips = status["podIPs"].as_array().into_iter().flatten();
    let ips = ips.filter_map(|ip| ip["ip"].as_str()?.parse::<IpAddr>().ok());
    let (v4, v6): (Vec<_>, Vec<_>) = ips.partition(IpAddr::is_ipv4);
    let addresses: Vec<_> = v4
        .into_iter()
        .take(1)
        .chain(v6.into_iter().take(1))
        .collect();
    let is_draining = metadata["annotations"].get(annotations::DRAINING).is_some();
    let serves = Serves {
        is_terminating: is_draining || metadata.get("deletionTimestamp").is_some(),
        addresses,
    };
    (is_ready && !has_ended && !serves.addresses.is_empty()).then(|| (set.to_owned(), serves))
}
