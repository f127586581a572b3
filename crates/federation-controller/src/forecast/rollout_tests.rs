//! Table tests of forecasts of rollouts: the order, the parts of the budget, and the times.

use std::fmt::Write as _;

use fedrs_api::{FederatedDeployment, ValidFederatedDeployment};
use serde_json::{Value, json};

use super::*;

/// A FederatedDeployment with these fields besides those that it must have.
fn deployment(fields: &Value) -> ValidFederatedDeployment {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1", "kind": "FederatedDeployment",
        "metadata": { "namespace": "shop", "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "main" }] },
            },
        },
    });
    for (name, value) in fields.as_object().expect("fields of the spec") {
        object["spec"][name] = value.clone();
    }
    let deployment: FederatedDeployment = serde_json::from_value(object).expect("a set");
    ValidFederatedDeployment::check(&deployment).expect("a valid set")
}

fn cluster(name: &str, replicas: u32) -> RolloutCluster {
    RolloutCluster {
        name: name.to_owned(),
        replicas,
        updated: false,
        state: MemberState::Writable,
        cordoned: false,
    }
}

fn forecast(fields: &Value, clusters: &[RolloutCluster]) -> RolloutForecast {
    forecast_after(&State::default(), fields, clusters)
}

fn forecast_after(
    recorded: &State,
    fields: &Value,
    clusters: &[RolloutCluster],
) -> RolloutForecast {
    let ValidFederatedDeployment { set, rollout, .. } = deployment(fields);
    forecast_rollout(&RolloutQuestion {
        frs: &set,
        settings: &rollout,
        recorded,
        pod_start: Duration::ZERO,
        now: Timestamp::UNIX_EPOCH,
        clusters,
    })
}

/// A line for each step, and for each cluster: `eu 0-30: 2+2, 3+2 at 30`.
fn lines(clusters: &[RolloutCluster], forecast: &RolloutForecast) -> String {
    let time =
        |time: Option<Duration>| time.map_or("-".to_owned(), |time| time.as_secs().to_string());
    let mut text = String::new();
    for step in forecast.steps.iter().filter(|step| step.name.is_some()) {
        let name = step.name.as_deref().unwrap_or_default();
        let approval = if step.needs_approval {
            " (approval)"
        } else {
            ""
        };
        let (begins, completes) = (time(step.begins), time(step.completes));
        let _ = writeln!(
            text,
            "step {name}{approval} {begins}-{completes}: {}",
            step.clusters.join(" ")
        );
    }
    for (cluster, forecast) in clusters.iter().zip(&forecast.clusters) {
        let (begins, completes) = (time(forecast.begins), time(forecast.completes));
        let loans = forecast.loans.iter().map(|(at, strategy)| {
            let (unavailable, surge) = (strategy.unavailable, strategy.surge);
            format!("{unavailable}+{surge} at {}", at.as_secs())
        });
        let loans = loans.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "{} {begins}-{completes}: {loans}", cluster.name);
    }
    let Limits { unavailable, surge } = forecast.limits;
    let _ = write!(
        text,
        "takes {} with {unavailable}+{surge}",
        time(takes(forecast))
    );
    text
}

/// How long it takes, if it ends.
fn takes(forecast: &RolloutForecast) -> Option<Duration> {
    match forecast.end {
        RolloutEnd::Complete(time) => Some(time),
        RolloutEnd::Waiting | RolloutEnd::GoesOn(_) => None,
    }
}

