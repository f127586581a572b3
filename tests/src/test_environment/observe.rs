//! The state of the clusters, as their API servers report it.

use std::{collections::BTreeMap, fmt::Write as _};

use http::header::ACCEPT;
use serde_json::Value;

use super::TestEnvironment;
use crate::{Layout, LocalSetState};

impl TestEnvironment {
    /// The local workload `name` in each member.
    pub async fn sets(&self, name: &str) -> BTreeMap<String, LocalSetState> {
        let mut sets = BTreeMap::new();
        for member in self.member_names() {
            let set = self.local_set(&member, name).await;
            let count = |pointer| set.pointer(pointer)?.as_u64();
            let state = LocalSetState {
                desired: count("/spec/replicas").unwrap_or(0),
                existing: count("/status/replicas").unwrap_or(0),
                available: count("/status/availableReplicas").unwrap_or(0),
            };
            sets.insert(member, state);
        }
        sets
    }

    /// A member's local workload; null if it does not exist.
    pub async fn local_set(&self, member: &str, name: &str) -> Value {
        self.on_member(member, "GET", &self.set_path(name), &Value::Null)
            .await
            .unwrap_or(Value::Null)
    }

    /// The pods in the scenario's namespace of a member.
    pub async fn pods(&self, member: &str) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        items(self.on_member(member, "GET", &path, &Value::Null).await)
    }

    /// The desired replicas of the set `name` in each member.
    pub async fn layout(&self, name: &str) -> Layout {
        let sets = self.sets(name).await.into_iter();
        sets.map(|(member, set)| (member, set.desired)).collect()
    }

    /// The numbers of the layout, sorted: ties may favor any cluster.
    pub async fn sorted_layout(&self, name: &str) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.layout(name).await.into_values().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Available replicas over all members, reachable or not.
    pub async fn available(&self, name: &str) -> u64 {
        let sets = self.sets(name).await;
        sets.values().map(|set| set.available).sum()
    }

    /// The set on the host; null if it does not exist.
    pub async fn frs(&self, name: &str) -> Value {
        self.on_host("GET", &self.frs_path(name), &Value::Null)
            .await
            .unwrap_or(Value::Null)
    }

    /// A Table from the host, as kubectl requests it.
    pub async fn table(&self, path: &str) -> Value {
        let request = http::Request::get(path)
            .header(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())
            .expect("a path makes a request");
        let table = self.host.request(request).await;
        table.expect("the host makes tables")
    }

    /// Whether the controller has reached the desired state of the set.
    pub async fn is_settled(&self, name: &str) -> bool {
        self.condition(name, "Ready").await.is_some()
            && self.condition(name, "Reconciling").await.is_none()
    }

    /// The status of a condition: `True`, `False`, or none.
    pub async fn condition(&self, name: &str, type_: &str) -> Option<String> {
        let frs = self.frs(name).await;
        let conditions = frs.pointer("/status/conditions")?.as_array()?;
        let condition = conditions
            .iter()
            .find(|condition| condition["type"] == type_)?;
        condition["status"].as_str().map(str::to_owned)
    }

    /// The reasons of the events of `name`, ordered by their first timestamp.
    pub async fn event_reasons(&self, name: &str) -> Vec<String> {
        let list = self.host_list("/api/v1", "events").await;
        let mut events: Vec<&Value> = list
            .iter()
            .filter(|event| event["involvedObject"]["name"] == name)
            .collect();
        events.sort_by_key(|event| event["firstTimestamp"].to_string());
        let reasons = events.iter().filter_map(|event| event["reason"].as_str());
        reasons.map(str::to_owned).collect()
    }

    /// The state of all objects, to explain a wait that timed out.
    pub async fn describe(&self) -> String {
        let mut text = String::new();
        let sets = items(self.on_host("GET", &self.frs_path(""), &Value::Null).await);
        for frs in &sets {
            let name = frs["metadata"]["name"].as_str().unwrap_or_default();
            let _ = writeln!(text, "{name}: {:#}", frs["status"]);
            for (member, set) in self.sets(name).await {
                let _ = writeln!(text, "  {member}: {set:?}");
            }
        }
        let path = "/apis/fedrs.dev/v1alpha1/memberclusters";
        let members = self.on_host("GET", path, &Value::Null).await;
        for member in members.unwrap_or_default()["items"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let _ = writeln!(
                text,
                "member {}: {}",
                member["metadata"]["name"], member["status"]
            );
        }
        for member in self.member_names() {
            let _ = write!(text, "{}", self.describe_local_sets(&member).await);
        }
        for event in self.host_list("/api/v1", "events").await {
            let _ = writeln!(text, "event {}: {}", event["reason"], event["message"]);
        }
        let _ = write!(text, "{}", self.log());
        text
    }

    /// The LocalReplicaSets of a member, and their events.
    async fn describe_local_sets(&self, member: &str) -> String {
        let mut text = String::new();
        let namespace = &self.namespace;
        let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/localreplicasets");
        let sets = items(self.on_member(member, "GET", &path, &Value::Null).await);
        if sets.is_empty() {
            return text;
        }
        for set in sets {
            let name = &set["metadata"]["name"];
            let _ = writeln!(text, "{member} has {name}: {}", set["status"]);
        }
        let path = format!("/api/v1/namespaces/{namespace}/events");
        for event in items(self.on_member(member, "GET", &path, &Value::Null).await) {
            let (about, reason) = (&event["involvedObject"]["name"], &event["reason"]);
            let message = &event["message"];
            let _ = writeln!(text, "{member} event of {about}: {reason}: {message}");
        }
        text
    }

    /// The objects of one kind in the scenario's namespace on the host.
    async fn host_list(&self, group: &str, plural: &str) -> Vec<Value> {
        let path = format!("{group}/namespaces/{}/{plural}", self.namespace);
        items(self.on_host("GET", &path, &Value::Null).await)
    }
}

/// The items of a list; none if the request failed.
fn items<E>(list: Result<Value, E>) -> Vec<Value> {
    match list
        .ok()
        .and_then(|mut list| list.get_mut("items").map(Value::take))
    {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
