//! What a pod of a failed revision says: the first thing that people ask for. Read from the member once a rollout has failed, since
//! the messages of all pods would take more memory than all else.

use std::time::Duration;

use fedrs_api::{ObjectKey, annotations, labels};
use futures::future::{FutureExt, select_ok};
use reflector::{
    Collection, ReflectorSettings,
    partial::{self, Text, for_each_entry, for_each_item, is_present, null_as_default},
    printable,
};
use serde::{Deserialize, Deserializer};
use tokio::time::timeout;

use super::{Executor, MemberAccess, live_set::label};

/// A rollout that has failed waits no longer for the message.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// A pod, as far as it says why it is not available.
#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(deserialize_with = "partial::name")]
    name: String,
    #[serde(default, deserialize_with = "is_present")]
    deletion_timestamp: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    annotations: TemplateHash,
}

/// The hash of the template that the pod was created from.
#[derive(Default)]
struct TemplateHash(String);

impl<'de> Deserialize<'de> for TemplateHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut hash = Self::default();
        for_each_entry(deserializer, &[annotations::TEMPLATE_HASH], |_, value| {
            hash.0 = label(value);
        })?;
        Ok(hash)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "null_as_default")]
    init_container_statuses: Containers,
    #[serde(deserialize_with = "null_as_default")]
    container_statuses: Containers,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Conditions,
}

/// Why the first of the containers that do not run does not.
#[derive(Default)]
struct Containers(Option<String>);

/// Why the pod has no node, or is not ready.
#[derive(Default)]
struct Conditions {
    is_ready: bool,
    unscheduled: Option<String>,
    unready: Option<String>,
}

impl<'de> Deserialize<'de> for Containers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Container<'a> {
            #[serde(borrow)]
            name: Text<'a>,
            #[serde(default, borrow)]
            state: Option<State<'a>>,
        }
        #[derive(Deserialize)]
        struct State<'a> {
            #[serde(default, borrow)]
            waiting: Option<Reason<'a>>,
            #[serde(default, borrow)]
            terminated: Option<Reason<'a>>,
        }
        /// What every container waits for at first.
        const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];
        let mut containers = Self::default();
        for_each_item(deserializer, |container: Container<'_>| {
            let state = container.state;
            let failure = state.and_then(|state| state.waiting.or(state.terminated));
            let failure = failure.filter(|failure| !failure.is_one_of(&STARTING));
            if let Some(text) = failure.and_then(|failure| failure.text()) {
                let text = format!("container {}: {text}", container.name.0);
                containers.0.get_or_insert(text);
            }
        })?;
        Ok(containers)
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Condition<'a> {
            #[serde(borrow)]
            r#type: Text<'a>,
            #[serde(borrow)]
            status: Text<'a>,
            #[serde(flatten, borrow)]
            why: Reason<'a>,
        }
        let mut conditions = Self::default();
        for_each_item(deserializer, |condition: Condition<'_>| {
            match (&*condition.r#type.0, &*condition.status.0) {
                ("PodScheduled", "False") => conditions.unscheduled = condition.why.text(),
                ("Ready", "True") => conditions.is_ready = true,
                ("Ready", "False") => conditions.unready = condition.why.text(),
                _ => {}
            }
        })?;
        Ok(conditions)
    }
}

/// Reason and message of a state.
#[derive(Deserialize)]
struct Reason<'a> {
    #[serde(default, borrow)]
    reason: Option<Text<'a>>,
    #[serde(default, borrow)]
    message: Option<Text<'a>>,
}

impl Reason<'_> {
    fn is_one_of(&self, reasons: &[&str]) -> bool {
        let reason = self.reason.as_ref();
        reason.is_some_and(|reason| reasons.contains(&&*reason.0))
    }

    fn text(&self) -> Option<String> {
        let parts = [&self.reason, &self.message].into_iter().flatten();
        let parts: Vec<_> = parts
            .map(|text| &*text.0)
            .filter(|text| !text.is_empty())
            .collect();
        (!parts.is_empty()).then(|| printable(&parts.join(": ")))
    }
}

