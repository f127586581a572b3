//! A local set (apps/v1 `ReplicaSet`), decoded into what a check needs; of its template only a hash is kept.

use fedrs_api::SetKey;
use jiff::Timestamp;
use reflector::{
    Uid, Versioned,
    partial::{for_each_item, is_present, null_as_default},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    view::{ReplicaFailure, SetFact},
    wire::{ControllerOwner, Marks},
};

/// Messages of members are kept for explanations; longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 512;

/// A `ReplicaSet` as it comes over the wire, partially.
#[derive(Debug, Deserialize)]
pub struct SetObject {
    pub(crate) metadata: SetMeta,
    spec: SetSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: SetStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMeta {
    name: Box<str>,
    namespace: Box<str>,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    #[serde(default)]
    generation: i64,
    #[serde(default, deserialize_with = "is_present")]
    deletion_timestamp: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: Marks,
    #[serde(default, deserialize_with = "null_as_default")]
    owner_references: ControllerOwner,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetSpec {
    /// The API server's own default.
    #[serde(default = "one")]
    replicas: u32,
    #[serde(default)]
    min_ready_seconds: i32,
    #[serde(default)]
    selector: Value,
    #[serde(default)]
    template: Value,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SetStatus {
    observed_generation: i64,
    replicas: u32,
    ready_replicas: u32,
    available_replicas: u32,
    fully_labeled_replicas: u32,
    #[serde(deserialize_with = "replica_failure")]
    conditions: Option<ReplicaFailure>,
}

/// Of all conditions, `ReplicaFailure` while it is true (F32).
fn replica_failure<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ReplicaFailure>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Condition {
        r#type: String,
        status: String,
        last_transition_time: Option<Timestamp>,
        #[serde(default, deserialize_with = "null_as_default")]
        message: String,
    }
    #[derive(Default)]
    struct Conditions(Option<ReplicaFailure>);

    impl<'de> Deserialize<'de> for Conditions {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let mut failure = None;
            for_each_item(deserializer, |condition: Condition| {
                if condition.r#type == "ReplicaFailure" && condition.status == "True" {
                    failure = Some(ReplicaFailure {
                        since: condition
                            .last_transition_time
                            .unwrap_or(Timestamp::UNIX_EPOCH),
                        message: condition.message.chars().take(MAX_MESSAGE_CHARS).collect(),
                    });
                }
            })?;
            Ok(Self(failure))
        }
    }

    Ok(null_as_default::<D, Conditions>(deserializer)?.0)
}

impl Versioned for SetObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl From<SetObject> for SetFact {
    /// The floor is the object's own replicas: what was asked for before only a store knows.
    fn from(
        SetObject {
            metadata,
            spec,
            status,
        }: SetObject,
    ) -> Self {
        Self {
            key: SetKey::new(metadata.namespace, metadata.name),
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            observed_generation: status.observed_generation,
            replicas: spec.replicas,
            current: status.replicas,
            ready: status.ready_replicas,
            available: status.available_replicas,
            fully_labeled: status.fully_labeled_replicas,
            replica_failure: status.conditions,
            spec_hash: spec_hash(&spec.template, spec.min_ready_seconds, &spec.selector),
            floor: spec.replicas,
            federation: metadata
                .labels
                .federation
                .map(String::from)
                .unwrap_or_default(),
            member: metadata.labels.member.map(String::from).unwrap_or_default(),
            deleting: metadata.deletion_timestamp,
            controlled: metadata.owner_references.0.is_some(),
        }
    }
}

impl SetFact {
    /// Reads an apps/v1 `ReplicaSet`, as a member answers to a write.
    ///
    /// # Errors
    /// If it isn't JSON, or not of that form.
    pub fn from_json(object: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice::<SetObject>(object).map(Self::from)
    }

    /// Reads an apps/v1 `ReplicaSet` that is parsed already.
    ///
    /// # Errors
    /// If it isn't of that form.
    pub fn from_value(object: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value::<SetObject>(object).map(Self::from)
    }

    pub(crate) fn id(&self) -> Uid {
        Uid::of(&self.uid)
    }
}

/// Hash of what makes a set's pods (F29): XXH3-64 of the canonical JSON of template, minReadySeconds and selector.
///
/// It is kept in statuses on the host, so it must not change between versions of fedrs.
pub fn spec_hash(template: &Value, min_ready_seconds: i32, selector: &Value) -> u64 {
    let mut canonical = Vec::with_capacity(1024);
    for part in [template, &Value::from(min_ready_seconds), selector] {
        write_canonical(part, &mut canonical);
        canonical.push(b'\n');
    }
    xxh3_64(&canonical)
}

