//! A member's API server that is hostile: it responds as an honest one does until a test switches it to an [`Attack`].
//!
//! ```text
//! client of the controller --> HostileServer --the attack concerns the request--> its own response
//!                                   '--------- otherwise --------------------> the honest API server
//! ```
//!
//! It knows only HTTP, and reaches the honest API server by any client.

mod attack;
mod mutations;
mod objects;
mod response;

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

pub use self::attack::Attack;
use self::{
    attack::Call,
    response::{ResponseBody, whole},
};

/// Switches a hostile API server. Clones share it.
#[derive(Clone, Default)]
pub struct Switch(Arc<State>);

#[derive(Default)]
struct State {
    attack: Mutex<Option<Attack>>,
    /// Collections that were watched since the last switch.
    watched: Mutex<BTreeSet<String>>,
    switched: Notify,
}

impl Switch {
    /// Switches to `attack`, or to no attack. Ends all watches, so that the client lists everything again.
    pub fn set_attack(&self, attack: Option<Attack>) {
        *self.0.attack.lock() = attack;
        self.0.watched.lock().clear();
        self.0.switched.notify_waiters();
    }

    /// A client of a hostile server in front of the one that `honest` reaches.
    #[must_use]
    pub fn client(&self, honest: Client) -> Client {
        let server = HostileServer {
            honest,
            switch: self.clone(),
        };
        Client::new(server, "default")
    }

    /// Whether this is the first watch of its collection since the switch: it is refused, so that the client lists again.
    fn is_expired(&self, call: &Call) -> bool {
        call.is_watch && self.0.watched.lock().insert(call.path.clone())
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
        let attack = *self.switch.0.attack.lock();
        let call = Call::of(&request);
        if self.switch.is_expired(&call) {
            return Ok(whole(StatusCode::GONE, "{}"));
        }
        let response = if let Some(response) = attack.and_then(|attack| attack.response(&call)) {
            response
        } else {
            let response = self.honest.send(request).await?;
            response.map(|body| body.map_err(Into::into).boxed_unsync())
        };
        if let Some(attack) = attack.filter(|attack| attack.edits(&call)) {
            let (parts, body) = response.into_parts();
            let body = attack.edited(&body.collect().await?.to_bytes());
            return Ok(Response::from_parts(parts, body));
        }
        if !call.is_watch {
            return Ok(response);
        }
        let switched = async move { self.switch.0.switched.notified().await };
        Ok(response.map(|body| {
            let frames = body.into_data_stream().map(move |chunk| {
                chunk.map(|chunk| {
                    Frame::data(match attack {
                        Some(attack) => attack.edited_chunk(chunk),
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
