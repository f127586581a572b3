//! A client that sends one request and shows the whole answer.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use sim_cluster::ApiService;
use sim_cluster::Body;
use tower::ServiceExt;

/// Sends requests to one cluster.
pub(crate) struct Client {
    service: ApiService,
    /// The bearer token; without one it is the administrator.
    token: Option<String>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) text: String,
}

impl Client {
    pub(crate) fn new(service: ApiService) -> Self {
        Self {
            service,
            token: None,
        }
    }

    pub(crate) fn with_token(service: ApiService, token: &str) -> Self {
        Self {
            service,
            token: Some(token.to_owned()),
        }
    }

    /// Sends a request and returns its answer with the body unread.
    pub(crate) async fn open(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Response<Body> {
        let request = match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        let request: Request<Full<Bytes>> = request
            .body(Full::from(body))
            .expect("valid requests in tests");
        self.service
            .clone()
            .oneshot(request)
            .await
            .expect("the cluster is reachable")
    }

    async fn exchange(&self, request: http::request::Builder, body: String) -> Answer {
        let response = self.open(request, body).await;
        let code = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a whole body")
            .to_bytes();
        Answer {
            code,
            text: String::from_utf8(bytes.to_vec()).expect("text"),
        }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        self.exchange(
            request,
            body.map(|body| body.to_string()).unwrap_or_default(),
        )
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.exchange(Request::get(path).header("accept", accept), String::new())
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str, body: Option<Value>) -> Answer {
        self.send(Method::DELETE, path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, form: &str, body: &Value) -> Answer {
        let request = Request::patch(path).header("content-type", format!("application/{form}"));
        self.exchange(request, body.to_string()).await
    }
}

impl Answer {
    /// The body of an answer that must have this code.
    #[track_caller]
    pub(crate) fn expect(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        serde_json::from_str(&self.text).expect("JSON")
    }

    /// Checks an error, with the beginning of its message.
    #[track_caller]
    pub(crate) fn assert_status(&self, code: u16, reason: &str, message: &str) {
        let status = self.expect(code);
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["reason"].as_str().unwrap_or_default(), reason);
        let given = status["message"].as_str().unwrap_or_default();
        assert!(given.starts_with(message), "{given}\n  is not\n{message}");
    }
}