/// There is no surge (L5), and all of a loan is recalled at its end. With a `maxUnavailable` of 0 a pod more is created first.
#[test]
fn l5_a_plan_of_local_replica_sets_has_no_surge() {
    let fields = |unavailable: Value, rollout: Value| {
        json!({
            "localKind": "LocalReplicaSet", "replicas": 9, "minReadySeconds": 10, "rollout": rollout,
            "strategy": { "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": 3 } },
        })
    };
    let clusters = [cluster("eu", 6), cluster("us", 3)];
    let canary = json!({ "steps": [{ "name": "canary", "clusters": ["us"] }] });
    let expected = [
        "step canary 0-10: us",
        "eu 10-30: 3+0 at 10",
        "us 0-10: 3+0 at 0",
        "takes 30 with 3+0",
    ];
    check(&fields(json!(3), canary), &clusters, &expected);
    let one = [
        "eu 30-90: 1+0 at 30",
        "us 0-30: 1+0 at 0",
        "takes 90 with 1+0",
    ];
    check(&fields(json!("5%"), json!({})), &clusters, &one);
    let first = [
        "eu 30-90: 0+1 at 30",
        "us 0-30: 0+1 at 0",
        "takes 90 with 0+1",
    ];
    check(&fields(json!(0), json!({})), &clusters, &first);
    let speed = json!({ "speed": { "updatePortion": 2, "minDelaySeconds": 10 } });
    let slow = [
        "eu 0-50: 1+0 at 0, 2+0 at 40",
        "us 0-30: 1+0 at 0",
        "takes 50 with 4+0",
    ];
    check(&fields(json!(4), speed), &clusters, &slow);
}

fn check(fields: &Value, clusters: &[RolloutCluster], expected: &[&str]) {
    let forecast = forecast(fields, clusters);
    let lines = lines(clusters, &forecast);
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected, "{fields}");
}

/// The strategy of a Deployment.
fn budget(unavailable: u64, surge: u64) -> Value {
    json!({ "rollingUpdate": { "maxUnavailable": unavailable, "maxSurge": surge } })
}

#[test]
fn l14_the_budget_is_shared_among_all_clusters() {
    let fields = json!({ "replicas": 12, "minReadySeconds": 30, "strategy": budget(2, 2) });
    for (clusters, expected) in [
        (
            vec![cluster("eu", 6), cluster("us", 6)],
            vec![
                "eu 0-90: 1+1 at 0",
                "us 0-90: 1+1 at 0",
                "takes 90 with 2+2",
            ],
        ),
        // What the small one gives back, the large one gets.
        (
            vec![cluster("eu", 2), cluster("us", 10)],
            vec![
                "eu 0-30: 1+1 at 0",
                "us 0-90: 1+1 at 0, 2+2 at 30",
                "takes 90 with 2+2",
            ],
        ),
        (
            vec![cluster("a", 4), cluster("b", 4), cluster("c", 4)],
            vec![
                "a 0-60: 1+1 at 0",
                "b 0-60: 1+1 at 0",
                "c 60-90: 2+2 at 60",
                "takes 90 with 2+2",
            ],
        ),
    ] {
        check(&fields, &clusters, &expected);
    }
}

#[test]
fn steps_follow_each_other() {
    let fields = json!({
        "replicas": 12, "minReadySeconds": 30, "strategy": budget(4, 0),
        "rollout": { "steps": [
            { "name": "canary", "clusters": ["c"], "soakSeconds": 600 },
            { "name": "world", "clusters": ["*"], "approval": "Before", "maxConcurrentClusters": 1 },
        ] },
    });
    let clusters = [cluster("a", 4), cluster("b", 4), cluster("c", 4)];
    check(
        &fields,
        &clusters,
        &[
            "step canary 0-30: c",
            "step world (approval) 630-690: a b",
            "a 630-660: 4+0 at 630",
            "b 660-690: 4+0 at 660",
            "c 0-30: 4+0 at 0",
            "takes 690 with 4+0",
        ],
    );
}

#[test]
fn l15_the_speed_limits_what_starts() {
    let fields = json!({
        "replicas": 12, "strategy": budget(4, 4),
        "rollout": { "speed": { "updatePortion": 3, "minDelaySeconds": 60 } },
    });
    check(
        &fields,
        &[cluster("eu", 6), cluster("us", 6)],
        &[
            "eu 0-183: 2+0 at 0",
            "us 0-305: 1+0 at 0, 3+0 at 244",
            "takes 305 with 4+4",
        ],
    );
}

#[test]
fn a_recreation_takes_one_cluster_after_the_other() {
    let fields =
        json!({ "replicas": 8, "minReadySeconds": 30, "strategy": { "type": "Recreate" } });
    check(
        &fields,
        &[cluster("eu", 5), cluster("us", 3)],
        &[
            "eu 30-60: 5+0 at 30",
            "us 0-30: 3+0 at 0",
            "takes 60 with 5+0",
        ],
    );
}

