//! One generated member: local ReplicaSets as they are created, and pods that are ready as soon as their set exists.
//!
//! It stores only the sets, and generates lists and events of pods from them. It implements what the controller uses to
//! create sets and to watch; any other write is an error, and counts like all writes.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context, bail};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// The number of nodes of a member. Its pods name them in turn.
const NODES: u64 = 10;
/// When everything was created.
const CREATED: &str = "2026-11-01T10:00:00Z";

/// The kinds that the controller watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ReplicaSets,
    Pods,
    Nodes,
}

impl Kind {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ReplicaSets => ("apps/v1", "ReplicaSet"),
            Self::Pods => ("v1", "Pod"),
            Self::Nodes => ("v1", "Node"),
        }
    }
}

/// A member cluster.
pub(super) struct Member {
    pub(super) name: String,
    state: Mutex<State>,
    /// The version of the last change; changes while the state is locked.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    sets: BTreeMap<String, LocalSet>,
    /// Creations and deletions with their versions, in order.
    log: Vec<(u64, LocalSet, &'static str)>,
}

/// A local ReplicaSet with its pods.
#[derive(Clone)]
struct LocalSet {
    name: String,
    version: u64,
    replicas: u64,
    json: Bytes,
    /// A pod of it, with placeholders for what differs between pods.
    pod: Bytes,
}

impl Member {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            state: Mutex::default(),
            changed: watch::Sender::new(1),
        }
    }

    /// Creates the ReplicaSet that `body` describes. Returns it without pods, as an API server does.
    pub(super) fn create(&self, body: &[u8]) -> anyhow::Result<Bytes> {
        let mut object: Value = serde_json::from_slice(body)?;
        let metadata = &mut object["metadata"];
        let name = metadata["name"].as_str().context("no name")?.to_owned();
        let mut state = self.state.lock();
        if state.sets.contains_key(&name) {
            bail!("{name} exists");
        }
        let version = *self.changed.borrow() + 1;
        metadata["uid"] = uid(&self.name, &name, version).into();
        metadata["resourceVersion"] = version.to_string().into();
        metadata["creationTimestamp"] = CREATED.into();
        metadata["generation"] = 1.into();
        object["status"] = json!({ "replicas": 0 });
        let answer = Bytes::from(object.to_string());
        let replicas = object["spec"]["replicas"].as_u64().context("no replicas")?;
        let version = version + 1;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        object["status"] = json!({ "observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas, "fullyLabeledReplicas": replicas });
        let set = LocalSet {
            pod: Bytes::from(pod(&object).to_string()),
            json: Bytes::from(object.to_string()),
            name: name.clone(),
            version,
            replicas,
        };
        state.log.push((version, set.clone(), "ADDED"));
        state.sets.insert(name, set);
        self.changed.send_replace(version);
        Ok(answer)
    }

    /// Deletes a set with its pods, as a user of the member. Returns its replicas.
    pub(super) fn delete(&self, name: &str) -> Option<u64> {
        let mut state = self.state.lock();
        let set = state.sets.remove(name)?;
        let version = *self.changed.borrow() + 1;
        let replicas = set.replicas;
        state.log.push((version, set, "DELETED"));
        self.changed.send_replace(version);
        Some(replicas)
    }

    /// The names of all sets.
    pub(super) fn sets(&self) -> Vec<String> {
        self.state.lock().sets.keys().cloned().collect()
    }

    /// A page of at most `limit` objects, from `from` on: the name of a set, and the number of a pod.
    pub(super) fn list(&self, kind: Kind, from: &str, limit: usize) -> Bytes {
        let (api_version, name) = kind.names();
        let mut page = format!(r#"{{"apiVersion":"{api_version}","kind":"{name}List","items":["#);
        let state = self.state.lock();
        let (first, skipped) = from.split_once('/').unwrap_or((from, "0"));
        let mut skipped: u64 = skipped.parse().unwrap_or(0);
        let (mut count, mut next) = (0, String::new());
        let mut push = |object: &str| {
            if count > 0 {
                page.push(',');
            }
            count += 1;
            page.push_str(object);
            count >= limit
        };
        match kind {
            Kind::Nodes => {
                for number in 0..NODES {
                    push(&node(number));
                }
            }
            Kind::ReplicaSets | Kind::Pods => 'sets: {
                for set in state.sets.range(first.to_owned()..).map(|(_, set)| set) {
                    for number in skipped..set.objects(kind) {
                        if push(&set.object(kind, number)) {
                            next = format!("{}/{}", set.name, number + 1);
                            break 'sets;
                        }
                    }
                    skipped = 0;
                }
            }
        }
        let version = *self.changed.borrow();
        let metadata = json!({ "resourceVersion": version.to_string(), "continue": next });
        let _ = write!(page, r#"],"metadata":{metadata}}}"#);
        Bytes::from(page)
    }

    /// The events since `version`, and the version after the last of them.
    pub(super) fn events(&self, kind: Kind, version: u64) -> (Bytes, u64) {
        let state = self.state.lock();
        let from = state.log.partition_point(|(at, ..)| *at <= version);
        let mut lines = String::new();
        for (_, set, event) in &state.log[from..] {
            for number in 0..set.objects(kind) {
                let object = set.object(kind, number);
                let _ = writeln!(lines, r#"{{"type":"{event}","object":{object}}}"#);
            }
        }
        (Bytes::from(lines), *self.changed.borrow())
    }

    /// Follows the version of the last change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

impl LocalSet {
    fn objects(&self, kind: Kind) -> u64 {
        match kind {
            Kind::ReplicaSets => 1,
            Kind::Pods => self.replicas,
            Kind::Nodes => 0,
        }
    }

    fn object(&self, kind: Kind, number: u64) -> String {
        let text = |json: &Bytes| String::from_utf8_lossy(json).into_owned();
        if kind != Kind::Pods {
            return text(&self.json);
        }
        let pod = text(&self.pod);
        let mut parts = pod.split('@');
        // Split at the placeholders, in their order.
        let fields = [
            format!("{}-{number:04}", self.name),
            uid(&self.name, "pod", self.version * 100_000 + number),
            self.version.to_string(),
            format!("node-{}", number % NODES),
        ];
        let mut object = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (mark, rest) = part.split_at(1);
            let field = mark.parse::<usize>().ok().and_then(|mark| fields.get(mark));
            object.push_str(field.map_or("", String::as_str));
            object.push_str(rest);
        }
        object
    }
}

/// A pod of `set`, with the placeholders `@0` for its name, `@1` for its uid, `@2` for its version and `@3` for its node.
fn pod(set: &Value) -> Value {
    let (metadata, template) = (&set["metadata"], &set["spec"]["template"]);
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": CREATED });
    let kinds = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    let mut spec = template["spec"].clone();
    spec["nodeName"] = "@3".into();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "@0", "generateName": metadata["name"], "namespace": metadata["namespace"], "uid": "@1",
            "resourceVersion": "@2", "creationTimestamp": CREATED,
            "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": metadata["name"],
                "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true }],
        },
        "spec": spec,
        "status": {
            "phase": "Running", "qosClass": "Burstable", "startTime": CREATED, "hostIP": "10.0.0.7", "podIP": "10.1.7.23",
            "conditions": kinds.map(condition),
            "containerStatuses": [{
                "name": "main", "ready": true, "started": true, "restartCount": 0, "image": "registry.example/main:1",
                "imageID": format!("registry.example/main@sha256:{}", "0123456789abcdef".repeat(4)),
                "containerID": format!("containerd://{}", "fedcba9876543210".repeat(4)),
                "state": { "running": { "startedAt": CREATED } }, "lastState": {},
            }],
        },
    })
}

fn node(number: u64) -> String {
    let resources = json!({ "cpu": "64", "memory": "256Gi", "pods": "10000" });
    let name = format!("node-{number}");
    json!({
        "metadata": { "name": name, "uid": uid(&name, "", number), "resourceVersion": "1" },
        "status": {
            "capacity": resources, "allocatable": resources,
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": CREATED }],
        },
    })
    .to_string()
}

/// A uid that looks random.
fn uid(part: &str, of: &str, number: u64) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (part, of, number, salt).hash(&mut hasher);
        hasher.finish()
    };
    let (a, b) = (half(0), half(1));
    let (c, d) = (b >> 48, b & 0xffff_ffff_ffff);
    format!(
        "{:08x}-{:04x}-4{:03x}-{c:04x}-{d:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff
    )
}
