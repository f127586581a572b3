//! Reviews: kinds that are answered and not stored, about the user and the user's permissions.

use http::Response;
use serde_json::{Value, json};

use super::body;
use super::respond::{Body, answer};
use super::write_request::WriteRequest;
use crate::authentication::User;
use crate::authorization::{Attributes, Target, decide, rules_of};
use crate::field::FieldError;
use crate::object::text;
use crate::resources::Kind;
use crate::status::Status;

/// Answers a review of any kind.
///
/// # Errors
/// 400 and 422 for a review without a question.
pub(crate) fn answer_review(write: &WriteRequest<'_>) -> Result<Response<Body>, Status> {
    let kind = &write.view.kind;
    let mut review = body::object(kind, write.headers, write.body)?;
    review["kind"] = json!(kind.kind);
    review["apiVersion"] = json!(kind.api_version());
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    review["status"] = match kind.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": write.user.to_value()}),
        "SelfSubjectRulesReview" => rules_review(write, &review["spec"])?,
        "SubjectAccessReview" => access_review(
            write,
            kind,
            &subject(kind, &review["spec"])?,
            &review["spec"],
        )?,
        _ => access_review(write, kind, write.user, &review["spec"])?,
    };
    Ok(answer(201, &review, Some(write.format)))
}

fn rules_review(write: &WriteRequest<'_>, spec: &Value) -> Result<Value, Status> {
    let namespace = text(spec, "/namespace");
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let rules = |store: &_| rules_of(store, write.user, namespace);
    Ok(write.api.with_store(rules))
}

fn access_review(
    write: &WriteRequest<'_>,
    kind: &Kind,
    user: &User,
    spec: &Value,
) -> Result<Value, Status> {
    let attributes = asked(kind, spec)?;
    let decision = |store: &_| decide(store, user, &attributes);
    let decision = write.api.with_store(decision);
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    Ok(status)
}

/// The action that a review asks about.
fn asked(kind: &Kind, spec: &Value) -> Result<Attributes, Status> {
    let refuse = |cause| Err(Status::invalid(kind, "", &[cause]));
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let target = match (resource.is_object(), path.is_object()) {
        (true, true) => {
            return refuse(FieldError::invalid(
                "spec.nonResourceAttributes",
                path.clone(),
                "cannot be specified in combination with resourceAttributes",
            ));
        }
        (false, false) => {
            return refuse(FieldError::invalid(
                "spec.resourceAttributes",
                Value::Null,
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            ));
        }
        (false, true) => Target::Path(text(path, "/path").to_owned()),
        (true, false) => {
            let text = |field: &str| resource[field].as_str().unwrap_or_default().to_owned();
            Target::Resource {
                group: text("group"),
                resource: text("resource"),
                subresource: text("subresource"),
                namespace: text("namespace"),
                name: text("name"),
            }
        }
    };
    let asked = if resource.is_object() { resource } else { path };
    Ok(Attributes {
        verb: text(asked, "/verb").to_owned(),
        target,
    })
}

/// The user that a `SubjectAccessReview` asks about, with the groups in the review only.
fn subject(kind: &Kind, spec: &Value) -> Result<User, Status> {
    let groups = spec["groups"].as_array().into_iter().flatten();
    let groups: Vec<String> = groups
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let name = text(spec, "/user").to_owned();
    if name.is_empty() && groups.is_empty() {
        let cause = FieldError::invalid(
            "spec.user",
            json!(""),
            "at least one of user or group must be specified",
        );
        return Err(Status::invalid(kind, "", &[cause]));
    }
    Ok(User {
        name,
        groups,
        ..User::default()
    })
}
