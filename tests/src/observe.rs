//! What the clusters hold, as their own API servers tell it.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde_json::Value;
use sim_cluster::kinds::REPLICA_SETS;

use crate::{Fleet, fleet::FRS_PATH};

/// Replicas asked of each member.
pub type Layout = BTreeMap<String, u64>;

/// One member's local set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetState {
    /// `spec.replicas`.
    pub asked: u64,
    /// `status.replicas`.
    pub present: u64,
    /// `status.availableReplicas`.
    pub available: u64,
}

impl Fleet {
    /// The local set `name` in each member, read past all faults.
    pub fn sets(&self, name: &str) -> BTreeMap<String, SetState> {
        let state = |member: &String| {
            let set = self.stored_set(member, name);
            let count = |pointer| set.as_ref()?.pointer(pointer)?.as_u64();
            let state = SetState {
                asked: count("/spec/replicas").unwrap_or(0),
                present: count("/status/replicas").unwrap_or(0),
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

    fn stored_set(&self, member: &str, name: &str) -> Option<Arc<Value>> {
        let api = self.member(member).api();
        api.get(&REPLICA_SETS, "default", name).ok()
    }

    /// Replicas asked of each member for the set `name`.
    pub fn layout(&self, name: &str) -> Layout {
        self.sets(name)
            .into_iter()
            .map(|(member, set)| (member, set.asked))
            .collect()
    }

    /// The numbers of the layout, sorted: ties may favour any cluster.
    pub fn sorted_layout(&self, name: &str) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.layout(name).into_values().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Available replicas over all members, reachable or not.
    pub fn available(&self, name: &str) -> u64 {
        self.sets(name).values().map(|set| set.available).sum()
    }

    /// The FederatedReplicaSet as the host has it; null if it is gone.
    pub async fn frs(&self, name: &str) -> Value {
        let path = format!("{FRS_PATH}/{name}");
        self.on_host("GET", &path, &Value::Null)
            .await
            .unwrap_or(Value::Null)
    }

    /// The status of a condition: `True`, `False`, or nothing.
    pub async fn condition(&self, name: &str, type_: &str) -> Option<String> {
        self.condition_field(name, type_, "status").await
    }

    /// Whether the status says that nothing is left to do.
    pub async fn is_settled(&self, name: &str) -> bool {
        self.condition(name, "Ready").await.is_some()
            && self.condition(name, "Reconciling").await.is_none()
    }

    /// What a condition says.
    pub async fn condition_message(&self, name: &str, type_: &str) -> Option<String> {
        self.condition_field(name, type_, "message").await
    }

    async fn condition_field(&self, name: &str, type_: &str, field: &str) -> Option<String> {
        let frs = self.frs(name).await;
        let conditions = frs.pointer("/status/conditions")?.as_array()?;
        let condition = conditions.iter().find(|it| it["type"] == type_)?;
        condition[field].as_str().map(str::to_owned)
    }

    /// Reasons of the events about `name`, in the order of their first time.
    pub async fn event_reasons(&self, name: &str) -> Vec<String> {
        let events = self.events(name).await;
        let reasons = events.iter().filter_map(|it| it["reason"].as_str());
        reasons.map(str::to_owned).collect()
    }

    /// What the events about `name` with this reason say, in the order of their first time.
    pub async fn event_messages(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self.events(name).await;
        let of_reason = events.iter().filter(|it| it["reason"] == reason);
        let messages = of_reason.filter_map(|it| it["message"].as_str());
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

    /// All that a person would want to see when a wait failed.
    pub async fn describe(&self) -> String {
        let mut text = String::new();
        let list = self
            .on_host("GET", FRS_PATH, &Value::Null)
            .await
            .unwrap_or(Value::Null);
        for frs in list["items"].as_array().into_iter().flatten() {
            let name = frs["metadata"]["name"].as_str().unwrap_or_default();
            let _ = writeln!(text, "{name} at {}: {:#}", self.now(), frs["status"]);
            for (member, set) in self.sets(name) {
                let _ = writeln!(text, "  {member}: {set:?}");
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
