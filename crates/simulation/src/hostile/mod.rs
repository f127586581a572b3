//! A member's API server that is hostile: it answers as an honest one does until it is switched to a [`Trick`].
//!
//! ```text
//! client of the controller --> HostileServer --a trick applies--> its response
//!                                   '--------- none does -------> the honest API server
//! ```
//!
//! It knows HTTP alone: any client is the way to the honest API server.

mod mutations;
mod objects;
mod response;
mod trick;

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tower::{BoxError, Service};

pub use self::trick::Trick;
use self::{
    response::{ResponseBody, whole},
    trick::Call,
};

/// Switches a hostile API server. Clones share it.
#[derive(Clone, Default)]
pub struct Switch(Arc<State>);

#[derive(Default)]
struct State {
    trick: Mutex<Option<Trick>>,
    /// Collections whose next watch is refused, so that they are listed again.
    expired: Mutex<BTreeSet<String>>,
    switched: Notify,
}

impl Switch {
    /// Plays `trick` from now on, or none. Ends all watches: everything is listed again.
    pub fn play(&self, trick: Option<Trick>) {
        *self.0.trick.lock() = trick;
        let watched = ["pods", "replicasets"].map(str::to_owned);
        self.0.expired.lock().extend(watched);
        self.0.switched.notify_waiters();
    }

    /// A client of a hostile server before the one that `honest` reaches.
    #[must_use]
    pub fn client(&self, honest: Client) -> Client {
        let server = HostileServer {
            honest,
            switch: self.clone(),
        };
        Client::new(server, "default")
    }

    /// Whether this is the first watch since the switch.
    fn is_expired(&self, call: &Call) -> bool {
        call.is_watch && self.0.expired.lock().remove(&call.resource)
    }
}

/// A hostile API server.
#[derive(Clone)]
struct HostileServer {
    honest: Client,
    switch: Switch,
}

impl HostileServer {
    async fn response(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let trick = *self.switch.0.trick.lock();
        let call = Call::of(&request);
        if self.switch.is_expired(&call) {
            return Ok(whole(StatusCode::GONE, "{}"));
        }
        let response = if let Some(response) = trick.and_then(|trick| trick.response(&call)) {
            response
        } else {
            let response = self.honest.send(request).await?;
            response.map(|body| body.map_err(Into::into).boxed_unsync())
        };
        if let Some(trick) = trick.filter(|trick| trick.edits(&call)) {
            let (parts, body) = response.into_parts();
            let body = trick.edited(&body.collect().await?.to_bytes());
            return Ok(Response::from_parts(parts, body));
        }
        if !call.is_watch {
            return Ok(response);
        }
        let switched = async move { self.switch.0.switched.notified().await };
        Ok(response.map(|body| {
            let frames = body.into_data_stream().map(move |chunk| {
                chunk.map(|chunk| {
                    Frame::data(match trick {
                        Some(trick) => trick.edited_chunk(chunk),
                        None => chunk,
                    })
                })
            });
            StreamBody::new(frames.take_until(Box::pin(switched))).boxed_unsync()
        }))
    }
}

impl Service<Request<Body>> for HostileServer {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().response(request))
    }
}
