//! The outcomes of requests that a member rejects while a workload is created.

use std::convert::Infallible;

use fedrs_api::{LocalKind, RejectionKind};
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde_json::json;
use tower::service_fn;

use super::world::{Writer, selector, set, template};
use crate::check::{Outcome, SetChange};

/// A member that has the ReplicaSet `web` of nobody, and answers requests of one kind with this code.
fn member(rejected: &'static (Method, &str), code: u16) -> Client {
    let service = service_fn(move |request: Request<Body>| async move {
        let (method, path) = (request.method(), request.uri().path());
        let is_rejected = *method == rejected.0 && path.contains(rejected.1);
        let (code, answer) = if is_rejected {
            (
                code,
                json!({ "kind": "Status", "status": "Failure", "code": code, "message": "no" }),
            )
        } else {
            let metadata = json!({ "name": "web", "namespace": "default", "uid": "w", "resourceVersion": "7" });
            let spec =
                json!({ "replicas": 2, "selector": selector(), "template": template("web:1") });
            (200, json!({ "metadata": metadata, "spec": spec }))
        };
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        *response.status_mut() = code.try_into().unwrap();
        Ok::<_, Infallible>(response)
    });
    Client::new(service, "default")
}

/// The outcome without its message.
fn short(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Rejected {
            kind: RejectionKind::Rejected,
            ..
        } => "rejected",
        Outcome::TemplateRejected { creates: true, .. } => "template rejected",
        Outcome::Failed(_) => "failed",
        Outcome::Conflict(_) => "conflict",
        Outcome::Unknown(_) => "unknown",
        _ => "other",
    }
}

#[tokio::test]
async fn f28_what_fails_before_the_workload_exists_is_a_rejected_creation() {
    static FIND: (Method, &str) = (Method::GET, "/replicasets/web");
    static LABEL: (Method, &str) = (Method::PATCH, "/replicasets/web");
    static CREATE: (Method, &str) = (Method::POST, "/replicasets");
    static HAND_OVER: (Method, &str) = (Method::POST, "/deployments");
    static COMPARE: (Method, &str) = (Method::PATCH, "/deployments/web");
    const OF_CREATIONS: [(u16, &str); 6] = [
        (400, "template rejected"),
        (401, "failed"),
        (403, "rejected"),
        (413, "template rejected"),
        (422, "template rejected"),
        (503, "rejected"),
    ];
    let of_writes = [(403, "failed"), (409, "conflict"), (503, "unknown")];
    for (kind, request, expected) in [
        (LocalKind::ReplicaSet, &CREATE, &OF_CREATIONS[..]),
        (LocalKind::Deployment, &HAND_OVER, &OF_CREATIONS),
        (
            LocalKind::Deployment,
            &FIND,
            &[(403, "rejected"), (503, "rejected")],
        ),
        (LocalKind::Deployment, &LABEL, &of_writes),
        (LocalKind::Deployment, &COMPARE, &of_writes),
    ] {
        for (code, expected) in expected {
            let create = SetChange::Create {
                replicas: 3,
                revision: None,
            };
            let writer = Writer::new(member(request, *code));
            let outcome = writer.carry_out(&set(kind, "web:1"), create).await;
            assert_eq!(
                short(&outcome),
                *expected,
                "{request:?} {code}: {outcome:?}"
            );
        }
    }
}
