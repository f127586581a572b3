//! The API of a LocalReplicaSet (L1), which an API server checks before any controller does.

use fedrs_tests::test_environment::TestEnvironment;
use serde_json::{Value, json};

use crate::dry_run;

const KIND: &str = "LocalReplicaSet";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Installs the CRDs, which hosts of fedrs don't have, until it is served.
async fn install(env: &TestEnvironment) {
    for crd in fedrs_api::crd::local() {
        match env.on_host("POST", CRDS, &json!(crd)).await {
            // By the other scenario.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            answer => _ = answer.unwrap(),
        }
    }
    env.wait_until("LocalReplicaSets are served", 30, async |env| {
        let path = "/apis/fedrs.dev/v1alpha1/localreplicasets";
        env.on_host("GET", path, &Value::Null).await.is_ok()
    })
    .await;
}

async fn dry_run(env: &TestEnvironment, fields: Value) -> kube::Result<Value> {
    dry_run::create(env, (KIND, "localreplicasets"), fields).await
}

pub(crate) async fn l1_a_local_set_has_the_defaults_of_the_document(env: &mut TestEnvironment) {
    install(env).await;
    let spec = dry_run(env, json!({})).await.unwrap()["spec"].clone();
    for (field, default) in [
        ("replicas", json!(1)),
        ("minReadySeconds", json!(0)),
        ("accountId", Value::Null),
        ("nodeSegmentId", json!("default")),
        ("constraints", Value::Null),
        ("deploymentStrategy", json!({ "maxUnavailable": "25%" })),
        ("updateMode", json!("Rolling")),
        ("progressDeadlineSeconds", json!(600)),
        ("revisionHistoryLimit", json!(10)),
        ("removalTimeoutSeconds", json!(1800)),
        ("evictionTimeoutSeconds", json!(600)),
        ("nodeTimeoutSeconds", json!(300)),
        ("drainSeconds", json!(0)),
    ] {
        assert_eq!(spec[field], default, "{field}");
    }
}

pub(crate) async fn l1_l14_l15_the_api_server_rejects_bad_local_sets(env: &mut TestEnvironment) {
    install(env).await;
    let strategy = |strategy: Value| json!({ "deploymentStrategy": strategy });
    for (fields, expected) in [
        (
            strategy(json!({ "maxUnavailable": "101%" })),
            "spec.deploymentStrategy.maxUnavailable: Invalid value: \"101%\": must be a number of pods, or a percentage from 0% to \
             100%",
        ),
        (
            strategy(json!({ "deploySpeed": { "updatePortion": 0, "minDelay": 30 } })),
            "spec.deploymentStrategy.deploySpeed.updatePortion: Invalid value: 0: \
             spec.deploymentStrategy.deploySpeed.updatePortion in body should be greater than or equal to 1",
        ),
        (
            json!({ "drainSeconds": 3601 }),
            "spec.drainSeconds: Invalid value: 3601: spec.drainSeconds in body should be less than or equal to 3600",
        ),
        (
            json!({ "minReadySeconds": 600 }),
            "spec.progressDeadlineSeconds: Invalid value: must be above minReadySeconds",
        ),
        (
            json!({ "constraints": { "antiaffinity": [{ "key": "rack", "maxPods": 0 }] } }),
            "spec.constraints.antiaffinity[0].maxPods: Invalid value: 0: spec.constraints.antiaffinity[0].maxPods in body should \
             be greater than or equal to 1",
        ),
    ] {
        let name = fields.to_string();
        let errors = dry_run::errors(KIND, dry_run(env, fields).await);
        assert_eq!(errors, expected, "{name}");
    }
}
