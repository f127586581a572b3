//! L1, L5, L8, L14, L15, C2, C4, C5: valid LocalReplicaSets, and the errors of invalid ones.

use std::time::Duration;

use federated_rollout::{Amount, Speed};
use fedrs_api::{
    AllowedChanges, BegunRecord, DrainRecord, EvictionRecord, LentRecord, LocalRecord,
    LocalReplicaSet, LocalReplicaSetStatus, MigratedRecord, RecreateRecord, ResourceUpdates,
    UpdateRecord, ValidAntiaffinity, ValidLocalReplicaSet,
};
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

/// A LocalReplicaSet with `fields` in its spec.
fn set(fields: Value) -> LocalReplicaSet {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "LocalReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "generation": 3, "uid": "u"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    });
    let Value::Object(fields) = fields else {
        panic!("not an object: {fields}")
    };
    let spec = object["spec"].as_object_mut().expect("it is an object");
    spec.extend(fields);
    serde_json::from_value(object).expect("the shape is right")
}

fn valid(fields: Value) -> ValidLocalReplicaSet {
    ValidLocalReplicaSet::check(&set(fields)).expect("is valid")
}

fn errors(fields: Value) -> Vec<String> {
    let errors = ValidLocalReplicaSet::check(&set(fields)).expect_err("is invalid");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn l1_a_set_has_the_defaults_of_the_document() {
    let valid = valid(json!({}));
    assert_eq!((&*valid.namespace, &*valid.name), ("default", "web"));
    assert_eq!((&*valid.uid, valid.generation), ("u", 3));
    assert_eq!((valid.replicas, valid.min_ready_seconds), (1, 0));
    assert_eq!(valid.selector_text, "app=web");
    assert_eq!(
        (&*valid.account_id, &*valid.node_segment_id),
        ("", "default")
    );
    assert_eq!(valid.antiaffinity, []);
    assert_eq!(valid.strategy.max_unavailable, Amount::Percent(25));
    assert_eq!(valid.strategy.speed, None);
    assert_eq!(valid.strategy.without_effect, [""; 0]);
    assert_eq!(valid.changes, AllowedChanges::All);
    assert_eq!(valid.progress_deadline, Some(Duration::from_secs(600)));
    assert_eq!(valid.revision_history_limit, 10);
    assert_eq!(valid.removal_timeout, Duration::from_secs(30 * 60));
    assert_eq!(valid.eviction_timeout, Duration::from_secs(600));
    assert_eq!(valid.drain, Duration::ZERO);
}

/// The example of document 000, with the names of Kubernetes.
#[test]
fn l1_l14_l15_the_example_of_the_document_is_valid() {
    let valid = valid(json!({
        "accountId": "tmp",
        "constraints": {"antiaffinity": [{"key": "rack", "maxPods": 1}]},
        "nodeSegmentId": "default",
        "deploymentStrategy": {
            "maxUnavailable": 3,
            "deploySpeed": {"updatePortion": 2, "minDelay": 30},
        },
        "replicas": 9,
    }));
    let rack = ValidAntiaffinity {
        key: "rack".to_owned(),
        max_pods: 1,
    };
    assert_eq!((valid.replicas, &*valid.account_id), (9, "tmp"));
    assert_eq!(valid.antiaffinity, [rack]);
    assert_eq!(valid.strategy.max_unavailable, Amount::Number(3));
    let speed = Speed {
        portion: 2,
        min_delay: Duration::from_secs(30),
    };
    assert_eq!(valid.strategy.speed, Some(speed));
}

#[rstest]
#[case::default(json!({}), ResourceUpdates::Recreate)]
#[case::resize(json!({"resourceUpdates": "Resize"}), ResourceUpdates::Resize)]
fn l12_a_set_asks_for_resizes(#[case] strategy: Value, #[case] expected: ResourceUpdates) {
    let strategy = valid(json!({"deploymentStrategy": strategy})).strategy;
    assert_eq!(strategy.resource_updates, expected);
}

#[test]
fn l5_fields_without_effect_are_accepted_and_named() {
    let strategy =
        valid(json!({"deploymentStrategy": {"minAvailable": 2, "maxSurge": "50%"}})).strategy;
    assert_eq!(
        strategy.without_effect,
        [
            "spec.deploymentStrategy.minAvailable",
            "spec.deploymentStrategy.maxSurge"
        ]
    );
    let plain = valid(json!({})).strategy;
    assert_eq!(strategy.max_unavailable, plain.max_unavailable);
}

/// The budget of 10, 3, 1 and 0 replicas.
#[rstest]
#[case::default(json!({}), [2, 1, 1, 0])]
#[case::number(json!({"maxUnavailable": 3}), [3, 3, 1, 0])]
#[case::none(json!({"maxUnavailable": 0}), [0, 0, 0, 0])]
#[case::no_percent(json!({"maxUnavailable": "0%"}), [0, 0, 0, 0])]
#[case::one_percent(json!({"maxUnavailable": "1%"}), [1, 1, 1, 0])]
#[case::most(json!({"maxUnavailable": "99%"}), [9, 2, 1, 0])]
#[case::all(json!({"maxUnavailable": "100%"}), [10, 3, 1, 0])]
fn l14_a_percentage_that_rounds_to_nothing_is_one_pod(
    #[case] strategy: Value,
    #[case] expected: [u64; 4],
) {
    let budget = valid(json!({"deploymentStrategy": strategy}))
        .strategy
        .max_unavailable;
    assert_eq!(
        [10, 3, 1, 0].map(|replicas| budget.without_surge(replicas)),
        expected
    );
}

#[rstest]
#[case::l7(json!({}), AllowedChanges::All)]
#[case::l8_paused(json!({"paused": true}), AllowedChanges::NoUpdatesWhilePaused)]
#[case::l8_stopped(json!({"stopped": true}), AllowedChanges::None)]
#[case::l8_both(json!({"stopped": true, "paused": true}), AllowedChanges::None)]
#[case::c4_never(json!({"updateMode": "Never"}), AllowedChanges::NoUpdatesByMode)]
#[case::c4_never_paused(json!({"updateMode": "Never", "paused": true}), AllowedChanges::NoUpdatesByMode)]
#[case::c4_never_stopped(json!({"updateMode": "Never", "stopped": true}), AllowedChanges::None)]
fn switches_and_mode_decide_on_the_changes(
    #[case] fields: Value,
    #[case] expected: AllowedChanges,
) {
    assert_eq!(valid(fields).changes, expected);
}

#[test]
fn l1_a_deadline_may_be_never() {
    let valid = valid(json!({"progressDeadlineSeconds": i32::MAX}));
    assert_eq!(valid.progress_deadline, None);
}

#[rstest]
#[case::l18_evictions(
    json!({"template": {"metadata": {"labels": {"app": "web"}, "annotations": {"fedrs.dev/evict": "true"}}, "spec": {"containers": [{}]}}}),
    "spec.template.metadata.annotations[fedrs.dev/evict]: must not be set: each new pod would be evicted"
)]
#[case::c1_replicas(json!({"replicas": -1}), "spec.replicas: must not be negative, but is -1")]
#[case::c1_ready(json!({"minReadySeconds": -1}), "spec.minReadySeconds: must not be negative, but is -1")]
#[case::c2_restart(
    json!({"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"restartPolicy": "Never", "containers": [{}]}}}),
    "spec.template.spec.restartPolicy: must be Always or absent: a replica set runs until it is deleted"
)]
#[case::c5_selector(json!({"selector": {"matchLabels": {"app": "api"}}}), "spec.selector: does not match spec.template.metadata.labels")]
#[case::c5_empty(json!({"selector": {}}), "spec.selector: must not be empty: an empty selector matches every pod")]
#[case::l1_account(json!({"accountId": "a b"}), "spec.accountId: is not a valid label value")]
#[case::l1_segment(json!({"nodeSegmentId": ""}), "spec.nodeSegmentId: must not be empty")]
#[case::l1_segment_value(json!({"nodeSegmentId": "-"}), "spec.nodeSegmentId: is not a valid label value")]
#[case::l1_key(
    json!({"constraints": {"antiaffinity": [{"key": "", "maxPods": 1}]}}),
    "spec.constraints.antiaffinity[0].key: is not a valid label key"
)]
#[case::l1_key_twice(
    json!({"constraints": {"antiaffinity": [{"key": "rack", "maxPods": 1}, {"key": "rack", "maxPods": 2}]}}),
    "spec.constraints.antiaffinity[1].key: must be unique, but rack is the key of another entry"
)]
#[case::l1_pods(
    json!({"constraints": {"antiaffinity": [{"key": "rack", "maxPods": 0}]}}),
    "spec.constraints.antiaffinity[0].maxPods: must be at least 1, but is 0"
)]
#[case::l5_min_available(
    json!({"deploymentStrategy": {"minAvailable": "x"}}),
    "spec.deploymentStrategy.minAvailable: must be a number of pods, not negative, or a percentage such as 25%"
)]
#[case::l5_max_surge(
    json!({"deploymentStrategy": {"maxSurge": -1}}),
    "spec.deploymentStrategy.maxSurge: must be a number of pods, not negative, or a percentage such as 25%"
)]
#[case::l14_percent(
    json!({"deploymentStrategy": {"maxUnavailable": "101%"}}),
    "spec.deploymentStrategy.maxUnavailable: must not be above 100%, but is 101%"
)]
#[case::l15_portion(
    json!({"deploymentStrategy": {"deploySpeed": {"updatePortion": 0, "minDelay": 30}}}),
    "spec.deploymentStrategy.deploySpeed.updatePortion: must be at least 1, but is 0"
)]
#[case::l15_delay(
    json!({"deploymentStrategy": {"deploySpeed": {"updatePortion": 1, "minDelay": 0}}}),
    "spec.deploymentStrategy.deploySpeed.minDelay: must be at least 1, but is 0"
)]
#[case::l16_deadline(
    json!({"minReadySeconds": 600}),
    "spec.progressDeadlineSeconds: must be above spec.minReadySeconds (600), but is 600"
)]
#[case::l17_removal(json!({"removalTimeoutSeconds": 0}), "spec.removalTimeoutSeconds: must be at least 1, but is 0")]
#[case::l19_eviction(json!({"evictionTimeoutSeconds": 0}), "spec.evictionTimeoutSeconds: must be at least 1, but is 0")]
#[case::l17_drain(json!({"drainSeconds": -1}), "spec.drainSeconds: must not be negative, but is -1")]
#[case::l17_long_drain(json!({"drainSeconds": 3601}), "spec.drainSeconds: must be at most 3600, but is 3601")]
#[case::l2_history(json!({"revisionHistoryLimit": -1}), "spec.revisionHistoryLimit: must not be negative, but is -1")]
fn what_is_wrong_is_named_with_its_field(#[case] fields: Value, #[case] expected: &str) {
    assert_eq!(errors(fields), [expected]);
}

