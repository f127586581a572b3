//! Sends notifications to webhooks: one request each, with a deadline. Redirects are not followed, and of an answer only its status is
//! read.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use controller_base::error_text::format_error;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rustls::{ClientConfig, RootCertStore};
use tower::{BoxError, Service, ServiceExt, util::BoxCloneSyncService};

use super::cloud_event::CONTENT_TYPE;
use fedrs_api::Webhook;

/// The longest that a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of the head of an answer: nothing but its status is used.
const MAX_ANSWER: usize = 16 * 1024;
/// The most bytes of a token.
const MAX_TOKEN: u64 = 64 * 1024;

/// Sends requests to webhooks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Webhooks(BoxCloneSyncService<Request<Full<Bytes>>, StatusCode, BoxError>);

/// Why a webhook has not acknowledged a notification. The text has neither its URL nor a token.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebhookError {
    #[error("no answer within {0:?}")]
    Deadline(Duration),
    #[error("{0}")]
    Unreachable(String),
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("migration.notify.tokenFile has no token of one line")]
    Token,
}

impl WebhookError {
    /// Whether the webhook answers, and does not take this notification: others may be taken.
    pub(super) fn is_rejection(&self) -> bool {
        matches!(self, Self::Status(400 | 413 | 415 | 422))
    }
}

/// A notification as it is sent.
pub(super) struct Message {
    pub(super) id: String,
    pub(super) body: Bytes,
}

impl Webhooks {
    /// Over the network, by HTTP or by TLS with the certificate authorities of the system.
    #[must_use]
    pub fn over_network() -> Self {
        let tls = ClientConfig::builder().with_native_roots();
        // Without any, webhooks `http://` can be reached.
        let tls = tls.unwrap_or_else(|_| {
            ClientConfig::builder().with_root_certificates(RootCertStore::empty())
        });
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls.with_no_client_auth());
        let connector = connector.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .retry_canceled_requests(false)
            .http1_max_buf_size(MAX_ANSWER)
            .build(connector);
        Self::new(client)
    }

    /// None can be reached: for simulations.
    #[must_use]
    pub fn unreachable() -> Self {
        Self::new(tower::service_fn(async |_| {
            Err::<Response<()>, BoxError>("no network".into())
        }))
    }

    /// By this service, such as one of a test.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: 'static,
    {
        let status = |response: Response<B>| response.status();
        let service = service.map_response(status).map_err(Into::into);
        Self(BoxCloneSyncService::new(service))
    }

    /// Sends `message` to `webhook`, with the bearer token in `token_file`, and waits until it is acknowledged by a status 2xx.
    pub(super) async fn send(
        &self,
        webhook: &Webhook,
        token_file: Option<&Path>,
        message: &Message,
    ) -> Result<(), WebhookError> {
        let mut request = Request::post(webhook.uri())
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header(
                header::USER_AGENT,
                concat!("fedrs/", env!("CARGO_PKG_VERSION")),
            )
            .header("Idempotency-Key", &message.id)
            .body(Full::new(message.body.clone()))
            .map_err(|_| WebhookError::Unreachable("is not a URL".to_owned()))?;
        if let Some(file) = token_file {
            let token = authorization(file).await.ok_or(WebhookError::Token)?;
            request.headers_mut().insert(header::AUTHORIZATION, token);
        }
        let answer = self.0.clone().oneshot(request);
        match tokio::time::timeout(TIMEOUT, answer).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(WebhookError::Status(status.as_u16())),
            Ok(Err(error)) => Err(WebhookError::Unreachable(format_error(&*error))),
            Err(_) => Err(WebhookError::Deadline(TIMEOUT)),
        }
    }
}

/// The header with the token in `file`.
async fn authorization(file: &Path) -> Option<HeaderValue> {
    let length = tokio::fs::metadata(file).await.ok()?.len();
    let token = tokio::fs::read(file)
        .await
        .ok()
        .filter(|_| length <= MAX_TOKEN)?;
    let token = token.trim_ascii();
    let value = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
    let mut value = value.ok().filter(|_| !token.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}
