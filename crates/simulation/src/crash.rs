//! Crashes a controller at an exact write, so that none of its later requests reaches a cluster; or loses the response or the
//! events of an exact write.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use sim_cluster::{ApiService, AuditEvent, Faults, SimCluster};
use tokio::{
    sync::Notify,
    time::{Duration, Instant, sleep},
};
use tower::{BoxError, Service};

use crate::set_kind;

/// How long events are held back: longer than several checks, and shorter than a watch may be silent.
const HELD_BACK: Duration = Duration::from_secs(15);

/// The write of a controller at which it crashes, or whose response or event does not arrive in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The n-th write (from 1) is never sent.
    Before(u64),
    /// The n-th write (from 1) takes effect, but the controller never receives the response.
    After(u64),
    /// The n-th write (from 1) takes effect and its response is lost. The controller continues.
    Unanswered(u64),
    /// Events of the cluster that the n-th write (from 1) changes arrive 15 s late from then on: the view is old.
    Late(u64),
    /// These events never arrive. A list follows after 15 s, so that the controller never sees what was created and deleted
    /// in between.
    Skipped(u64),
}

/// Sees each write of a controller.
pub trait WriteObserver: Send + Sync {
    /// An API server has handled a write, whether or not its response arrives.
    fn handled(&self, cluster: &str, event: &AuditEvent);
    /// After which time the next change of the local set of this name takes effect, whether or not the controller still waits for
    /// the response; none for a usual one.
    fn delay(&self, cluster: &str, name: &str) -> Option<Duration>;
    /// A change that takes effect late is on its way, or has arrived.
    fn in_flight(&self, cluster: &str, request: &DelayedRequest);
    /// Whether a backup was restored since then, for which the API server was started again: it handles no request of before.
    fn was_restored_since(&self, cluster: &str, time: Instant) -> bool;
    /// The controller knows the result: the code of the response, or none if there was no response.
    fn answered(&self, cluster: &str, method: &Method, uri: &Uri, code: Option<StatusCode>);
    /// The controller has got a response to a list.
    fn listed(&self, cluster: &str, uri: &Uri);
}

/// A change of a ReplicaSet that takes effect late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayedRequest {
    /// The name of the ReplicaSet.
    pub set: String,
    /// The replicas that it requests, if any.
    pub replicas: Option<u64>,
    /// When it arrives; not before, and little later.
    pub arrives: Instant,
    /// Whether it has arrived.
    pub has_arrived: bool,
}

/// The lifetime of one controller: its clients of all clusters share it.
#[derive(Clone, Debug, Default)]
pub struct Lifetime(Arc<State>);

#[derive(Default)]
struct State {
    counters: Mutex<Counters>,
    ended: Notify,
    observer: Option<Arc<dyn WriteObserver>>,
}

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counters.lock().fmt(formatter)
    }
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

    /// A lifetime whose writes `observer` sees.
    pub fn observed(observer: Arc<dyn WriteObserver>) -> Self {
        Self(Arc::new(State {
            observer: Some(observer),
            ..State::default()
        }))
    }

    /// Crashes at the `write`th write from now on, before or after it takes effect.
    pub fn crash_at(&self, write: u64, after: bool) {
        let mut counters = self.0.counters.lock();
        let at = counters.writes + write;
        counters.crash = Some(if after {
            CrashPoint::After(at)
        } else {
            CrashPoint::Before(at)
        });
    }

    /// Takes back a crash that has not happened yet.
    pub fn crash_no_more(&self) {
        self.0.counters.lock().crash = None;
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
            Some(CrashPoint::Unanswered(at)) if at == writes => Admission::SentUnanswered,
            Some(CrashPoint::Late(at)) if at == writes => Admission::SentUnseen { skips: false },
            Some(CrashPoint::Skipped(at)) if at == writes => Admission::SentUnseen { skips: true },
            _ => Admission::Sent,
        }
    }

    /// Counts a response. Returns whether the controller still runs to receive it.
    fn answered(&self, is_change: bool, code: Option<StatusCode>) -> bool {
        let mut counters = self.0.counters.lock();
        let unexpected = [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY];
        let is_conflict = is_change && code.is_some_and(|code| unexpected.contains(&code));
        counters.conflicts += u64::from(is_conflict && !counters.ended);
        !counters.ended
    }
}

enum Admission {
    Sent,
    SentUnanswered,
    SentUnseen { skips: bool },
    SentLast,
    Rejected,
}

/// The API of a cluster, reachable until the controller crashes.
#[derive(Clone)]
pub(crate) struct CrashableService {
    cluster: Arc<str>,
    lifetime: Lifetime,
    service: ApiService,
    faults: Faults,
}

