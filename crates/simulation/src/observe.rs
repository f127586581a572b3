//! The state of the clusters, as their API servers report it, and the layout that the scheduler gives them.

use std::{collections::BTreeMap, fmt::Write as _};

use federated_scheduler::{Cluster, Preference, Request, plan};
use fedrs_api::{ClusterPreference, ValidFrs};
use serde_json::Value;
use sim_cluster::Object;

use crate::{SimFederation, set_kind};

/// Desired replicas of each member.
pub type Layout = BTreeMap<String, u64>;

/// The replicas of one member's local ReplicaSet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalSetState {
    /// `spec.replicas`.
    pub desired: u64,
    /// `status.replicas`.
    pub existing: u64,
    /// `status.availableReplicas`.
    pub available: u64,
}

impl SimFederation {
    /// The local set `name` in each member, read past all faults.
    pub fn sets(&self, name: &str) -> BTreeMap<String, LocalSetState> {
        let state = |member: &String| {
            let set = self.stored_set(member, name);
            let count = |pointer| set.as_ref()?.pointer(pointer)?.as_u64();
            let state = LocalSetState {
                desired: count("/spec/replicas").unwrap_or(0),
                existing: count("/status/replicas").unwrap_or(0),
                available: count("/status/availableReplicas").unwrap_or(0),
            };
            (member.clone(), state)
        };
        self.member_names().iter().map(state).collect()
    }

    /// The local set's object, read past all faults.
    pub fn local_set(&self, member: &str, name: &str) -> Option<Value> {
        let set = self.stored_set(member, name)?;
        Some(Value::clone(&set))
    }

    /// The same object without a copy.
    pub(crate) fn stored_set(&self, member: &str, name: &str) -> Option<Object> {
        let api = self.member(member).api();
        let kind = set_kind::local(self.kind_of(name));
        api.get(kind, "default", name).ok()
    }

    /// The desired replicas of the set `name` in each member.
    pub fn layout(&self, name: &str) -> Layout {
        self.sets(name)
            .into_iter()
            .map(|(member, set)| (member, set.desired))
            .collect()
    }

    /// The replicas of each of `members` in the scheduler's layout of `frs` if none of them is full, and of all of them.
    pub fn planned_layout(&self, frs: &ValidFrs, members: &[String]) -> (Vec<u64>, u64) {
        let current = self.layout(&frs.key.name);
        let preference = |preference: &ClusterPreference| Preference {
            min: preference.min_replicas.unsigned_abs(),
            max: preference.max_replicas.map(i64::unsigned_abs),
            weight: preference.weight.unsigned_abs(),
        };
        let cluster = |member| Cluster {
            name: member,
            preference: frs.placement.for_cluster(member).map(preference),
            current: current[member],
            capacity: None,
        };
        let members = members.iter().map(String::as_str);
        let layout = plan(&Request {
            key: &frs.key.to_string(),
            replicas: frs.replicas.into(),
            rebalance: true,
            clusters: &members.map(cluster).collect::<Vec<_>>(),
        });
        let shares = layout.shares.iter().map(|share| share.replicas);
        (shares.collect(), u64::from(frs.replicas) - layout.unplaced)
    }

    /// The numbers of the layout, sorted: ties may favor any cluster.
    pub fn sorted_layout(&self, name: &str) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.layout(name).into_values().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Available replicas over all members, reachable or not.
    pub fn available(&self, name: &str) -> u64 {
        self.sets(name).values().map(|set| set.available).sum()
    }

    /// The FederatedReplicaSet on the host; null if it does not exist.
    pub async fn frs(&self, name: &str) -> Value {
        let path = self.set_path(name);
        self.on_host("GET", &path, &Value::Null)
            .await
            .unwrap_or(Value::Null)
    }

    /// The status of a condition: `True`, `False`, or none.
    pub async fn condition(&self, name: &str, type_: &str) -> Option<String> {
        self.condition_field(name, type_, "status").await
    }

    /// Whether the controller has reached the desired state of the set.
    pub async fn is_settled(&self, name: &str) -> bool {
        self.condition(name, "Ready").await.is_some()
            && self.condition(name, "Reconciling").await.is_none()
    }

    /// The message of a condition.
    pub async fn condition_message(&self, name: &str, type_: &str) -> Option<String> {
        self.condition_field(name, type_, "message").await
    }

    async fn condition_field(&self, name: &str, type_: &str, field: &str) -> Option<String> {
        let frs = self.frs(name).await;
        let conditions = frs.pointer("/status/conditions")?.as_array()?;
        let condition = conditions
            .iter()
            .find(|condition| condition["type"] == type_)?;
        condition[field].as_str().map(str::to_owned)
    }

    /// The reasons of the events of `name`, ordered by their first timestamp.
    pub async fn event_reasons(&self, name: &str) -> Vec<String> {
        let events = self.events(name).await;
        let reasons = events.iter().filter_map(|event| event["reason"].as_str());
        reasons.map(str::to_owned).collect()
    }

    /// The messages of the events of `name` with this reason, ordered by their first timestamp.
    pub async fn event_messages(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self.events(name).await;
        let of_reason = events.iter().filter(|event| event["reason"] == reason);
        let messages = of_reason.filter_map(|event| event["message"].as_str());
        messages.map(str::to_owned).collect()
    }

    async fn events(&self, name: &str) -> Vec<Value> {
        let path = "/api/v1/namespaces/default/events";
        let list = self.on_host("GET", path, &Value::Null).await;
        let mut list = list.unwrap_or_default();
        let events = list["items"].as_array_mut().map(std::mem::take);
        let mut events = events.unwrap_or_default();
        events.retain(|event| event["involvedObject"]["name"] == name);
        events.sort_by_key(|event| event["firstTimestamp"].to_string());
        events
    }

    /// The state of all objects, to explain a wait that timed out.
    pub async fn describe(&self) -> String {
        let mut text = String::new();
        for kind in set_kind::ALL {
            let path = set_kind::collection(kind);
            let list = self.on_host("GET", &path, &Value::Null).await;
            let list = list.unwrap_or(Value::Null);
            for frs in list["items"].as_array().into_iter().flatten() {
                let name = frs["metadata"]["name"].as_str().unwrap_or_default();
                let _ = writeln!(text, "{name} at {}: {:#}", self.now(), frs["status"]);
                for (member, set) in self.sets(name) {
                    let _ = writeln!(text, "  {member}: {set:?}");
                }
            }
        }
        let path = "/api/v1/namespaces/default/events";
        let list = self
            .on_host("GET", path, &Value::Null)
            .await
            .unwrap_or(Value::Null);
        for event in list["items"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  event {}: {}", event["reason"], event["message"]);
        }
        text
    }
}
