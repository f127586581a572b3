//! Tokens of members, and the gate before each member's API that asks for them: who comes by a kubeconfig is let in by a
//! token that was given out here, has not ended and was not revoked. It gives out others on request.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use federation_controller::{
    clock::Clock,
    members::kubeconfig::{Connect, Kubeconfig},
};
use futures::{FutureExt, future::BoxFuture};
use http::{
    Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{Either, Full};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{BoxError, Service, ServiceExt};

use crate::link::{Link, LinkBody};

/// Where the account of the controller has its token.
const TOKEN_PATH: &str = "/api/v1/namespaces/fedrs-system/serviceaccounts/fedrs-controller/token";

/// The tokens of all members. Cheap to clone; clones know the same tokens.
#[derive(Clone)]
pub struct Tokens {
    clock: Clock,
    given: Arc<Mutex<Given>>,
}

#[derive(Default)]
struct Given {
    /// When each token ends, in seconds since 1970.
    ends: BTreeMap<String, i64>,
    revoked: BTreeSet<String>,
    count: u64,
}

impl Tokens {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            given: Arc::default(),
        }
    }

    /// A token of the controller's account, for so many seconds.
    pub fn give(&self, life: i64) -> String {
        let now = self.clock.now().as_second();
        let mut given = self.given.lock();
        given.count += 1;
        let claims = json!({
            "iat": now,
            "exp": now + life,
            "jti": given.count,
            "sub": "system:serviceaccount:fedrs-system:fedrs-controller",
        });
        let token = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()));
        given.ends.insert(token.clone(), now + life);
        token
    }

    /// Lets nobody in by `token` any more.
    pub fn revoke(&self, token: &str) {
        self.given.lock().revoked.insert(token.to_owned());
    }

    /// How many have been given out.
    pub fn count(&self) -> u64 {
        self.given.lock().count
    }

    fn lets_in(&self, request: &Request<Body>) -> bool {
        let header = request.headers().get(AUTHORIZATION);
        let token = header.and_then(|it| it.to_str().ok()?.strip_prefix("Bearer "));
        let given = self.given.lock();
        let now = self.clock.now().as_second();
        token.is_some_and(|token| {
            let ends = given.ends.get(token);
            ends.is_some_and(|end| now < *end) && !given.revoked.contains(token)
        })
    }
}

/// Makes clients of kubeconfigs: the server's name is the member's.
pub(crate) struct Gates {
    pub(crate) tokens: Tokens,
    pub(crate) members: BTreeMap<String, Link>,
}

impl Connect for Gates {
    fn connect(&self, kubeconfig: Kubeconfig) -> BoxFuture<'static, Result<Client, String>> {
        let name = kubeconfig.server().trim_start_matches("https://");
        let client = self.members.get(name).map(|link| {
            let gate = Gate {
                tokens: self.tokens.clone(),
                link: link.clone(),
                token: kubeconfig.token().unwrap_or_default().to_owned(),
            };
            Client::new(gate, "default")
        });
        let client = client.ok_or_else(|| format!("no cluster {name}"));
        futures::future::ready(client).boxed()
    }
}

/// The member's own answer, or the gate's.
type GateBody = Either<LinkBody, Full<Bytes>>;

/// A member's API, with the token that a client brings.
#[derive(Clone)]
struct Gate {
    tokens: Tokens,
    link: Link,
    token: String,
}

impl Service<Request<Body>> for Gate {
    type Response = Response<GateBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<GateBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Self {
            tokens,
            link,
            token,
        } = self.clone();
        if let Ok(header) = format!("Bearer {token}").parse() {
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        Box::pin(async move {
            let is_let_in = tokens.lets_in(&request);
            // The cluster behind knows no tokens of ours; to it, all are its administrator.
            request.headers_mut().remove(AUTHORIZATION);
            let asks_for_a_token =
                request.method() == Method::POST && request.uri().path() == TOKEN_PATH;
            if !is_let_in {
                // What can't be reached refuses nothing.
                let probe = Request::get("/readyz").body(Body::empty())?;
                link.oneshot(probe).await?;
                let status = json!({ "kind": "Status", "code": 401, "message": "Unauthorized" });
                return answer(StatusCode::UNAUTHORIZED, &status);
            }
            if asks_for_a_token {
                let body = request.into_body().collect_bytes().await?;
                let body: Value = serde_json::from_slice(&body)?;
                let life = body["spec"]["expirationSeconds"].as_i64().unwrap_or(3600);
                let token = json!({ "status": { "token": tokens.give(life) } });
                return answer(StatusCode::CREATED, &token);
            }
            Ok(link.oneshot(request).await?.map(Either::Left))
        })
    }
}

fn answer(code: StatusCode, body: &Value) -> Result<Response<GateBody>, BoxError> {
    let body = Either::Right(Full::new(body.to_string().into_bytes().into()));
    let response = Response::builder()
        .status(code)
        .header(CONTENT_TYPE, "application/json")
        .body(body)?;
    Ok(response)
}
