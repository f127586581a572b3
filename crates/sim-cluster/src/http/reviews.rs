//! Kinds that are answered and not kept: reviews of who one is and what one may do, and token requests.
//!
//! Everybody who gets in may do everything here; RBAC objects are kept, and not enforced.

use http::Response;
use serde_json::{Value, json};

use super::body;
use super::respond::{Body, answer};
use super::write::Write;
use crate::clock::to_time;
use crate::status::Status;

/// Who everybody is.
pub(crate) const USER: &str = "admin";

pub(crate) fn answer_review(write: &Write<'_>) -> Result<Response<Body>, Status> {
    let kind = &write.view.kind;
    let mut review = body::object(kind, write.headers, write.body)?;
    review["kind"] = json!(kind.kind);
    review["apiVersion"] = json!(kind.api_version());
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["status"] = match kind.kind.as_str() {
        "SelfSubjectRulesReview" => json!({
            "incomplete": false,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        "SelfSubjectReview" => json!({
            "userInfo": {"username": USER, "groups": ["system:masters", "system:authenticated"]},
        }),
        _ => json!({"allowed": true}),
    };
    Ok(answer(201, &review, Some(write.format)))
}

/// A token for a service account: it names the account, and is accepted as long as the cluster runs.
pub(crate) fn token_request(
    write: &Write<'_>,
    mut request: Value,
) -> Result<Response<Body>, Status> {
    let account = write
        .api
        .get(&write.view.kind, write.namespace, write.name)?;
    let seconds = request["spec"]["expirationSeconds"]
        .as_i64()
        .unwrap_or(3_600);
    let until = write
        .api
        .clock()
        .now()
        .saturating_add(jiff::SignedDuration::from_secs(seconds));
    let until = until.unwrap_or(write.api.clock().now());
    let token = write.api.issue_token(write.namespace, write.name);
    request["kind"] = json!("TokenRequest");
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["metadata"] = json!({
        "name": write.name, "namespace": write.namespace,
        "creationTimestamp": write.api.clock().now_time(),
        "uid": account["metadata"]["uid"],
    });
    request["spec"]["expirationSeconds"] = json!(seconds);
    request["status"] = json!({"token": token, "expirationTimestamp": to_time(until)});
    Ok(answer(201, &request, Some(write.format)))
}
