//! A host that answers reviews, for tests.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use crate::{
    catalog::Catalog, metrics::DiscoveryMetrics, pod::PodObject, service::Service, set::SetKey,
};

/// Whom the tokens of clients have to be meant for.
const AUDIENCE: &str = "fedrs-discovery";

/// The token `TOKEN-USER` is that of a user. Any other one is nobody's.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Users, and the sets that they may get.
    pub(crate) rights: Mutex<BTreeSet<(&'static str, SetKey)>>,
    pub(crate) is_away: AtomicBool,
    /// How many reviews it has answered.
    pub(crate) reviews: AtomicUsize,
}

impl Host {
    pub(crate) fn allow(&self, user: &'static str, name: &str) {
        self.rights.lock().insert((user, SetKey::new("shop", name)));
    }

    /// Lets a user list the sets of all namespaces.
    pub(crate) fn allow_all(&self, user: &'static str) {
        self.rights.lock().insert((user, SetKey::new("", "")));
    }

    pub(crate) fn deny_all(&self) {
        self.rights.lock().clear();
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::Relaxed);
    }

    pub(crate) fn reviews(&self) -> usize {
        self.reviews.load(Ordering::Relaxed)
    }

    /// A service that authorizes clients by this host, with the sets `web` and `api` of the namespace `shop`, a pod in each.
    pub(crate) fn service(self: &Arc<Self>) -> Service {
        let host = Arc::clone(self);
        let service = service_fn(move |request: Request<Body>| {
            let host = Arc::clone(&host);
            async move {
                if host.is_away.load(Ordering::Relaxed) {
                    return Err(std::io::Error::other("away"));
                }
                host.reviews.fetch_add(1, Ordering::Relaxed);
                let is_token = request.uri().path().ends_with("/tokenreviews");
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let mut review: Value = serde_json::from_slice(&body).unwrap();
                review["status"] = if is_token {
                    Self::user(&review["spec"])
                } else {
                    json!({ "allowed": host.allows(&review["spec"]) })
                };
                let response = Response::builder().status(StatusCode::CREATED);
                Ok(response
                    .body(Body::from(review.to_string().into_bytes()))
                    .unwrap())
            }
        });
        let client = Client::new(service, "default");
        Service::new(catalog(), DiscoveryMetrics::default())
            .with_reviews(client, AUDIENCE.to_owned())
    }

    fn user(spec: &Value) -> Value {
        let token = spec["token"].as_str().unwrap();
        assert_eq!(spec["audiences"], json!([AUDIENCE]));
        match token.strip_prefix("TOKEN-") {
            Some("of-another-audience") => json!({
                "authenticated": true, "user": { "username": "a" },
            }),
            Some(user) => json!({
                "authenticated": true, "audiences": [AUDIENCE],
                "user": { "username": user, "uid": "1", "groups": ["shop"] },
            }),
            None => json!({ "authenticated": false, "error": "invalid" }),
        }
    }

    fn allows(&self, spec: &Value) -> bool {
        let asked = &spec["resourceAttributes"];
        let verb = if asked["name"] == "" { "list" } else { "get" };
        assert_eq!(
            (&asked["verb"], &asked["group"], &asked["resource"]),
            (&json!(verb), &json!("fedrs.dev"), &json!("endpointsets"))
        );
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let key = SetKey::new(text(&asked["namespace"]), text(&asked["name"]));
        let user = text(&spec["user"]);
        let mut rights = self.rights.lock().clone().into_iter();
        rights.any(|right| right == (&*user, key.clone()))
    }
}

/// The headers of a request with a token.
pub(crate) fn with_token(token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    [(header::AUTHORIZATION, value)].into_iter().collect()
}

fn catalog() -> Arc<Catalog> {
    let catalog = Catalog::waiting_for([]);
    catalog.update(|state| {
        state.add_member(&"eu".into());
        for (number, name) in [(1, "web"), (2, "api")] {
            let set = json!({
                "apiVersion": "fedrs.dev/v1alpha1", "kind": "EndpointSet",
                "metadata": { "namespace": "shop", "name": name },
                "spec": {
                    "source": { "selector": { "matchLabels": { "app": name } } },
                    "ports": [{ "name": "http", "port": 8080 }],
                },
            });
            state.apply_set(&serde_json::from_value(set).unwrap());
            let pod = json!({
                "metadata": {
                    "namespace": "shop", "name": name, "resourceVersion": "1", "labels": { "app": name },
                },
                "status": {
                    "phase": "Running", "podIPs": [{ "ip": format!("10.0.0.{number}") }],
                    "conditions": [{ "type": "Ready", "status": "True" }],
                },
            });
            let pod: PodObject = serde_json::from_str(&pod.to_string()).unwrap();
            state.apply_pod("eu", pod);
        }
        state.end_pods("eu");
    });
    catalog.members_known();
    catalog
}
