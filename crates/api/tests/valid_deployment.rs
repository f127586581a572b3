//! L6, L8, L14, L15: valid FederatedDeployments, and the errors of invalid ones.

use std::time::Duration;

use federated_rollout::{Amount, Approval, Budget, Limits, OnFailure, Speed};
use fedrs_api::{
    FederatedDeployment, LocalKind, SetKind, ValidFederatedDeployment, ValidFrs, ValidTemplate,
};
use rstest::rstest;
use serde_json::{Value, json};

/// A FederatedDeployment with `fields` in its spec.
fn deployment(fields: Value) -> FederatedDeployment {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedDeployment",
        "metadata": {"name": "web", "namespace": "default", "generation": 3, "uid": "u"},
        "spec": {
            "replicas": 10,
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

fn valid(fields: Value) -> ValidFederatedDeployment {
    ValidFederatedDeployment::check(&deployment(fields)).expect("is valid")
}

fn errors(fields: Value) -> Vec<String> {
    let errors = ValidFederatedDeployment::check(&deployment(fields)).expect_err("is invalid");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn l6_a_deployment_is_a_set_with_a_rollout() {
    let valid = valid(json!({}));
    assert_eq!(valid.set.key.to_string(), "FederatedDeployment default/web");
    assert_eq!((&*valid.set.uid, valid.set.generation), ("u", 3));
    assert_eq!(
        (valid.set.replicas, &*valid.set.selector_text),
        (10, "app=web")
    );
    assert_eq!(
        valid.rollout.progress_deadline,
        Some(Duration::from_secs(600))
    );
    assert_eq!(valid.rollout.revision_history_limit, 10);
    assert_eq!(
        (valid.rollout.order.speed, valid.rollout.order.on_failure),
        (None, OnFailure::Stop)
    );
}

/// What both kinds have is checked by the same code, into the same values.
#[test]
fn l6_a_deployment_has_all_of_a_replica_set() {
    let mut object = serde_json::to_value(deployment(json!({
        "minReadySeconds": 5,
        "placement": {"rebalance": true, "clusters": {"eu": {"weight": 2}}},
        "rescheduling": {"maxMoveSurge": 2},
        "federation": "blue",
        "deletionPolicy": "Delete",
        "stopped": true,
    })))
    .expect("it can be written");
    let read = |object: &Value| serde_json::from_value(object.clone()).expect("the shape is right");
    let valid = ValidFederatedDeployment::check(&read(&object)).expect("is valid");
    object["kind"] = "FederatedReplicaSet".into();
    object["spec"]["paused"] = true.into();
    let frs = serde_json::from_value(object).expect("it has all fields");
    let mut expected = ValidFrs::check(&frs).expect("is valid");
    expected.key.kind = SetKind::FederatedDeployment;
    expected.local = LocalKind::Deployment;
    assert_eq!(valid.set, expected);
}

#[rstest]
#[case::neither(json!({}), false, false)]
#[case::paused(json!({"paused": true}), true, false)]
#[case::stopped(json!({"stopped": true}), false, true)]
#[case::both(json!({"paused": true, "stopped": true}), true, true)]
fn l8_paused_stops_rollouts_and_stopped_stops_every_change(
    #[case] fields: Value,
    #[case] rollout_paused: bool,
    #[case] stopped: bool,
) {
    let valid = valid(fields);
    assert_eq!(
        (valid.rollout.paused, valid.set.paused),
        (rollout_paused, stopped)
    );
}

#[rstest]
#[case::by_selector(json!({}), None)]
#[case::by_name(json!({"migrationPolicy": "stateful"}), Some("stateful"))]
fn m1_local_replica_sets_have_the_policy_of_the_deployment(
    #[case] mut fields: Value,
    #[case] expected: Option<&str>,
) {
    fields["localKind"] = "LocalReplicaSet".into();
    assert_eq!(valid(fields).set.migration_policy.as_deref(), expected);
}

/// The budget of 10, 3 and 1 replicas: what may be unavailable, and what may run beyond them.
#[rstest]
#[case::defaults(json!({}), [(2, 3), (0, 1), (0, 1)])]
#[case::numbers(json!({"maxUnavailable": 4, "maxSurge": 2}), [(4, 2), (3, 2), (1, 2)])]
#[case::half_default(json!({"maxUnavailable": 1}), [(1, 3), (1, 1), (1, 1)])]
#[case::no_surge(json!({"maxSurge": 0}), [(2, 0), (1, 0), (1, 0)])]
#[case::all(json!({"maxUnavailable": "100%", "maxSurge": "0%"}), [(10, 0), (3, 0), (1, 0)])]
#[case::twice(json!({"maxUnavailable": "0%", "maxSurge": "200%"}), [(0, 20), (0, 6), (0, 2)])]
fn l6_l14_the_budget_has_the_defaults_and_the_rounding_of_kubernetes(
    #[case] rolling: Value,
    #[case] expected: [(u64, u64); 3],
) {
    let budget = valid(json!({"strategy": {"rollingUpdate": rolling}}))
        .rollout
        .budget;
    let found = [10, 3, 1].map(|replicas| {
        let Limits { unavailable, surge } = budget.resolve(replicas, replicas);
        (unavailable, surge)
    });
    assert_eq!(found, expected);
}

/// The budget of 10, 3 and 1 replicas in LocalReplicaSets: what may be unavailable.
#[rstest]
#[case::defaults(json!({}), [2, 1, 1])]
#[case::numbers(json!({"maxUnavailable": 4, "maxSurge": 2}), [4, 3, 1])]
#[case::rounds_to_nothing(json!({"maxUnavailable": "5%"}), [1, 1, 1])]
fn l5_the_surge_of_local_replica_sets_is_0(#[case] rolling: Value, #[case] expected: [u64; 3]) {
    let fields = json!({"localKind": "LocalReplicaSet", "strategy": {"rollingUpdate": rolling}});
    let valid = valid(fields);
    assert_eq!(valid.set.local, LocalKind::LocalReplicaSet);
    let limits = [10, 3, 1].map(|replicas| valid.rollout.budget.resolve(replicas, replicas));
    assert_eq!(limits.map(|limits| limits.unavailable), expected);
    assert_eq!(limits.map(|limits| limits.surge), [0; 3]);
}

#[test]
fn l5_one_more_is_created_first_if_none_may_be_unavailable() {
    for none in [json!(0), json!("0%")] {
        let rolling = json!({"maxUnavailable": none, "maxSurge": 2});
        let fields =
            json!({"localKind": "LocalReplicaSet", "strategy": {"rollingUpdate": rolling}});
        assert_eq!(valid(fields).rollout.budget, Budget::CreateFirst);
    }
}

#[test]
fn l14_the_type_decides_on_the_budget() {
    let quarter = Budget::RollingUpdate {
        max_unavailable: Amount::Percent(25),
        max_surge: Amount::Percent(25),
    };
    for (strategy, budget) in [
        (json!({}), quarter),
        (json!({"type": "RollingUpdate"}), quarter),
        (json!({"type": "Recreate"}), Budget::Recreate),
    ] {
        assert_eq!(valid(json!({"strategy": strategy})).rollout.budget, budget);
    }
}

#[test]
fn l15_a_speed_delays_when_pods_are_available() {
    let speed = json!({"updatePortion": 2, "minDelaySeconds": 30});
    let (deployment, local) = ("Deployment", "LocalReplicaSet");
    // A Deployment counts whole seconds: up to one too few.
    for (min_ready_seconds, kind, expected) in [
        (0, deployment, 31),
        (30, deployment, 31),
        (45, deployment, 45),
        (0, local, 30),
    ] {
        let mut fields = json!({"minReadySeconds": min_ready_seconds, "rollout": {"speed": speed}});
        fields["localKind"] = kind.into();
        let valid = valid(fields);
        let expected_speed = Speed {
            portion: 2,
            min_delay: Duration::from_secs(30),
        };
        assert_eq!(valid.rollout.order.speed, Some(expected_speed));
        assert_eq!(valid.set.min_ready_seconds, expected);
    }
}

#[test]
fn l6_a_deadline_may_be_never() {
    let valid = valid(json!({"progressDeadlineSeconds": i32::MAX}));
    assert_eq!(valid.rollout.progress_deadline, None);
}

#[test]
fn l6_steps_have_their_members() {
    let valid = valid(json!({"rollout": {
        "steps": [
            {"name": "canary", "clusters": ["canary"], "soakSeconds": 600},
            {"name": "europe", "clusters": ["eu", "gone"], "approval": "Before", "maxConcurrentClusters": 1},
            {"name": "rest", "clusters": ["us", "*"]},
        ],
        "approvals": [{"step": "europe", "revision": "web-1"}, {"step": "removed", "revision": "web-0"}],
        "onFailure": "Undo",
    }}));
    let rollout = &valid.rollout.order;
    let members = rollout.step_members(&["asia", "canary", "eu", "us"]);
    let steps = rollout.steps(&members);
    let found: Vec<_> = steps
        .iter()
        .map(|step| (step.name, step.members.to_vec(), step.soak.as_secs()))
        .collect();
    let expected = [
        ("canary", vec!["canary"], 600),
        ("europe", vec!["eu", "gone"], 0),
        ("rest", vec!["us", "asia"], 0),
    ];
    assert_eq!(found, expected);
    let approvals = steps
        .iter()
        .map(|step| (step.approval_before, step.max_concurrent));
    assert_eq!(
        approvals.collect::<Vec<_>>(),
        [(false, None), (true, Some(1)), (false, None)]
    );
    let approval = |step, revision| Approval { step, revision };
    let expected = [approval("europe", "web-1"), approval("removed", "web-0")];
    assert_eq!(rollout.approvals(), expected);
    assert_eq!(rollout.on_failure, OnFailure::Undo);
}

#[rstest]
#[case(json!({"maxUnavailable": 0, "maxSurge": 0}), "maxUnavailable: must not be 0 if spec.strategy.rollingUpdate.maxSurge is 0")]
#[case(json!({"maxUnavailable": "0%", "maxSurge": "00%"}), "maxUnavailable: must not be 0 if spec.strategy.rollingUpdate.maxSurge is 0")]
#[case(json!({"maxUnavailable": "101%"}), "maxUnavailable: must not be above 100%, but is 101%")]
#[case(json!({"maxUnavailable": -1}), "maxUnavailable: must be a number of pods, not negative, or a percentage")]
#[case(json!({"maxSurge": "25"}), "maxSurge: must be a number of pods, not negative, or a percentage")]
#[case(json!({"maxSurge": "+5%"}), "maxSurge: must be a number of pods, not negative, or a percentage")]
#[case(json!({"maxSurge": "4294967296%"}), "maxSurge: must be a number of pods, not negative, or a percentage")]
fn l14_a_wrong_budget_is_named_with_its_field(#[case] rolling: Value, #[case] expected: &str) {
    let errors = errors(json!({"strategy": {"rollingUpdate": rolling}}));
    let [error] = &errors[..] else {
        panic!("{errors:?}")
    };
    let expected = format!("spec.strategy.rollingUpdate.{expected}");
    assert!(error.starts_with(&expected), "{error}");
}

#[rstest]
#[case::l6_common_field(json!({"replicas": -1}), "spec.replicas: must not be negative, but is -1")]
#[case::l6_selector(json!({"selector": {"matchLabels": {"app": "api"}}}), "spec.selector: does not match spec.template.metadata.labels")]
#[case::l6_history(json!({"revisionHistoryLimit": -1}), "spec.revisionHistoryLimit: must not be negative, but is -1")]
#[case::l6_deadline(
    json!({"minReadySeconds": 600}),
    "spec.progressDeadlineSeconds: must be above spec.minReadySeconds (600), but is 600"
)]
#[case::d2_drain(json!({"drainSeconds": -1}), "spec.drainSeconds: must not be negative, but is -1")]
#[case::d2_long_drain(json!({"drainSeconds": 3601}), "spec.drainSeconds: must be at most 3600, but is 3601")]
#[case::d2_drain_beyond_the_deadline(
    json!({"localKind": "LocalReplicaSet", "drainSeconds": 600}),
    "spec.progressDeadlineSeconds: must be above spec.drainSeconds (600), but is 600"
)]
#[case::m1_policy(
    json!({"localKind": "LocalReplicaSet", "migrationPolicy": "A b"}),
    "spec.migrationPolicy: must be a DNS label: lower-case letters, digits and '-', at most 63 characters"
)]
#[case::m1_no_policy(
    json!({"localKind": "LocalReplicaSet", "migrationPolicy": ""}),
    "spec.migrationPolicy: must be a DNS label: lower-case letters, digits and '-', at most 63 characters"
)]
#[case::m1_policy_of_deployments(
    json!({"migrationPolicy": "stateful"}),
    "spec.migrationPolicy: must not be set unless spec.localKind is LocalReplicaSet: pods of Deployments are evicted, and not migrated"
)]
#[case::l6_recreate(
    json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}}),
    "spec.strategy.rollingUpdate: must not be set if spec.strategy.type is Recreate"
)]
#[case::l15_recreate(
    json!({"strategy": {"type": "Recreate"}, "rollout": {"speed": {"updatePortion": 1, "minDelaySeconds": 1}}}),
    "spec.rollout.speed: must not be set if spec.strategy.type is Recreate, which replaces all pods of a cluster at once"
)]
#[case::l15_deadline(
    json!({"rollout": {"speed": {"updatePortion": 1, "minDelaySeconds": 900}}}),
    "spec.progressDeadlineSeconds: must be above spec.rollout.speed.minDelaySeconds (900), but is 600"
)]
#[case::l15_portion(
    json!({"rollout": {"speed": {"updatePortion": 0, "minDelaySeconds": 1}}}),
    "spec.rollout.speed.updatePortion: must be at least 1, but is 0"
)]
#[case::l15_delay(
    json!({"rollout": {"speed": {"updatePortion": 1, "minDelaySeconds": 0}}}),
    "spec.rollout.speed.minDelaySeconds: must be at least 1, but is 0"
)]
#[case::l6_approved_step(
    json!({"rollout": {"approvals": [{"step": "A b", "revision": "x"}]}}),
    "spec.rollout.approvals[0].step: must be a DNS label: lower-case letters, digits and '-', at most 63 characters"
)]
#[case::l6_approved_revision(
    json!({"rollout": {"approvals": [{"step": "a", "revision": ""}]}}),
    "spec.rollout.approvals[0].revision: must have 1 to 253 characters"
)]
fn what_is_wrong_is_named_with_its_field(#[case] fields: Value, #[case] expected: &str) {
    assert_eq!(errors(fields), [expected]);
}

