//! The controller's link to a cluster, which can be cut at an exact write: a crash of the controller, as the
//! clusters see it.

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

/// Where in the row of a controller's writes it crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The n-th write (from 1) is never sent.
    Before(u64),
    /// The n-th write (from 1) takes effect, and its answer is never seen.
    After(u64),
}

/// The life of one controller: shared by its links to all clusters.
#[derive(Clone, Debug, Default)]
pub struct Life(Arc<State>);

#[derive(Debug, Default)]
struct State {
    counted: Mutex<Counted>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Counted {
    dead: bool,
    writes: u64,
    conflicts: u64,
    crash: Option<CrashPoint>,
}

impl Life {
    /// A life that ends at `crash`.
    pub fn until(crash: Option<CrashPoint>) -> Self {
        let life = Self::default();
        life.0.counted.lock().crash = crash;
        life
    }

    /// Ends it now.
    pub fn end(&self) {
        self.0.counted.lock().dead = true;
        self.0.ended.notify_one();
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        while !self.0.counted.lock().dead {
            self.0.ended.notified().await;
        }
    }

    /// Writes sent so far.
    pub fn writes(&self) -> u64 {
        self.0.counted.lock().writes
    }

    /// Writes that were refused because their object was no longer as expected.
    pub fn conflicts(&self) -> u64 {
        self.0.counted.lock().conflicts
    }

    /// Whether a request may be sent, and whether it is the last one.
    fn pass(&self, is_write: bool) -> Pass {
        let mut counted = self.0.counted.lock();
        if counted.dead {
            return Pass::Refused;
        }
        if !is_write {
            return Pass::Sent;
        }
        counted.writes += 1;
        let crash = counted.crash;
        let writes = counted.writes;
        drop(counted);
        match crash {
            Some(CrashPoint::Before(at)) if at == writes => {
                self.end();
                Pass::Refused
            }
            Some(CrashPoint::After(at)) if at == writes => Pass::Last,
            _ => Pass::Sent,
        }
    }
}

enum Pass {
    Sent,
    Last,
    Refused,
}

/// A cluster's API over a link that dies with the controller.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) life: Life,
    pub(crate) service: ApiService,
}

impl Service<Request<Body>> for Link {
    type Response = <ApiService as Service<Request<Body>>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<LinkBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_write = request.method() != Method::GET;
        let is_change = request.method() == Method::PATCH || request.method() == Method::PUT;
        let pass = self.life.pass(is_write);
        let (life, mut service) = (self.life.clone(), self.service.clone());
        Box::pin(async move {
            match pass {
                Pass::Refused => Err("the controller is dead".into()),
                Pass::Sent => {
                    let answer = service.call(request).await;
                    let mut counted = life.0.counted.lock();
                    if counted.dead {
                        return Err("the controller is dead".into());
                    }
                    let unexpected = [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY];
                    if is_change
                        && answer
                            .as_ref()
                            .is_ok_and(|it| unexpected.contains(&it.status()))
                    {
                        counted.conflicts += 1;
                    }
                    drop(counted);
                    answer
                }
                Pass::Last => {
                    // What becomes of it, nobody will know.
                    let _ = service.call(request).await;
                    life.end();
                    Err("the controller is dead".into())
                }
            }
        })
    }
}

pub(crate) type LinkBody = sim_cluster::Body;
