//! Crashes a controller at an exact write: from then on none of its requests reaches a cluster.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use parking_lot::Mutex;
use sim_cluster::ApiService;
use tokio::sync::Notify;
use tower::{BoxError, Service};

/// The write of a controller at which it crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The n-th write (from 1) is never sent.
    Before(u64),
    /// The n-th write (from 1) takes effect, but the controller never receives the response.
    After(u64),
}

/// The lifetime of one controller: its clients of all clusters share it.
#[derive(Clone, Debug, Default)]
pub struct Lifetime(Arc<State>);

#[derive(Debug, Default)]
struct State {
    counters: Mutex<Counters>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Counters {
    ended: bool,
    writes: u64,
    conflicts: u64,
    crash: Option<CrashPoint>,
}

impl Lifetime {
    /// A lifetime that ends at `crash`.
    pub fn until(crash: Option<CrashPoint>) -> Self {
        let lifetime = Self::default();
        lifetime.0.counters.lock().crash = crash;
        lifetime
    }

    /// Ends the lifetime now.
    pub fn end(&self) {
        self.0.counters.lock().ended = true;
        self.0.ended.notify_one();
    }

    /// Waits until the lifetime has ended.
    pub async fn ended(&self) {
        while !self.0.counters.lock().ended {
            self.0.ended.notified().await;
        }
    }

    /// Writes sent so far.
    pub fn writes(&self) -> u64 {
        self.0.counters.lock().writes
    }

    /// Writes that were rejected because their precondition failed.
    pub fn conflicts(&self) -> u64 {
        self.0.counters.lock().conflicts
    }

    /// Decides whether a request is sent, and whether the controller crashes with it.
    fn admit(&self, is_write: bool) -> Admission {
        let mut counters = self.0.counters.lock();
        if counters.ended {
            return Admission::Rejected;
        }
        if !is_write {
            return Admission::Sent;
        }
        counters.writes += 1;
        let crash = counters.crash;
        let writes = counters.writes;
        drop(counters);
        match crash {
            Some(CrashPoint::Before(at)) if at == writes => {
                self.end();
                Admission::Rejected
            }
            Some(CrashPoint::After(at)) if at == writes => Admission::SentLast,
            _ => Admission::Sent,
        }
    }
}

enum Admission {
    Sent,
    SentLast,
    Rejected,
}

/// The API of a cluster, reachable until the controller crashes.
#[derive(Clone)]
pub(crate) struct CrashableService {
    pub(crate) lifetime: Lifetime,
    pub(crate) service: ApiService,
}

impl Service<Request<Body>> for CrashableService {
    type Response = <ApiService as Service<Request<Body>>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_write = request.method() != Method::GET;
        let is_change = request.method() == Method::PATCH || request.method() == Method::PUT;
        let admission = self.lifetime.admit(is_write);
        let (lifetime, mut service) = (self.lifetime.clone(), self.service.clone());
        Box::pin(async move {
            match admission {
                Admission::Rejected => Err("the controller crashed".into()),
                Admission::Sent => {
                    let answer = service.call(request).await;
                    let mut counters = lifetime.0.counters.lock();
                    if counters.ended {
                        return Err("the controller crashed".into());
                    }
                    let unexpected = [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY];
                    if is_change
                        && answer
                            .as_ref()
                            .is_ok_and(|answer| unexpected.contains(&answer.status()))
                    {
                        counters.conflicts += 1;
                    }
                    drop(counters);
                    answer
                }
                Admission::SentLast => {
                    // The controller never learns the result.
                    let _ = service.call(request).await;
                    lifetime.end();
                    Err("the controller crashed".into())
                }
            }
        })
    }
}

pub(crate) type ResponseBody = sim_cluster::Body;
