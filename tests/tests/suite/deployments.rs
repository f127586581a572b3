//! The API of a FederatedDeployment (L6), which an API server checks before any controller does.

use fedrs_tests::test_environment::TestEnvironment;
use serde_json::{Value, json};

use crate::dry_run;

const KIND: &str = "FederatedDeployment";

fn path(env: &TestEnvironment, suffix: &str) -> String {
    let namespace = env.namespace();
    format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/federateddeployments{suffix}")
}

/// A FederatedDeployment with `fields` in its spec.
fn deployment(fields: Value) -> Value {
    dry_run::set(KIND, fields)
}

async fn dry_run(env: &TestEnvironment, fields: Value) -> kube::Result<Value> {
    dry_run::create(env, (KIND, "federateddeployments"), fields).await
}

fn errors(result: kube::Result<Value>) -> String {
    dry_run::errors(KIND, result)
}

pub(crate) async fn l6_a_deployment_has_the_defaults_of_kubernetes(env: &mut TestEnvironment) {
    let spec = dry_run(env, json!({})).await.unwrap()["spec"].clone();
    for (field, default) in [
        ("replicas", json!(1)),
        ("minReadySeconds", json!(0)),
        ("strategy", json!({ "type": "RollingUpdate" })),
        ("revisionHistoryLimit", json!(10)),
        ("progressDeadlineSeconds", json!(600)),
        ("rollout", Value::Null),
        ("federation", json!("")),
        ("deletionPolicy", json!("Orphan")),
    ] {
        assert_eq!(spec[field], default, "{field}");
    }
    let strategy = json!({ "strategy": { "rollingUpdate": { "maxSurge": 0 } } });
    let spec = dry_run(env, strategy).await.unwrap()["spec"].clone();
    let expected = json!({ "maxUnavailable": "25%", "maxSurge": 0 });
    assert_eq!(spec["strategy"]["rollingUpdate"], expected);
    let rollout = json!({ "rollout": { "steps": [{ "name": "all", "clusters": ["*"] }] } });
    let spec = dry_run(env, rollout).await.unwrap()["spec"].clone();
    let step = json!({ "name": "all", "clusters": ["*"], "soakSeconds": 0, "approval": "None" });
    assert_eq!(
        spec["rollout"],
        json!({ "steps": [step], "onFailure": "Stop" })
    );
}

pub(crate) async fn l6_l14_l15_the_api_server_rejects_bad_input_with_its_field(
    env: &mut TestEnvironment,
) {
    for (fields, expected) in bad_strategies().into_iter().chain(bad_rollouts()) {
        let name = fields.to_string();
        assert_eq!(errors(dry_run(env, fields).await), expected, "{name}");
    }
}

fn bad_strategies() -> Vec<(Value, &'static str)> {
    let rolling = |unavailable: Value, surge: Value| {
        let rolling = json!({ "maxUnavailable": unavailable, "maxSurge": surge });
        json!({ "strategy": { "rollingUpdate": rolling } })
    };
    let recreate = json!({ "type": "Recreate", "rollingUpdate": {} });
    let speed = json!({ "speed": { "updatePortion": 1, "minDelaySeconds": 1 } });
    vec![
        (
            rolling(json!(0), json!("0%")),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: must not be 0 if maxSurge is 0",
        ),
        (
            rolling(json!("101%"), json!(0)),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must be a number of pods, or a percentage from \
             0% to 100%",
        ),
        (
            rolling(json!(1), json!("many")),
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"many\": must be a number of pods, or a percentage such as 25%",
        ),
        (
            json!({ "strategy": recreate }),
            "spec.strategy.rollingUpdate: Forbidden: must not be set if type is Recreate",
        ),
        (
            json!({ "strategy": { "type": "Recreate" }, "rollout": speed }),
            "spec.rollout.speed: Forbidden: must not be set if strategy.type is Recreate, which replaces all pods of a cluster \
             at once",
        ),
        (
            json!({ "strategy": { "type": "Recreate" }, "localKind": "LocalReplicaSet" }),
            "spec.strategy.type: Invalid value: must not be Recreate if localKind is LocalReplicaSet",
        ),
        (
            json!({ "migrationPolicy": "stateful" }),
            "spec.migrationPolicy: Forbidden: must not be set unless localKind is LocalReplicaSet: pods of Deployments are evicted, \
             and not migrated",
        ),
        (
            json!({ "migrationPolicy": "A", "localKind": "LocalReplicaSet" }),
            "spec.migrationPolicy: Invalid value: \"A\": spec.migrationPolicy in body should match \
             '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
        ),
        (
            json!({ "minReadySeconds": 600 }),
            "spec.progressDeadlineSeconds: Invalid value: must be above minReadySeconds",
        ),
        (
            json!({ "rollout": { "speed": { "updatePortion": 1, "minDelaySeconds": 600 } } }),
            "spec.progressDeadlineSeconds: Invalid value: must be above rollout.speed.minDelaySeconds",
        ),
    ]
}

