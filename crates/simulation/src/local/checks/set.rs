//! A set over time.

use std::collections::{BTreeMap, BTreeSet};

use fedrs_api::LocalRecord;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use crate::history::History;

/// What a user wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spec {
    pub(super) replicas: usize,
    /// The pods that may be unavailable (L14).
    pub(super) limit: usize,
    pub(super) speed: Option<Speed>,
    pub(super) min_ready: Duration,
    /// Whether no update may begin (L8, C4).
    pub(super) is_paused: bool,
    /// Whether no pod may be changed (L8).
    pub(super) is_stopped: bool,
    /// Whether the set is being deleted, or gone.
    pub(super) is_deleted: bool,
}

/// How many updates may begin within a time (L15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed {
    pub(super) portion: usize,
    pub(super) min_delay: Duration,
}

/// A set.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) spec: History<Spec>,
    /// Since when the speed has been the same.
    pub(super) speed_since: Instant,
    /// What its status says has begun.
    pub(super) record: LocalRecord,
    /// Since when each update is in the record.
    pub(super) recorded: BTreeMap<String, Instant>,
    /// Which of these have begun to change their pods.
    pub(super) started: BTreeSet<String>,
    /// When updates have begun, and since when they were in the record.
    pub(super) starts: Vec<(Instant, Instant)>,
}

impl Set {
    pub(super) fn new(object: &Value) -> Self {
        let record = record(object).unwrap_or_default();
        Self {
            name: super::pod::text(&object["metadata"]["name"]),
            spec: History::starting(Spec::of(object)),
            speed_since: Instant::now(),
            record,
            recorded: BTreeMap::new(),
            started: BTreeSet::new(),
            starts: Vec::new(),
        }
    }

    /// It has changed.
    pub(super) fn put(&mut self, object: &Value) {
        let spec = Spec::of(object);
        if spec.speed != self.spec.now().speed {
            self.speed_since = Instant::now();
        }
        self.spec.put(spec);
        let record = record(object).unwrap_or_default();
        let now = Instant::now();
        self.recorded
            .retain(|uid, _| record.updates.contains_key(uid));
        for uid in record.updates.keys() {
            self.recorded.entry(uid.clone()).or_insert(now);
        }
        self.started.retain(|uid| record.updates.contains_key(uid));
        self.record = record;
    }

    /// It is gone.
    pub(super) fn remove(&mut self) {
        let mut spec = self.spec.now().clone();
        spec.is_deleted = true;
        self.spec.put(spec);
    }

    /// Whether an update or an eviction of the pod has begun, as the record says.
    pub(super) fn has_begun(&self, uid: &str) -> bool {
        has_begun(&self.record, uid)
    }
}

/// Whether an update or an eviction of the pod has begun.
pub(super) fn has_begun(record: &LocalRecord, uid: &str) -> bool {
    let eviction = record.evictions.get(uid);
    record.updates.contains_key(uid) || eviction.is_some_and(|eviction| eviction.begun)
}

/// The record in the status of a set.
pub(in crate::local) fn record(object: &Value) -> Option<LocalRecord> {
    serde_json::from_str(object["status"]["record"].as_str()?).ok()
}

impl Spec {
    fn of(object: &Value) -> Self {
        let spec = &object["spec"];
        let number =
            |value: &Value| usize::try_from(value.as_u64().unwrap_or_default()).unwrap_or(0);
        let seconds = |value: &Value| Duration::from_secs(value.as_u64().unwrap_or_default());
        let strategy = &spec["deploymentStrategy"];
        let replicas = number(&spec["replicas"]);
        let speed = &strategy["deploySpeed"];
        Self {
            replicas,
            limit: limit(&strategy["maxUnavailable"], replicas),
            speed: speed.is_object().then(|| Speed {
                portion: number(&speed["updatePortion"]),
                min_delay: seconds(&speed["minDelay"]),
            }),
            min_ready: seconds(&spec["minReadySeconds"]),
            is_paused: spec["paused"] == true || spec["updateMode"] == "Never",
            is_stopped: spec["stopped"] == true,
            is_deleted: !object["metadata"]["deletionTimestamp"].is_null(),
        }
    }
}

/// A number, or a percentage that is rounded down, but to no less than 1 (L5).
pub(in crate::local) fn limit(max_unavailable: &Value, replicas: usize) -> usize {
    let percent = max_unavailable
        .as_str()
        .and_then(|text| text.strip_suffix('%')?.parse::<usize>().ok());
    match percent {
        Some(0) => 0,
        Some(percent) => (replicas * percent / 100).max(1),
        None => usize::try_from(max_unavailable.as_u64().unwrap_or_default()).unwrap_or(0),
    }
}
