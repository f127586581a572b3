//! The tokens of `ServiceAccount`s: the answer to a `TokenRequest`, and the user of a token.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::credentials::Credentials;
use super::token::{Bound, Claims, ISSUER, LEEWAY, Reference};
use super::user::{User, account_name};
use crate::clock::{parse_time, to_time};
use crate::field::FieldError;
use crate::object::text;
use crate::resources::{Kind, kinds};
use crate::status::Status;
use crate::store::{Identities, Store};

/// The default lifetime of a token.
const DEFAULT_SECONDS: i64 = 3_600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;

/// Answers a `TokenRequest` for a `ServiceAccount`.
///
/// # Errors
/// 404 if the account, or the object to bind to, does not exist; 409 if one of them has another uid; 422 for less than
/// ten minutes or more than 2^32 seconds.
pub(crate) fn issue(
    store: &Store,
    (credentials, identities): (&Credentials, &mut Identities),
    now: Timestamp,
    (namespace, name): (&str, &str),
    mut request: Value,
) -> Result<Value, Status> {
    let request_kind = Kind::of_body("authentication.k8s.io", "TokenRequest");
    check_place(&request_kind, namespace, name, &request)?;
    let account = find(store, &kinds::SERVICE_ACCOUNTS, namespace, name)?;
    let uid = text(&request, "/metadata/uid");
    if !uid.is_empty() && uid != account.uid {
        let why = format!(
            "the UID in the token request ({uid}) does not match the UID of the service account ({})",
            account.uid
        );
        return Err(Status::conflict(&request_kind, name, &why));
    }
    if words(&request["spec"]["audiences"]).is_empty() {
        request["spec"]["audiences"] = json!([ISSUER]);
    }
    let seconds = &request["spec"]["expirationSeconds"];
    let seconds = seconds.as_i64().unwrap_or(DEFAULT_SECONDS);
    check_duration(&request_kind, seconds)?;
    let until = now.saturating_add(SignedDuration::from_secs(seconds));
    let until = until.unwrap_or(Timestamp::MAX);
    let mut bound = Bound {
        namespace: namespace.to_owned(),
        node: None,
        pod: None,
        secret: None,
        serviceaccount: account.clone(),
    };
    bind(store, &mut bound, &request["spec"]["boundObjectRef"])?;
    let claims = Claims {
        aud: words(&request["spec"]["audiences"]),
        exp: until.as_second(),
        iat: now.as_second(),
        iss: ISSUER.to_owned(),
        jti: identities.uid(),
        kubernetes: bound,
        nbf: now.as_second(),
        sub: account_name(namespace, name),
    };
    request["kind"] = json!("TokenRequest");
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["metadata"] = json!({
        "name": name, "namespace": namespace, "uid": account.uid, "creationTimestamp": to_time(now),
    });
    request["spec"]["expirationSeconds"] = json!(seconds);
    request["status"] = json!({
        "token": credentials.sign(&claims), "expirationTimestamp": to_time(until),
    });
    Ok(request)
}

fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    words.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A request that names an account must name that of the path.
fn check_place(kind: &Kind, namespace: &str, name: &str, request: &Value) -> Result<(), Status> {
    for (field, word, expected) in [
        ("name", "name", name),
        ("namespace", "namespace", namespace),
    ] {
        let given = request["metadata"][field].as_str().unwrap_or_default();
        if !given.is_empty() && given != expected {
            let detail = format!("must match the service account {word} if specified");
            let cause = FieldError::invalid(format!("metadata.{field}"), json!(given), &detail);
            return Err(Status::invalid(kind, name, &[cause]));
        }
    }
    Ok(())
}

fn check_duration(kind: &Kind, seconds: i64) -> Result<(), Status> {
    let detail = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let cause = FieldError::invalid("spec.expirationSeconds", json!(seconds), detail);
    Err(Status::invalid(kind, "", &[cause]))
}

/// Binds the token to the object in its request.
fn bind(store: &Store, bound: &mut Bound, wanted: &Value) -> Result<(), Status> {
    if !wanted.is_object() {
        return Ok(());
    }
    let (kind, name) = (text(wanted, "/kind"), text(wanted, "/name"));
    let namespace = bound.namespace.as_str();
    let found = match (text(wanted, "/apiVersion"), kind) {
        ("v1", "Pod") => {
            let pod = find(store, &kinds::PODS, namespace, name)?;
            let account = &bound.serviceaccount.name;
            let stored = store.get(&kinds::PODS, namespace, name);
            if stored.is_some_and(|pod| text(pod, "/spec/serviceAccountName") != account) {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            bound.pod.insert(pod)
        }
        ("v1", "Secret") => {
            let secret = find(store, &kinds::SECRETS, namespace, name)?;
            bound.secret.insert(secret)
        }
        ("v1", "Node") => bound.node.insert(find(store, &kinds::NODES, "", name)?),
        (version, _) => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let uid = text(wanted, "/uid");
    if !uid.is_empty() && uid != found.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(&Kind::of_body("", kind), name, &why));
    }
    Ok(())
}

fn find(store: &Store, kind: &Kind, namespace: &str, name: &str) -> Result<Reference, Status> {
    let found = store.get(kind, namespace, name);
    let found = found.ok_or_else(|| Status::not_found(kind, name))?;
    Ok(Reference {
        name: name.to_owned(),
        uid: text(found, "/metadata/uid").to_owned(),
    })
}

/// The user of a token with these claims; `None` if it has expired or an object that it is bound to no longer exists.
pub(crate) fn user_of(store: &Store, claims: &Claims, now: Timestamp) -> Option<User> {
    let bound = &claims.kubernetes;
    let account = &bound.serviceaccount;
    let namespace = bound.namespace.as_str();
    let all_there = [
        (&*kinds::SERVICE_ACCOUNTS, namespace, Some(account)),
        (&*kinds::PODS, namespace, bound.pod.as_ref()),
        (&*kinds::SECRETS, namespace, bound.secret.as_ref()),
        (&*kinds::NODES, "", bound.node.as_ref()),
    ]
    .into_iter()
    .all(|(kind, namespace, reference)| {
        reference.is_none_or(|reference| is_there(store, kind, namespace, reference, now))
    });
    if !all_there || !claims.hold_at(now) {
        return None;
    }
    let mut user = User::service_account(namespace, &account.name);
    user.uid.clone_from(&account.uid);
    let mut add = |key: &str, value: String| {
        let key = format!("authentication.kubernetes.io/{key}");
        user.extra.insert(key, vec![value]);
    };
    add("credential-id", format!("JTI={}", claims.jti));
    for (kind, reference) in [("pod", &bound.pod), ("node", &bound.node)] {
        if let Some(reference) = reference {
            add(&format!("{kind}-name"), reference.name.clone());
            add(&format!("{kind}-uid"), reference.uid.clone());
        }
    }
    Some(user)
}

/// Whether the object exists with this uid, and its deletion is not longer ago than the leeway.
fn is_there(
    store: &Store,
    kind: &Kind,
    namespace: &str,
    reference: &Reference,
    now: Timestamp,
) -> bool {
    let Some(object) = store.get(kind, namespace, &reference.name) else {
        return false;
    };
    let deleted = parse_time(text(object, "/metadata/deletionTimestamp"));
    text(object, "/metadata/uid") == reference.uid
        && deleted.is_none_or(|deleted| now.duration_since(deleted) <= LEEWAY)
}