fn bad_rollouts() -> Vec<(Value, &'static str)> {
    let steps = |steps: &[(&str, &[&str])]| {
        let steps = steps.iter();
        let steps = steps.map(|(name, clusters)| json!({ "name": name, "clusters": clusters }));
        json!({ "rollout": { "steps": steps.collect::<Vec<_>>() } })
    };
    vec![
        (
            json!({ "rollout": { "speed": { "updatePortion": 0, "minDelaySeconds": 30 } } }),
            "spec.rollout.speed.updatePortion: Invalid value: 0: spec.rollout.speed.updatePortion in body should be greater than \
             or equal to 1",
        ),
        (
            steps(&[("canary", &[])]),
            "spec.rollout.steps[0].clusters: Invalid value: 0: spec.rollout.steps[0].clusters in body should have at least 1 items",
        ),
        (
            steps(&[("canary", &["eu"]), ("canary", &["us"])]),
            "spec.rollout.steps: Invalid value: the names of steps must be unique",
        ),
        (
            steps(&[("canary", &["eu"]), ("all", &["us", "eu"])]),
            "spec.rollout.steps: Invalid value: cluster eu must not be in two steps",
        ),
        (
            steps(&[("canary", &["eu", "eu"])]),
            "spec.rollout.steps[0].clusters[1]: Duplicate value: \"eu\"",
        ),
        (
            steps(&[("all", &["*"]), ("canary", &["eu"])]),
            "spec.rollout.steps: Invalid value: only the last step may have the cluster *",
        ),
        (
            json!({ "rollout": { "approvals": [{ "step": "a", "revision": "1" }, { "step": "a", "revision": "1" }] } }),
            "spec.rollout.approvals[1]: Duplicate value: {\"revision\":\"1\",\"step\":\"a\"}",
        ),
    ]
}

/// An API server counts what a rule costs: the largest object must stay below its limit.
pub(crate) async fn l6_the_largest_steps_are_checked(env: &mut TestEnvironment) {
    for (steps, clusters) in [(16, 43), (5, 128), (6, 116)] {
        let mut steps = steps_of(steps, clusters);
        dry_run(env, json!({ "rollout": { "steps": steps } }))
            .await
            .unwrap();
        let last = steps.as_array_mut().unwrap().last_mut().unwrap();
        *last["clusters"].as_array_mut().unwrap().last_mut().unwrap() = json!("c-1-1");
        let errors = errors(dry_run(env, json!({ "rollout": { "steps": steps } })).await);
        let expected = "spec.rollout.steps: Invalid value: cluster c-1-1 must not be in two steps";
        assert_eq!(errors, expected);
    }
    let steps = steps_of(6, 128);
    let errors = errors(dry_run(env, json!({ "rollout": { "steps": steps } })).await);
    let expected =
        "spec.rollout.steps: Invalid value: all steps together must have at most 700 clusters";
    assert_eq!(errors, expected);
}

/// Steps that name as many clusters each.
fn steps_of(steps: usize, clusters: usize) -> Value {
    let cluster = |step: usize| move |cluster: usize| format!("c-{step}-{cluster}");
    let steps = (0..steps).map(|step| {
        let clusters: Vec<_> = (0..clusters).map(cluster(step)).collect();
        json!({ "name": format!("step-{step}"), "clusters": clusters })
    });
    steps.collect()
}

pub(crate) async fn l6_a_deployment_is_scaled_and_keeps_what_is_immutable(
    env: &mut TestEnvironment,
) {
    let (collection, web) = (path(env, ""), path(env, "/web"));
    env.on_host("POST", &collection, &deployment(json!({})))
        .await
        .unwrap();
    for (field, value) in [
        ("selector", json!({ "matchLabels": { "tier": "front" } })),
        ("federation", json!("blue")),
        ("localKind", json!("LocalReplicaSet")),
    ] {
        let patch = json!({ "spec": { field: value } });
        let errors = errors(env.on_host("PATCH", &web, &patch).await);
        assert!(
            errors.starts_with(&format!("spec.{field}: Invalid value: ")),
            "{errors}"
        );
        assert!(
            errors.ends_with(&format!("the {field} is immutable")),
            "{errors}"
        );
    }
    let patch = json!({ "spec": { "replicas": 5 } });
    let scale = env
        .on_host("PATCH", &path(env, "/web/scale"), &patch)
        .await
        .unwrap();
    assert_eq!(scale["spec"]["replicas"], 5);
    let table = env.table(&web).await;
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns = columns.filter(|column| column["priority"] == 0);
    let columns: Vec<_> = columns
        .filter_map(|column| column["name"].as_str())
        .collect();
    let expected = [
        "Name",
        "Desired",
        "Ready",
        "Up-to-date",
        "Available",
        "Placed",
        "Clusters",
        "Age",
    ];
    assert_eq!(columns, expected);
    env.on_host("DELETE", &web, &Value::Null).await.unwrap();
}