#[test]
fn l1_all_errors_are_reported() {
    let fields = json!({
        "replicas": -1,
        "deploymentStrategy": {"maxUnavailable": "x", "deploySpeed": {"updatePortion": 0, "minDelay": 0}},
        "progressDeadlineSeconds": 0,
        "constraints": {"antiaffinity": [{"key": "", "maxPods": 0}]},
    });
    assert_eq!(errors(fields).len(), 7);
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("it is a time")
}

/// What is read after a restart is what was written before it.
#[test]
fn l15_a_record_survives_a_restart() {
    let update = UpdateRecord {
        from: Some(7),
        seen: true,
        recreate: Some(RecreateRecord {
            name: "web-x".to_owned(),
            node: Some("n1".to_owned()),
            shard: Some("7".to_owned()),
            gated: true,
        }),
    };
    let eviction = EvictionRecord {
        recreate: update.recreate.clone(),
        copy: update.recreate.clone(),
        forced: true,
        ..EvictionRecord::begun(at(5))
    };
    let migrated = MigratedRecord {
        any: Some(at(6)),
        compaction: Some(at(4)),
    };
    let lent = LentRecord {
        uid: "b1".to_owned(),
        generation: 3,
        min_available: 2,
    };
    let drain = DrainRecord {
        since: at(1),
        allowed: Some(at(2)),
    };
    let status = LocalReplicaSetStatus {
        record: LocalRecord {
            updates: [("u1".to_owned(), update)].into(),
            evictions: [("u2".to_owned(), eviction)].into(),
            migrated,
            begun: vec![BegunRecord { at: at(3), pods: 2 }],
            lent: Some(lent),
            drains: [("n1".to_owned(), drain)].into(),
        },
        ..LocalReplicaSetStatus::default()
    };
    let written = serde_json::to_value(&status).expect("it can be written");
    let read: LocalReplicaSetStatus = serde_json::from_value(written).expect("it can be read");
    assert_eq!(read, status);
}

/// To continue without it would begin more than the speed allows.
#[test]
fn l15_a_record_that_can_not_be_read_is_an_error() {
    let read = serde_json::from_value::<LocalReplicaSetStatus>;
    assert!(read(json!({"record": "{\"updates\": 1}"})).is_err());
    assert!(read(json!({"record": "{}"})).is_ok());
    assert!(read(json!({})).is_ok());
}

#[test]
fn l15_updates_count_for_their_delay() {
    let mut record = LocalRecord::default();
    for second in [10, 10, 20] {
        record.count_begun(at(second));
    }
    assert_eq!(
        record.begun,
        [
            BegunRecord {
                at: at(10),
                pods: 2
            },
            BegunRecord {
                at: at(20),
                pods: 1
            }
        ]
    );
    record.forget_begun(Duration::from_secs(30), at(39));
    assert_eq!(record.begun.len(), 2);
    record.forget_begun(Duration::from_secs(30), at(40));
    assert_eq!(
        record.begun,
        [BegunRecord {
            at: at(20),
            pods: 1
        }]
    );
}