#[rstest]
#[case::no_member(json!([{"name": "a", "clusters": []}]), "[0].clusters: must name at least one cluster")]
#[case::no_name(json!([{"name": "", "clusters": ["eu"]}]), "[0].name: must be a DNS label: lower-case letters, digits and '-', at most 63 characters")]
#[case::one_name(json!([{"name": "a", "clusters": ["eu"]}, {"name": "a", "clusters": ["us"]}]), "[1].name: is the name of step 0, too: must be unique")]
#[case::no_label(json!([{"name": "a", "clusters": ["E U"]}]), "[0].clusters[E U]: must be '*' or the name of a cluster: a DNS label of at most 63 characters")]
#[case::in_two(json!([{"name": "a", "clusters": ["eu"]}, {"name": "b", "clusters": ["us", "eu"]}]), "[1].clusters: must not have eu, which is in step a already")]
#[case::twice(json!([{"name": "a", "clusters": ["eu", "eu"]}]), "[0].clusters: must not have eu, which is in step a already")]
#[case::not_last(json!([{"name": "a", "clusters": ["*"]}, {"name": "b", "clusters": ["eu"]}]), "[0].clusters: must not have * (all other clusters): only the last step may")]
#[case::soak(json!([{"name": "a", "clusters": ["eu"], "soakSeconds": -1}]), "[0].soakSeconds: must not be negative, but is -1")]
#[case::concurrent(json!([{"name": "a", "clusters": ["eu"], "maxConcurrentClusters": 0}]), "[0].maxConcurrentClusters: must be at least 1, but is 0")]
fn l6_a_wrong_step_is_named_with_its_field(#[case] steps: Value, #[case] expected: &str) {
    let expected = format!("spec.rollout.steps{expected}");
    assert_eq!(errors(json!({"rollout": {"steps": steps}})), [expected]);
}

