//! Settings of LocalReplicaSets: what is written is what a member shows afterwards.

use cluster_informer::{LocalReplicaSetObject, WorkloadState};
use fedrs_api::{ValidFederatedDeployment, labels};
use serde_json::{Value, json};

use super::*;

/// A valid FederatedDeployment of LocalReplicaSets with this `migrationPolicy`.
fn deployment(policy: Option<&str>) -> ValidFederatedDeployment {
    let object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedDeployment",
        "metadata": { "name": "web", "namespace": "default", "uid": "u" },
        "spec": {
            "localKind": "LocalReplicaSet",
            "migrationPolicy": policy,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    });
    ValidFederatedDeployment::check(&serde_json::from_value(object).unwrap()).unwrap()
}

fn written(deployment: &ValidFederatedDeployment) -> Value {
    let source = Source {
        frs: &deployment.set,
        deployment: (&deployment.rollout).into(),
        federation: "blue",
    };
    serde_json::to_value(Workload::of(&source, "eu", 3)).unwrap()
}

/// What a member shows of a LocalReplicaSet that was created as `written`.
fn shown(mut written: Value) -> WorkloadState {
    let metadata = &mut written["metadata"];
    metadata["uid"] = "w".into();
    metadata["resourceVersion"] = "7".into();
    let live: LocalReplicaSetObject = serde_json::from_value(written).unwrap();
    live.into()
}

#[test]
fn m1_a_policy_is_a_setting_and_not_of_the_template() {
    let policies = [None, Some("stateful"), Some("other")];
    let deployments = policies.map(deployment);
    for (number, one) in deployments.iter().enumerate() {
        let object = written(one);
        let policy = object["spec"]["migrationPolicy"].as_str();
        assert_eq!(policy, policies[number]);
        assert_eq!(object["metadata"]["labels"][labels::FEDERATION], "blue");
        let shown = shown(object);
        let state = shown.deployment.as_ref().unwrap();
        for (other_number, other) in deployments.iter().enumerate() {
            let settings = DeploymentSettings::from(&other.rollout);
            let is_same = number == other_number;
            assert_eq!(settings.are_in(&other.set, state, false), is_same);
            let hash = |of: &ValidFrs| settings_hash(of, settings);
            assert_eq!(hash(&one.set) == hash(&other.set), is_same);
            let other_version = self::shown(written(other)).spec_version();
            assert_eq!(shown.spec_version() == other_version, is_same);
            assert_eq!(template_hash(&one.set), template_hash(&other.set));
        }
    }
}

/// The hash is stored: an upgrade to a version with policies must not write the settings of all sets again.
#[test]
fn m1_without_a_policy_the_hash_is_that_of_the_settings_without_one() {
    let deployment = deployment(None);
    let settings = DeploymentSettings::from(&deployment.rollout);
    let expected = SettingsHash(hash(&json!([{}, [0, 600, 10, 0]])));
    assert_eq!(settings_hash(&deployment.set, settings), expected);
}
