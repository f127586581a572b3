//! The fence between a controller and the clusters: it blocks writes when the term is over.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

/// Where no outage is recorded, a member may have been without power and have returned, with pods that still say that they are ready.
/// By then its own controllers have noticed which nodes do not run: before, no running replica is removed anywhere.
pub(super) const NODES_NOTICED: Duration = Duration::from_secs(120);

/// Why a write failed after the end of its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermOver {
    /// The write was not sent.
    #[error("not sent: this process no longer leads")]
    NotSent,
    /// The term ended before the response arrived: the write may or may not have taken effect.
    #[error("aborted: this process no longer leads")]
    Aborted,
}

/// Lets writes pass while a term lasts. Cheap to clone; clones close together.
#[derive(Clone, Debug)]
pub struct Fence {
    /// `None` if the term never ends.
    term: Option<Arc<State>>,
    /// Without a term: whether nobody may have led before.
    may_follow_outage: bool,
}

#[derive(Debug)]
struct State {
    until: Mutex<Instant>,
    keeps_running_until: Option<Instant>,
    closed: CancellationToken,
    fenced_writes: Counter,
}

impl Fence {
    /// A fence that never closes, for a controller without leader election of a new federation.
    #[must_use]
    pub fn open() -> Self {
        Self {
            term: None,
            may_follow_outage: false,
        }
    }

    /// A fence that never closes, for a controller without leader election: it can't know for how long none has run, so it begins
    /// like a leader after a time without one.
    #[must_use]
    pub fn unelected() -> Self {
        Self {
            term: None,
            may_follow_outage: true,
        }
    }

    /// A fence that closes by itself at `until`; `fenced_writes` counts the writes it holds back. Of a term that was resumed:
    /// [`keeps_running_until`](Self::keeps_running_until).
    pub(super) fn until(
        until: Instant,
        keeps_running_until: Option<Instant>,
        fenced_writes: Counter,
    ) -> Self {
        Self {
            term: Some(Arc::new(State {
                until: Mutex::new(until),
                keeps_running_until,
                closed: CancellationToken::new(),
                fenced_writes,
            })),
            may_follow_outage: false,
        }
    }

    /// Until when no replica that runs may be removed, if the host answers now: a write of the process that held the Lease
    /// before may still be carried out, or a member may have had an outage that is not recorded. `None` if neither can be.
    pub fn keeps_running_until(&self) -> Option<Instant> {
        match &self.term {
            Some(term) => term.keeps_running_until,
            None => (self.may_follow_outage).then(|| Instant::now() + NODES_NOTICED),
        }
    }

    /// Keeps the fence open until `until`. Returns whether it was still open: a closed fence stays closed.
    pub(super) fn extend(&self, until: Instant) -> bool {
        let Some(state) = &self.term else { return true };
        let mut open_until = state.until.lock();
        let is_open = !state.closed.is_cancelled() && Instant::now() < *open_until;
        if is_open {
            *open_until = until.max(*open_until);
        }
        is_open
    }

    /// Closes it permanently.
    pub(super) fn close(&self) {
        if let Some(state) = &self.term {
            state.closed.cancel();
        }
    }

    /// A client that reads as `client` does, and writes only while the fence is open: the fence is checked just before a request
    /// is sent, and a request that is in progress when the fence closes is aborted. Errors are [`TermOver`].
    #[must_use]
    pub fn guard(&self, client: &Client) -> Client {
        let Some(state) = &self.term else {
            return client.clone();
        };
        let guarded = Guarded {
            client: client.clone(),
            state: Arc::clone(state),
        };
        Client::new(guarded, client.default_namespace()).with_valid_until(*client.valid_until())
    }
}

impl State {
    fn is_open(&self) -> bool {
        !self.closed.is_cancelled() && Instant::now() < *self.until.lock()
    }

    /// Waits until it is closed, or its time is over.
    async fn over(&self) {
        while self.is_open() {
            let until = *self.until.lock();
            self.closed.run_until_cancelled(sleep_until(until)).await;
        }
    }
}

/// A client behind a fence.
struct Guarded {
    client: Client,
    state: Arc<State>,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, state) = (self.client.clone(), Arc::clone(&self.state));
        Box::pin(async move {
            // Only GET is known to be harmless; the controller uses neither HEAD nor OPTIONS.
            if request.method() == Method::GET {
                return Ok(client.send(request).await?);
            }
            if !state.is_open() {
                state.fenced_writes.inc();
                return Err(TermOver::NotSent.into());
            }
            tokio::select! {
                biased;
                () = state.over() => {
                    state.fenced_writes.inc();
                    Err(TermOver::Aborted.into())
                }
                answer = client.send(request) => Ok(answer?),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use tower::service_fn;

    use super::*;
    use crate::{calls, error_text::format_api_error};

    /// A client of a cluster that answers everything after `latency`, and the number of requests that came there.
    fn cluster(latency: Duration) -> (Client, Counter) {
        let came = Counter::default();
        let counter = came.clone();
        let service = service_fn(move |_: Request<Body>| {
            let counter = counter.clone();
            async move {
                counter.inc();
                tokio::time::sleep(latency).await;
                Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
            }
        });
        (Client::new(service, "default"), came)
    }

    fn seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    async fn write(client: &Client) -> Result<(), String> {
        let answer = calls::post(client, "/api/v1/namespaces", &serde_json::json!({})).await;
        answer
            .map(|serde::de::IgnoredAny| ())
            .map_err(|error| format_api_error(&error))
    }

    #[tokio::test(start_paused = true)]
    async fn writes_pass_until_the_term_is_over_and_reads_always() {
        let (client, came) = cluster(Duration::ZERO);
        let fenced_writes = Counter::default();
        let fence = Fence::until(seconds(10), None, fenced_writes.clone());
        let guarded = fence.guard(&client);
        write(&guarded).await.unwrap();
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(fence.extend(seconds(10)), "renewed in time");
        tokio::time::advance(Duration::from_secs(9)).await;
        write(&guarded).await.unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let error = write(&guarded).await.unwrap_err();
        assert!(error.contains("no longer leads"), "{error}");
        let serde::de::IgnoredAny = calls::get(&guarded, "/version").await.unwrap();
        assert_eq!((came.get(), fenced_writes.get()), (3, 1));

        assert!(!fence.extend(seconds(10)), "what has closed stays closed");
        write(&guarded).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_was_sent_earlier_does_not_shorten_a_term() {
        let fence = Fence::until(seconds(10), None, Counter::default());
        assert!(fence.extend(seconds(5)));
        tokio::time::advance(Duration::from_secs(8)).await;
        assert!(fence.extend(seconds(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_in_progress_is_aborted_when_the_term_ends() {
        let (client, came) = cluster(Duration::from_secs(60));
        for closes_itself in [true, false] {
            let fence = Fence::until(seconds(10), None, Counter::default());
            let guarded = fence.guard(&client);
            let started = Instant::now();
            let closing = async {
                tokio::time::sleep(Duration::from_secs(4)).await;
                if !closes_itself {
                    fence.close();
                }
            };
            let (error, ()) = tokio::join!(write(&guarded), closing);
            assert!(error.unwrap_err().contains("aborted"));
            let expected = if closes_itself { 10 } else { 4 };
            assert_eq!(started.elapsed().as_secs(), expected);
        }
        assert_eq!(came.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_fence_never_closes() {
        let (client, came) = cluster(Duration::ZERO);
        let fence = Fence::open();
        fence.close();
        assert!(fence.extend(Instant::now()));
        write(&fence.guard(&client)).await.unwrap();
        assert_eq!(came.get(), 1);
    }
}
