//! The requests of each change, by kind, to an API server with canned answers.

use std::{convert::Infallible, fmt::Write, sync::Arc};

use federated_rollout::{Action as RolloutAction, Strategy};
use fedrs_api::{DeletionPolicy, LocalKind};
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use super::world::{Writer, seen, selector, set, template};
use crate::check::{Outcome, Precondition, SetChange};

/// Requests, as a text.
type Log = Arc<Mutex<String>>;

/// The local workload of a kind, as the member has it.
fn live(kind: LocalKind) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": { "name": "web", "namespace": "default", "uid": "w", "resourceVersion": "7", "generation": 4 },
        "spec": { "replicas": 2, "selector": selector(), "template": template("web:1"), "progressDeadlineSeconds": 600 },
    })
}

/// The only item of the list at `path`: a pod of the workload, or of its ReplicaSet, or this one.
fn list(kind: LocalKind, path: &str) -> Value {
    let is_pod = path.ends_with("pods");
    let has_sets = kind == LocalKind::Deployment;
    let (uid, owner) = match (is_pod, has_sets) {
        (true, true) => ("pod", "set"),
        (true, false) => ("pod", "w"),
        (false, _) => ("set", "w"),
    };
    let owner = json!([{ "uid": owner, "controller": true }]);
    let metadata = json!({ "name": format!("web-{uid}"), "uid": uid, "resourceVersion": "5", "ownerReferences": owner });
    json!({ "metadata": { "resourceVersion": "9" }, "items": [{ "metadata": metadata }] })
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({ "kind": "Status", "code": code, "reason": reason, "message": "", "status": "Failure" });
    (code, status)
}

/// A member that has the workload of a kind already, and keeps it as it is.
fn member(kind: LocalKind, exists: bool) -> (Client, Log) {
    let log = Log::default();
    let written = Arc::clone(&log);
    let service = service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            record(&mut log.lock(), &parts, &body);
            let path = parts.uri.path();
            let is_list = path.ends_with("pods") || path.ends_with("/replicasets");
            let (code, answer) = match parts.method {
                Method::GET if is_list => (200, list(kind, path)),
                // No ReplicaSet of the name was left behind.
                Method::GET if !path.ends_with(&format!("{}/web", kind.resource())) => {
                    failure(404, "NotFound")
                }
                Method::POST if exists => failure(409, "AlreadyExists"),
                Method::DELETE => (200, json!({})),
                _ => (200, live(kind)),
            };
            let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
            *response.status_mut() = code.try_into().unwrap();
            Ok::<_, Infallible>(response)
        }
    });
    (Client::new(service, "default"), written)
}

/// Method, path and body; of a JSON patch a line for each operation.
fn record(log: &mut String, parts: &http::request::Parts, body: &[u8]) {
    let content_type = parts.headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.map_or("", |value| value.to_str().unwrap());
    let short = content_type.trim_start_matches("application/");
    writeln!(log, "{} {} {short}", parts.method, parts.uri).unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Array(_)) => {
            let lines = text.replace("},{\"op\"", "},\n  {\"op\"");
            writeln!(log, "  {lines}").unwrap();
        }
        Ok(_) => writeln!(log, "  {text}").unwrap(),
        Err(_) => {}
    }
}

/// The changes that both kinds have.
fn changes() -> Vec<(&'static str, SetChange)> {
    let running = Precondition {
        has_owners: true,
        resource_version: Some("7".to_owned()),
        ..seen()
    };
    let scale = |seen| SetChange::Scale {
        seen,
        from: 2,
        to: 3,
    };
    let overwrite = SetChange::Overwrite {
        seen: seen(),
        replicas: 3,
        drifted: true,
        keeps_pause: false,
    };
    vec![
        ("scale", scale(seen())),
        ("scale what has owners, at a version", scale(running)),
        ("overwrite", overwrite),
        ("label pods", SetChange::LabelPods { seen: seen() }),
    ]
}

fn rollouts() -> Vec<(&'static str, SetChange)> {
    let change = |action| SetChange::Rollout {
        seen: seen(),
        action,
    };
    vec![
        ("roll", change(RolloutAction::Roll(Strategy::new(2, 1)))),
        ("shrink", change(RolloutAction::Shrink(Strategy::new(1, 0)))),
        ("pause", change(RolloutAction::Pause)),
        ("resume", change(RolloutAction::Resume)),
        ("fence", change(RolloutAction::Fence)),
    ]
}

/// What the changes of a set of a kind send.
async fn requests(kind: LocalKind, changes: Vec<(&str, SetChange)>) -> String {
    let set = set(kind, "web:2");
    let mut texts = String::new();
    let mut show = |change: &str, log: &Log| {
        let requests = log.lock();
        writeln!(texts, "{} {change}\n{requests}", kind.as_str()).unwrap();
    };
    for (name, exists) in [("create", false), ("adopt", true)] {
        let (client, log) = member(kind, exists);
        let change = SetChange::Create {
            replicas: 3,
            revision: None,
        };
        Writer::new(client).carry_out(&set, change).await;
        show(name, &log);
    }
    for (name, change) in changes {
        let (client, log) = member(kind, true);
        Writer::new(client).carry_out(&set, change).await;
        show(name, &log);
    }
    for policy in [DeletionPolicy::Orphan, DeletionPolicy::Delete] {
        let (client, log) = member(kind, true);
        let writer = Writer::new(client);
        let done = writer
            .release_or_delete(&set.workload_key(), "w", policy)
            .await;
        done.unwrap();
        show(&format!("deletion, {policy:?}"), &log);
    }
    texts
}

#[tokio::test]
async fn f38_a_response_with_other_replicas_than_were_written_is_a_failure() {
    for kind in LocalKind::ALL {
        for (replicas, fails) in [(1, true), (2, false), (3, true)] {
            let scale = SetChange::Scale {
                seen: seen(),
                from: 5,
                to: replicas,
            };
            let overwrite = SetChange::Overwrite {
                seen: seen(),
                replicas,
                drifted: false,
                keeps_pause: false,
            };
            for change in [scale, overwrite] {
                let (client, _) = member(kind, true);
                let set = set(kind, "web:2");
                let outcome = Writer::new(client).carry_out(&set, change).await;
                let failed = matches!(outcome, Outcome::Failed(_));
                assert_eq!(failed, fails, "{replicas}: {outcome:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_requests_for_replica_sets() {
    insta::assert_snapshot!(requests(LocalKind::ReplicaSet, changes()).await);
}

#[tokio::test]
async fn l6_the_requests_for_deployments() {
    let changes = [changes(), rollouts()].concat();
    insta::assert_snapshot!(requests(LocalKind::Deployment, changes).await);
}

#[tokio::test]
async fn l6_the_requests_for_local_replica_sets() {
    let change = |action| SetChange::Rollout {
        seen: seen(),
        action,
    };
    let recalls = vec![
        ("recall", change(RolloutAction::Shrink(Strategy::default()))),
        ("lend", change(RolloutAction::Lend(Strategy::new(1, 0)))),
    ];
    let changes = [changes(), rollouts(), recalls].concat();
    insta::assert_snapshot!(requests(LocalKind::LocalReplicaSet, changes).await);
}
