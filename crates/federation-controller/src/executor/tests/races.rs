//! An overwrite beside other writers of the same workload.

use std::{convert::Infallible, sync::Arc};

use fedrs_api::LocalKind;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use super::world::{Writer, seen, selector, set, template};
use crate::check::{Outcome, SetChange};

/// The member's ReplicaSet, and the writes of others that are still to come: each after our next read.
struct Member {
    version: u32,
    generation: i64,
    replicas: u32,
    /// Whether each write changes the spec, or only the status.
    others: Vec<bool>,
    /// Whether every write is rejected without a cause, as is one that was made for another version.
    refuses: bool,
    writes: u32,
}

impl Member {
    fn new(others: Vec<bool>) -> Self {
        Self {
            version: 7,
            generation: 4,
            replicas: 7,
            others,
            refuses: false,
            writes: 0,
        }
    }

    fn object(&self) -> Value {
        let version = self.version.to_string();
        let metadata = json!({
            "name": "web", "namespace": "default", "uid": "w", "resourceVersion": version, "generation": self.generation,
        });
        let spec = json!({ "replicas": self.replicas, "selector": selector(), "template": template("web:1") });
        json!({ "metadata": metadata, "spec": spec })
    }

    fn read(&mut self) -> Value {
        let read = self.object();
        if let Some(changes_spec) = self.others.pop() {
            self.version += 1;
            self.generation += i64::from(changes_spec);
        }
        read
    }

    /// Carries out a JSON patch that sets the replicas, if it was made for this version.
    fn patch(&mut self, patch: &[Value]) -> Option<Value> {
        self.writes += 1;
        if self.refuses {
            return None;
        }
        let version = self.version.to_string();
        let of = |path: &str, op: &str| {
            let found = patch.iter().find(|o| o["path"] == path && o["op"] == op);
            found.map(|operation| operation["value"].clone())
        };
        if of("/metadata/resourceVersion", "test")? != json!(version) {
            return None;
        }
        let replicas = of("/spec", "replace")?["replicas"].as_u64()?;
        self.replicas = u32::try_from(replicas).ok()?;
        self.version += 1;
        self.generation += 1;
        Some(self.object())
    }

    fn client(member: Arc<Mutex<Self>>) -> Client {
        let service = service_fn(move |request: Request<Body>| {
            let member = Arc::clone(&member);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let mut member = member.lock();
                let answer = if parts.method == Method::GET {
                    Some(member.read())
                } else {
                    let patch: Vec<Value> = serde_json::from_slice(&body).unwrap();
                    member.patch(&patch)
                };
                let failed_test = json!({ "kind": "Status", "status": "Failure", "code": 422 });
                let (code, answer) = answer.map_or((422, failed_test), |answer| (200, answer));
                let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
                *response.status_mut() = code.try_into().unwrap();
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "default")
    }
}

async fn overwrite(member: &Arc<Mutex<Member>>) -> Outcome {
    let overwrite = SetChange::Overwrite {
        seen: seen(),
        replicas: 3,
        drifted: true,
        keeps_pause: false,
    };
    let writer = Writer::new(Member::client(Arc::clone(member)));
    let set = set(LocalKind::ReplicaSet, "web:1");
    writer.carry_out(&set, overwrite).await
}

#[tokio::test]
async fn f29_status_writes_of_the_member_do_not_hold_an_overwrite_up() {
    let (status, spec) = (false, true);
    for (name, others, is_written) in [
        ("nobody else writes", vec![], true),
        (
            "the status changes at each read but the last",
            vec![status; 3],
            true,
        ),
        ("the status changes at each read", vec![status; 4], false),
        ("the spec changes", vec![spec], false),
        ("first the status, then the spec", vec![spec, status], false),
    ] {
        let member = Arc::new(Mutex::new(Member::new(others)));
        let outcome = overwrite(&member).await;
        assert_eq!(
            matches!(outcome, Outcome::Written(_)),
            is_written,
            "{name}: {outcome:?}"
        );
        assert_eq!(
            matches!(outcome, Outcome::Conflict(_)),
            !is_written,
            "{name}: {outcome:?}"
        );
        assert_eq!(member.lock().replicas == 3, is_written, "{name}");
    }
}

#[tokio::test]
async fn f38_an_overwrite_that_is_refused_for_another_reason_is_sent_once() {
    let mut member = Member::new(vec![]);
    member.refuses = true;
    let member = Arc::new(Mutex::new(member));
    let outcome = overwrite(&member).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(member.lock().writes, 1);
}