impl Pod {
    /// Why it is not available: what a container says, before what follows from that.
    fn failure(self) -> Option<String> {
        let Status {
            init_container_statuses,
            container_statuses,
            conditions,
        } = self.status;
        let nothing = (!conditions.is_ready).then(|| "not ready".to_owned());
        let why = (init_container_statuses.0)
            .or(container_statuses.0)
            .or(conditions.unscheduled)
            .or(conditions.unready)
            .or(nothing)?;
        Some(format!("pod {}: {why}", self.metadata.name))
    }
}

impl Executor {
    /// Why a pod of the template with this hash is not available, in one of `members`: `eu: pod web-x: container main:
    /// ImagePullBackOff: ...`. The answer of the first member that knows one; none if none does in time.
    pub(crate) async fn failing_pod(
        &self,
        key: &ObjectKey,
        members: &[MemberAccess],
        template: u32,
    ) -> Option<String> {
        let reads = members.iter().map(|member| {
            let read = self.failing_pod_in(key, member, template);
            read.map(|found| found.ok_or(())).boxed()
        });
        let reads: Vec<_> = reads.collect();
        if reads.is_empty() {
            return None;
        }
        let found = timeout(READ_TIMEOUT, select_ok(reads)).await;
        Some(found.ok()?.ok()?.0)
    }

    async fn failing_pod_in(
        &self,
        key: &ObjectKey,
        member: &MemberAccess,
        template: u32,
    ) -> Option<String> {
        let template = format!("{template:08x}");
        let labels = [
            (labels::REPLICA_SET, &*key.name),
            (labels::FEDERATION, &*self.federation),
        ];
        let selector = labels
            .map(|(label, value)| format!("{label}={value}"))
            .join(",");
        let path = format!("/api/v1/namespaces/{}/pods", key.namespace);
        let settings = ReflectorSettings {
            page_timeout: READ_TIMEOUT,
            ..ReflectorSettings::default()
        };
        let mut found = None;
        let client = member.client.clone();
        let collection = Collection::with_labels(path, selector);
        let listed = reflector::list(client, collection, &settings, |pod: Result<Pod, _>| {
            if let Ok(pod) = pod
                && found.is_none()
                && !pod.metadata.deletion_timestamp
                && pod.metadata.annotations.0 == template
            {
                found = pod.failure();
            }
        });
        if let Err(error) = listed.await {
            let (frs, cluster) = (key, &*member.name);
            tracing::debug!(%frs, cluster, %error, "failed to read why pods are not available");
        }
        found.map(|found| format!("{}: {found}", member.name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn waiting(reason: &str, message: &str) -> Value {
        let state = json!({ "waiting": { "reason": reason, "message": message } });
        json!([{ "name": "main", "state": state }])
    }

    fn unready() -> Value {
        let why = "containers with unready status: [main]";
        json!([{ "type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": why }])
    }

    #[test]
    fn a_pod_says_why_it_is_not_available() {
        let ended = json!({ "terminated": { "reason": "OOMKilled", "exitCode": 137 } });
        let no_node = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes" });
        for (status, expected) in [
            (
                json!({ "containerStatuses": waiting("ImagePullBackOff", "no such image"), "conditions": unready() }),
                Some("container main: ImagePullBackOff: no such image"),
            ),
            (
                json!({ "containerStatuses": waiting("ContainerCreating", ""), "conditions": unready() }),
                Some("ContainersNotReady: containers with unready status: [main]"),
            ),
            (
                json!({ "initContainerStatuses": waiting("CrashLoopBackOff", ""), "containerStatuses": waiting("Error", "") }),
                Some("container main: CrashLoopBackOff"),
            ),
            (
                json!({ "containerStatuses": [{ "name": "main", "state": ended }] }),
                Some("container main: OOMKilled"),
            ),
            (
                json!({ "conditions": [no_node] }),
                Some("Unschedulable: 0/3 nodes"),
            ),
            (
                json!({ "containerStatuses": [{ "name": "main", "state": { "running": {} } }], "conditions": [{ "type": "Ready", "status": "True" }] }),
                None,
            ),
            (Value::Null, Some("not ready")),
        ] {
            let pod = json!({ "metadata": { "name": "web-1" }, "status": status });
            let read: Pod = serde_json::from_str(&pod.to_string()).unwrap();
            let expected = expected.map(|why| format!("pod web-1: {why}"));
            assert_eq!(read.failure(), expected, "{status}");
        }
    }
}