#[test]
fn l6_steps_are_few() {
    let steps = |steps: usize, clusters: usize| {
        let steps = (0..steps).map(|step| {
            let clusters: Vec<_> = (0..clusters)
                .map(|cluster| format!("c-{step}-{cluster}"))
                .collect();
            json!({"name": format!("s{step}"), "clusters": clusters})
        });
        json!({"rollout": {"steps": steps.collect::<Vec<_>>()}})
    };
    valid(steps(16, 43));
    for (fields, expected) in [
        (
            steps(17, 1),
            "spec.rollout.steps: must have at most 16 entries",
        ),
        (
            steps(1, 129),
            "spec.rollout.steps[0].clusters: must have at most 128 entries",
        ),
        (
            steps(6, 128),
            "spec.rollout.steps: must have at most 700 clusters together",
        ),
    ] {
        assert_eq!(errors(fields), [expected]);
    }
}

#[test]
fn l6_all_errors_are_reported() {
    let fields = json!({
        "replicas": -1,
        "strategy": {"rollingUpdate": {"maxUnavailable": "x", "maxSurge": "y"}},
        "progressDeadlineSeconds": 0,
        "rollout": {"steps": [{"name": "a", "clusters": []}, {"name": "b", "clusters": []}]},
    });
    assert_eq!(errors(fields).len(), 6);
}

#[test]
fn l2_the_template_of_an_earlier_revision_is_checked_as_that_of_the_spec() {
    let mut earlier = deployment(json!({})).spec;
    let checked = ValidTemplate::check(&earlier.template, &earlier.selector);
    assert_eq!(checked, Ok(valid(json!({})).set.template));
    earlier.template.metadata.labels = [("tier".to_owned(), "x".to_owned())].into();
    earlier.template.spec = json!({});
    let errors = ValidTemplate::check(&earlier.template, &earlier.selector).expect_err("invalid");
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "spec.template.spec.containers: must be a list of at least one container",
            "spec.selector: does not match spec.template.metadata.labels",
        ]
    );
}
