//! A webhook in the process, which takes notifications or not.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use local_controller::Webhooks;
use parking_lot::Mutex;
use serde_json::Value;
use tower::service_fn;

use crate::world::text;

/// What becomes of a notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is acknowledged.
    #[default]
    Taken,
    /// It is answered by this status, and forgotten.
    Refused(u16),
    /// It is kept, and the answer does not arrive.
    Lost,
}

/// A webhook. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestWebhook(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    answer: Answer,
    kept: Vec<Value>,
    attempts: usize,
}

impl TestWebhook {
    pub(crate) fn webhooks(&self) -> Webhooks {
        let webhook = self.clone();
        Webhooks::new(service_fn(move |request: Request<Full<Bytes>>| {
            let webhook = webhook.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let event: Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(head.headers["idempotency-key"], *text(&event["id"]));
                let content_type = &head.headers["content-type"];
                assert_eq!(content_type, "application/cloudevents+json; charset=utf-8");
                let status = match webhook.take(event) {
                    Answer::Taken => 202,
                    Answer::Refused(status) => status,
                    Answer::Lost => std::future::pending().await,
                };
                let response = Response::builder().status(status).body(()).unwrap();
                Ok::<_, Infallible>(response)
            }
        }))
    }

    fn take(&self, event: Value) -> Answer {
        let mut inner = self.0.lock();
        inner.attempts += 1;
        if !matches!(inner.answer, Answer::Refused(_)) {
            inner.kept.push(event);
        }
        inner.answer
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.0.lock().answer = answer;
    }

    pub(crate) fn attempts(&self) -> usize {
        self.0.lock().attempts
    }

    /// What it has kept, in the order of arrival.
    pub(crate) fn kept(&self) -> Vec<Value> {
        self.0.lock().kept.clone()
    }

    /// The types of what it has kept, without their common part.
    pub(crate) fn types(&self) -> Vec<String> {
        let kept = self.kept().into_iter();
        let of = |event: Value| text(&event["type"]).replace("dev.fedrs.migration.", "");
        kept.map(of).collect()
    }
}
