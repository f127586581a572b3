//! What there is of a set, counted for its status. Pure.

use std::{collections::BTreeMap, sync::Arc};

use fedrs_api::{FieldError, PodPort, ValidEndpointSet};
use jiff::Timestamp;

use crate::{
    member::Member, member_state::MemberState, pod::Pod, set::SetKey, snapshot::concerns,
    state::State,
};

/// What there is of a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetReport {
    /// The set, or what is wrong with it.
    pub(crate) set: Result<Arc<ValidEndpointSet>, Vec<FieldError>>,
    pub(crate) has_source: bool,
    /// Pods of the source in its clusters, whatever their state.
    pub(crate) pods: usize,
    /// Load balancers with an address, if those are its endpoints.
    pub(crate) balancers: Option<usize>,
    /// Ports that none of these pods, or load balancers, has: the index in `spec.ports`, and the name.
    pub(crate) missing_ports: Vec<(usize, String)>,
    /// Its clusters, by name.
    pub(crate) clusters: Vec<ClusterReport>,
}

/// What there is of a set in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterReport {
    pub(crate) name: Arc<str>,
    pub(crate) counts: Counts,
    /// Whether its pods have been listed, and its Services if the set has the pods of one.
    pub(crate) is_known: bool,
    pub(crate) stale_since: Option<Timestamp>,
}

/// How many endpoints of a set a cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) endpoints: usize,
    /// Those that new requests may be sent to.
    pub(crate) ready: usize,
    /// More, which answers leave out.
    pub(crate) omitted: usize,
}

impl SetReport {
    /// What there is of the set `key`, if it exists.
    pub(crate) fn of(state: &State, key: &SetKey) -> Option<Self> {
        let entry = state.set(key)?;
        let Ok(set) = &entry.set else {
            return Some(Self {
                set: entry.set.clone(),
                has_source: false,
                pods: 0,
                balancers: None,
                missing_ports: Vec::new(),
                clusters: Vec::new(),
            });
        };
        let members: Vec<_> = (state.members())
            .filter(|member| concerns(set, &member.name))
            .collect();
        let pods = members
            .iter()
            .flat_map(|member| member.pods(&key.namespace));
        let pods: Vec<&Pod> = pods
            .map(|pod| &**pod)
            .filter(|pod| entry.selects(pod))
            .collect();
        let balancers = entry.balancers();
        let balancers: Option<Vec<&Pod>> = balancers.map(|balancers| {
            let all = balancers.all();
            all.filter(|one| concerns(set, &one.cluster)).collect()
        });
        let mut counts = BTreeMap::<&str, Counts>::new();
        for (endpoint, is_omitted) in entry.all() {
            let counts = counts.entry(endpoint.cluster()).or_default();
            if is_omitted {
                counts.omitted += 1;
            } else {
                counts.endpoints += 1;
                counts.ready += usize::from(endpoint.is_ready(set));
            }
        }
        let cluster = |member: &&Member| {
            let counts = counts.get(&*member.name).copied().unwrap_or_default();
            let staleness = MemberState::of(member).staleness(set);
            ClusterReport {
                name: Arc::clone(&member.name),
                counts,
                is_known: staleness.is_known,
                stale_since: staleness.stale_since,
            }
        };
        Some(Self {
            set: entry.set.clone(),
            has_source: entry.has_source(),
            pods: pods.len(),
            balancers: balancers.as_ref().map(Vec::len),
            missing_ports: missing_ports(set, balancers.as_ref().unwrap_or(&pods)),
            clusters: members.iter().map(cluster).collect(),
        })
    }
}

/// Ports that have a name that none of these has. None without any.
fn missing_ports(set: &ValidEndpointSet, pods: &[&Pod]) -> Vec<(usize, String)> {
    let ports = set.ports.iter().enumerate();
    let missing = ports.filter_map(|(index, port)| match &port.port {
        PodPort::Name(name) if !pods.iter().any(|pod| pod.ports.contains_key(name)) => {
            Some((index, name.clone()))
        }
        _ => None,
    });
    missing.filter(|_| !pods.is_empty()).collect()
}