impl CrashableService {
    pub(crate) fn new(cluster: &SimCluster, lifetime: &Lifetime) -> Self {
        let name: Arc<str> = cluster.name().into();
        let mut service = cluster.service();
        if let Some(observer) = lifetime.0.observer.clone() {
            let name = Arc::clone(&name);
            service = service.audited(move |event| {
                if event.method != Method::GET {
                    observer.handled(&name, event);
                }
            });
        }
        Self {
            cluster: name,
            lifetime: lifetime.clone(),
            service,
            faults: cluster.faults().clone(),
        }
    }

    /// Holds back the events of the cluster for a while.
    fn hold_events(&self, skips: bool) {
        let faults = self.faults.clone();
        faults.set_watches_stalled(true);
        tokio::spawn(async move {
            sleep(HELD_BACK).await;
            if skips {
                faults.compact();
                faults.cut_watches();
            }
            faults.set_watches_stalled(false);
        });
    }

    /// After which time a request takes effect, if it is to be late.
    fn delay(&self, request: &Request<Body>) -> Option<Duration> {
        let observer = self.lifetime.0.observer.as_ref()?;
        let path = request.uri().path();
        let is_change = request.method() == Method::PATCH && is_local_set(path);
        is_change.then(|| observer.delay(&self.cluster, last_segment(path)))?
    }

    /// Sends a request that arrives after `delay`, also if nobody waits for its response by then.
    async fn send_late(
        self,
        request: Request<Body>,
        delay: Duration,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let mut delayed = DelayedRequest {
            set: last_segment(parts.uri.path()).to_owned(),
            replicas: requested_replicas(&body),
            arrives: Instant::now() + delay,
            has_arrived: false,
        };
        let observer = self.lifetime.0.observer.clone();
        let observer = observer.expect("it says how late the request is");
        let (cluster, sent) = (self.cluster.clone(), Instant::now());
        observer.in_flight(&cluster, &delayed);
        let arrival = tokio::spawn(async move {
            sleep(delay).await;
            let answer = if observer.was_restored_since(&cluster, sent) {
                Err("the API server was started again".into())
            } else {
                let request = Request::from_parts(parts, Body::from(body.to_vec()));
                self.send(request).await
            };
            delayed.has_arrived = true;
            observer.in_flight(&cluster, &delayed);
            answer
        });
        arrival.await?
    }

    /// Sends a request that is not the controller's last one.
    async fn send(mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let answer = self.service.call(request).await;
        let code = answer.as_ref().ok().map(Response::status);
        let is_change = method == Method::PATCH || method == Method::PUT;
        if !self.lifetime.answered(is_change, code) {
            return Err("the controller crashed".into());
        }
        if let Some(observer) = &self.lifetime.0.observer {
            if method != Method::GET {
                observer.answered(&self.cluster, &method, &uri, code);
            } else if code.is_some_and(|code| code.is_success()) && is_list(&uri) {
                observer.listed(&self.cluster, &uri);
            }
        }
        answer
    }
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
        let admission = self.lifetime.admit(is_write);
        let mut called = self.clone();
        Box::pin(async move {
            match admission {
                Admission::Rejected => Err("the controller crashed".into()),
                Admission::Sent => match called.delay(&request) {
                    Some(delay) => called.send_late(request, delay).await,
                    None => called.send(request).await,
                },
                Admission::SentUnanswered => {
                    let _ = called.send(request).await;
                    Err("the response was lost".into())
                }
                Admission::SentUnseen { skips } => {
                    called.hold_events(skips);
                    called.send(request).await
                }
                Admission::SentLast => {
                    // The controller never learns the result.
                    let _ = called.service.call(request).await;
                    called.lifetime.end();
                    Err("the controller crashed".into())
                }
            }
        })
    }
}

/// Whether a read asks for all objects, and not for events, nor for the current version alone.
fn is_list(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    let mut options = query.split('&');
    !options.any(|option| option == "limit=1" || option.starts_with("watch="))
}

/// The name of the object, or of its subresource.
fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether this is the path of an object that may be a local set.
fn is_local_set(path: &str) -> bool {
    let mut resources = set_kind::ALL.into_iter().map(set_kind::local_resource);
    resources.any(|resource| path.contains(&format!("/{resource}/")))
}

/// The replicas that a JSON patch requests.
fn requested_replicas(patch: &[u8]) -> Option<u64> {
    let patch: Vec<Value> = serde_json::from_slice(patch).ok()?;
    let is_change = |operation: &&Value| operation["op"] != "test";
    let mut changes = patch.iter().filter(is_change);
    changes.find_map(|operation| match operation["path"].as_str()? {
        "/spec/replicas" => operation["value"].as_u64(),
        "/spec" => operation["value"]["replicas"].as_u64(),
        _ => None,
    })
}

pub(crate) type ResponseBody = sim_cluster::Body;
