//! `fedrs maintenance`: what it creates, shows and ends. What follows on nodes is tested with the controller.

use serde_json::{Value, json};

use crate::federation::{Federation, Outcome};

async fn run(federation: &Federation, arguments: &str) -> Outcome {
    let arguments = format!("maintenance --kubeconfig host.yaml {arguments}");
    federation.fedrs(&arguments).await
}

fn spec(federation: &Federation) -> Value {
    let host = &federation.host;
    let object = host.get("fedrs.dev/v1alpha1", "Maintenance", "", "rack-7");
    object.unwrap()["spec"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn m9_m15_work_is_started_shown_and_ended() {
    let federation = Federation::start(&[]).await;
    let outcome = run(&federation, "status").await.succeeded();
    outcome.contains(&["no Maintenances"]);
    let options = "--clusters=eu,us --selector=rack=r7,kind=gpu --start-time=2027-01-15T09:00:00+01:00 \
        --duration=90m --deadline=7d --reason=power";
    let outcome = run(&federation, &format!("start rack-7 {options}")).await;
    assert_eq!(outcome.succeeded().stdout, "maintenance/rack-7 created\n");
    let expected = json!({
        "clusters": ["eu", "us"],
        "nodeSelector": { "matchLabels": { "rack": "r7", "kind": "gpu" } },
        "startTime": "2027-01-15T08:00:00Z", "durationSeconds": 5400,
        "deadline": "2027-01-22T08:00:00Z", "reason": "power", "federation": "",
    });
    assert_eq!(spec(&federation), expected);
    let outcome = run(&federation, &format!("start rack-7 {options}")).await;
    outcome.failed().contains(&["already exists"]);
    let outcome = run(&federation, "status").await.succeeded();
    outcome.contains(&["NAME", "rack-7", "2027-01-22T08:00:00Z", "power"]);
    let outcome = run(&federation, "end rack-7").await.succeeded();
    assert_eq!(outcome.stdout, "maintenance/rack-7 ended\n");
    assert_eq!(spec(&federation)["ended"], true);
    let outcome = run(&federation, "end rack-7").await.succeeded();
    assert_eq!(outcome.stdout, "maintenance/rack-7 had ended before\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_rejected() {
    let federation = Federation::start(&[]).await;
    for (arguments, part) in [
        ("start all", "--selector <KEY=VALUE,...>"),
        ("start all -l rack", "must be KEY=VALUE"),
        ("start all -l rack=r7 --duration=0s", "must be a duration"),
        ("start all -l rack=r7 --deadline=soon", "must be a time"),
    ] {
        run(&federation, arguments).await.ended(2).contains(&[part]);
    }
    let early =
        "start all -l rack=r7 --start-time=2027-01-15T08:00:00Z --deadline=2027-01-14T08:00:00Z";
    let outcome = run(&federation, early).await.failed();
    outcome.contains(&["spec.deadline", "must be after startTime"]);
    for arguments in ["status none", "end none"] {
        let outcome = run(&federation, arguments).await.failed();
        outcome.contains(&["maintenance none not found"]);
    }
}
