//! A cluster as a tower service: every request takes a minimal (simulated) time and is subject to faults.
//!
//! request -> fault -> latency -> authentication, authorization -> handler -> audit -> answer, or lost answer

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::DATE;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::authentication::User;
use crate::faults::{ConnectionError, Faults, RequestOutcome};
use crate::http::{Body, BoxError, Handler, Subject, refuse};
use crate::status::Status;

/// The minimal latency. A loop of requests without latency would stop a paused clock.
const BASE_LATENCY: Duration = Duration::from_millis(1);
/// The largest body that the API server accepts.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A cluster's API as a [`tower::Service`], for `kube::Client::new` and the HTTPS server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ApiService {
    handler: Handler,
    faults: Faults,
    /// The user of requests without a token.
    default_user: User,
    audit: AuditSink,
}

/// A request that the API server has handled, as its audit log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// The method.
    pub method: Method,
    /// The path and the query.
    pub uri: Uri,
    /// The code of the response, whether or not it arrives.
    pub code: StatusCode,
    /// The resource versions of the changes that the request made.
    pub versions: Range<u64>,
}

/// What is called with each event, before the response is sent.
#[derive(Clone, Default)]
struct AuditSink(Option<Arc<Sink>>);

type Sink = dyn Fn(&AuditEvent) + Send + Sync;

impl fmt::Debug for AuditSink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuditSink({})", self.0.is_some())
    }
}

impl ApiService {
    /// A service for code in this process: requests without a token are the administrator's.
    pub(crate) fn new(handler: Handler, faults: Faults) -> Self {
        Self {
            handler,
            faults,
            default_user: User::administrator(),
            audit: AuditSink::default(),
        }
    }

    /// The same service, which calls `sink` with each request that it has handled, before the response is sent.
    #[must_use]
    pub fn audited(self, sink: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        Self {
            audit: AuditSink(Some(Arc::new(sink))),
            ..self
        }
    }

    /// The same service for other processes: requests without a token are anonymous.
    pub(crate) fn for_remote_clients(self) -> Self {
        Self {
            default_user: User::anonymous(),
            ..self
        }
    }

    async fn serve<B>(self, request: Request<B>) -> Result<Response<Body>, BoxError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let subject = Subject::of(&parts);
        let response_lost = match self.pass_faults(&subject).await? {
            Ok(response_lost) => response_lost,
            Err(refusal) => return Ok(self.dated(refuse(&refusal))),
        };
        let response = match self.handler.admit(&parts, &self.default_user) {
            Err(refusal) => refuse(&refusal),
            Ok(user) => match Limited::new(body, BODY_BYTES_MAX).collect().await {
                Ok(body) => self.answer(user, &parts, &body.to_bytes()),
                Err(error) if error.is::<LengthLimitError>() => refuse(&too_large()),
                Err(error) => return Err(error),
            },
        };
        if response_lost {
            return Err(ConnectionError::Reset.into());
        }
        Ok(self.dated(response))
    }

    /// Handles a request and reports it.
    fn answer(&self, user: User, parts: &Parts, body: &Bytes) -> Response<Body> {
        let first = self.handler.revision() + 1;
        let response = self.handler.answer(user, parts, body);
        if let AuditSink(Some(sink)) = &self.audit {
            sink(&AuditEvent {
                method: parts.method.clone(),
                uri: parts.uri.clone(),
                code: response.status(),
                versions: first..self.handler.revision() + 1,
            });
        }
        response
    }

    fn dated(&self, mut response: Response<Body>) -> Response<Body> {
        response.headers_mut().insert(DATE, self.handler.date());
        response
    }

    /// Waits for the latency. Returns whether the answer is lost, or the status that rejects the request.
    async fn pass_faults(
        &self,
        subject: &Subject,
    ) -> Result<Result<bool, Status>, ConnectionError> {
        loop {
            let notify = self.faults.notify();
            let notified = notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            match self
                .faults
                .decide(subject.verb, &subject.plural, &subject.subresource)
            {
                RequestOutcome::Hangs => notified.await,
                RequestOutcome::Unreachable => {
                    tokio::time::sleep(BASE_LATENCY).await;
                    return Err(ConnectionError::Refused);
                }
                RequestOutcome::Refused(status) => {
                    tokio::time::sleep(BASE_LATENCY).await;
                    return Ok(Err(status));
                }
                RequestOutcome::Served {
                    latency,
                    response_lost,
                } => {
                    tokio::time::sleep(BASE_LATENCY + latency).await;
                    return Ok(Ok(response_lost));
                }
            }
        }
    }
}

fn too_large() -> Status {
    let message = format!("Request entity too large: limit is {BODY_BYTES_MAX}");
    Status::new(413, "RequestEntityTooLarge", message)
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().serve(request))
    }
}