/// JSON with sorted keys, whatever order the map type has, and without members that are null: they mean the same
/// as absent ones, and API servers differ in showing them (`creationTimestamp: null` in templates).
fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (key, value) in members {
                write_scalar(key, out);
                out.push(b':');
                write_canonical(value, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_canonical(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        scalar => write_scalar(scalar, out),
    }
}

fn write_scalar(scalar: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, scalar)
        .expect("text, numbers and booleans are JSON, and a Vec takes any bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set() -> Value {
        json!({
            "metadata": {
                "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "12", "generation": 3,
                "labels": {"fedrs.dev/federation": "fed", "fedrs.dev/replica-set": "web", "fedrs.dev/member-cluster": "a"},
            },
            "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": []}}},
            "status": {"observedGeneration": 2, "replicas": 4, "readyReplicas": 3, "availableReplicas": 2, "fullyLabeledReplicas": 1,
                "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                    "lastTransitionTime": "2026-11-01T00:00:00Z", "message": "exceeded quota"}]},
        })
    }

    fn hash_of(change: impl FnOnce(&mut Value)) -> u64 {
        let mut set = set();
        change(&mut set);
        SetFact::from_value(set).unwrap().spec_hash
    }

    #[test]
    fn reads_what_a_check_needs() {
        let fact = SetFact::from_json(set().to_string().as_bytes()).unwrap();
        let failure = ReplicaFailure {
            since: "2026-11-01T00:00:00Z".parse().unwrap(),
            message: "exceeded quota".into(),
        };
        let expected = SetFact {
            key: SetKey::new("default", "web"),
            uid: "u".into(),
            resource_version: "12".into(),
            generation: 3,
            observed_generation: 2,
            replicas: 5,
            current: 4,
            ready: 3,
            available: 2,
            fully_labeled: 1,
            replica_failure: Some(failure),
            spec_hash: fact.spec_hash,
            floor: 5,
            federation: "fed".into(),
            member: "a".into(),
            deleting: false,
            controlled: false,
        };
        assert_eq!(fact, expected);
    }

    #[test]
    fn f29_the_hash_is_of_what_makes_pods() {
        let original = hash_of(|_| {});
        assert_eq!(
            original, 0x9616_3d58_1b80_6a22,
            "a new hash means a write to every local set"
        );
        for (name, same) in [
            (
                "replicas",
                hash_of(|set| set["spec"]["replicas"] = json!(9)),
            ),
            ("status", hash_of(|set| set["status"] = Value::Null)),
            (
                "labels of the set",
                hash_of(|set| set["metadata"]["labels"]["x"] = json!("y")),
            ),
            (
                "null",
                hash_of(|set| set["spec"]["template"]["metadata"] = Value::Null),
            ),
            (
                "the default written out",
                hash_of(|set| set["spec"]["minReadySeconds"] = json!(0)),
            ),
        ] {
            assert_eq!(same, original, "{name}");
        }
        for (name, other) in [
            (
                "template",
                hash_of(|set| set["spec"]["template"]["spec"]["nodeName"] = json!("n")),
            ),
            (
                "minReadySeconds",
                hash_of(|set| set["spec"]["minReadySeconds"] = json!(1)),
            ),
            (
                "selector",
                hash_of(|set| set["spec"]["selector"]["matchLabels"]["app"] = json!("x")),
            ),
        ] {
            assert_ne!(other, original, "{name}");
        }
    }

    #[test]
    fn the_hash_ignores_the_order_of_keys() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let hash = |template: &str| spec_hash(&parse(template), 0, &Value::Null);
        assert_eq!(
            hash(r#"{"a": {"b": 1, "c": [1, 2]}, "d": ""}"#),
            hash(r#"{"d": "", "a": {"c": [1, 2], "b": 1}}"#)
        );
        assert_ne!(hash(r#"{"a": [1, 2]}"#), hash(r#"{"a": [2, 1]}"#));
        assert_ne!(hash(r#"{"a": "1"}"#), hash(r#"{"a": 1}"#));
    }

    #[test]
    fn other_forms_are_refused() {
        for (field, value) in [("replicas", json!(-1)), ("replicas", json!("5"))] {
            let mut set = set();
            set["spec"][field] = value;
            assert!(SetFact::from_value(set).is_err());
        }
        assert!(SetFact::from_json(b"{}").is_err());
    }

    #[test]
    fn deletion_and_a_controller_are_seen() {
        let mut set = set();
        set["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
        set["metadata"]["ownerReferences"] =
            json!([{"uid": "d", "kind": "Deployment", "controller": true}]);
        let fact = SetFact::from_value(set).unwrap();
        assert!(fact.deleting && fact.controlled);
    }
}