#[test]
fn clusters_that_can_not_be_updated_are_left_or_waited_for() {
    let fields = json!({
        "replicas": 6, "strategy": budget(1, 0),
        "rollout": { "steps": [{ "name": "first", "clusters": ["a"] }] },
    });
    let with = |change: fn(&mut RolloutCluster)| {
        let mut clusters = [cluster("a", 3), cluster("b", 3)];
        change(&mut clusters[0]);
        clusters
    };
    for (clusters, expected) in [
        (
            with(|a| a.cordoned = true),
            [
                "step first 0-0: a",
                "a ---: ",
                "b 0-0: 1+0 at 0",
                "takes 0 with 1+0",
            ],
        ),
        (
            {
                // Its replicas are in the other.
                let mut clusters = with(|a| a.state = MemberState::Lost);
                clusters[1].replicas = 6;
                clusters
            },
            [
                "step first 0-0: a",
                "a ---: ",
                "b 0-0: 1+0 at 0",
                "takes 0 with 1+0",
            ],
        ),
        (
            with(|a| a.state = MemberState::Unknown),
            [
                "step first 0--: a",
                "a ---: ",
                "b ---: ",
                "takes - with 1+0",
            ],
        ),
        (
            with(|a| a.updated = true),
            [
                "step first 0-0: a",
                "a --0: ",
                "b 0-0: 1+0 at 0",
                "takes 0 with 1+0",
            ],
        ),
    ] {
        check(&fields, &clusters, &expected);
    }
}

#[test]
fn what_is_up_to_date_takes_no_time() {
    let mut clusters = [cluster("a", 3), cluster("b", 3)];
    for cluster in &mut clusters {
        cluster.updated = true;
    }
    check(
        &json!({ "replicas": 6 }),
        &clusters,
        &["a --0: ", "b --0: ", "takes 0 with 1+2"],
    );
    check(&json!({ "replicas": 0 }), &[], &["takes 0 with 1+0"]);
}

#[test]
fn steps_that_have_begun_go_on() {
    let fields = json!({
        "replicas": 6, "strategy": budget(3, 0),
        "rollout": { "steps": [{ "name": "canary", "clusters": ["a"], "soakSeconds": 600 }] },
    });
    let mut clusters = [cluster("a", 3), cluster("b", 3)];
    clusters[0].updated = true;
    let recorded = |revision: &str| State {
        revision: revision.to_owned(),
        begun: vec!["canary".to_owned()],
        soaking_since: Some(Timestamp::UNIX_EPOCH - Duration::from_secs(500)),
        ..State::default()
    };
    let revision = revision(&deployment(&fields).set);
    for (recorded, seconds) in [(recorded(&revision), 100), (recorded("web-1"), 600)] {
        let forecast = forecast_after(&recorded, &fields, &clusters);
        assert_eq!(takes(&forecast), Some(Duration::from_secs(seconds)));
    }
}

#[test]
fn pods_that_start_slowly_add_to_the_time() {
    let ValidFederatedDeployment { set, rollout, .. } =
        deployment(&json!({ "replicas": 4, "minReadySeconds": 10, "strategy": budget(1, 0) }));
    let forecast = forecast_rollout(&RolloutQuestion {
        frs: &set,
        settings: &rollout,
        recorded: &State::default(),
        pod_start: Duration::from_secs(5),
        now: Timestamp::UNIX_EPOCH,
        clusters: &[cluster("a", 4)],
    });
    assert_eq!(takes(&forecast), Some(Duration::from_secs(60)));
}

#[test]
fn a_rollout_that_takes_too_many_rounds_is_not_computed_to_its_end() {
    let fields = json!({ "replicas": 30_000, "minReadySeconds": 1, "strategy": budget(1, 0) });
    let forecast = forecast(&fields, &[cluster("a", 30_000)]);
    let RolloutEnd::GoesOn(time) = forecast.end else {
        panic!("{:?}", forecast.end);
    };
    assert!(time > Duration::from_secs(10_000), "{time:?}");
}
