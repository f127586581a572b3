//! The requests of a list and watch, over kube's client. Behind a trait, so that tests replace it.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use http::{HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::{
    byte_budget::Reservation,
    client_channel::ClientReceiver,
    collection::Collection,
    error::{ErrorKind, Verb},
    response::{collect, connection, error_status},
    settings::Limits,
};

/// The bytes of a watch as they arrive.
pub(crate) struct Chunks {
    pub(crate) stream: BoxStream<'static, Result<Bytes, ErrorKind>>,
    pub(crate) reservation: Reservation,
}

/// The response to a request for a page.
pub(crate) struct PageResponse {
    pub(crate) body: Bytes,
    /// The header `Date`: when the server wrote the response, by its own clock.
    pub(crate) date: Option<HeaderValue>,
}

#[cfg(test)]
impl From<BoxStream<'static, Result<Bytes, ErrorKind>>> for Chunks {
    fn from(stream: BoxStream<'static, Result<Bytes, ErrorKind>>) -> Self {
        let reservation = Reservation::of(&Response::new(()));
        Self {
            stream,
            reservation,
        }
    }
}

/// Lists and watches one collection. Timeouts are the caller's.
pub(crate) trait Transport: Send {
    /// A page: the first one without a continue token.
    fn list(
        &mut self,
        page_size: u32,
        continue_token: Option<&str>,
    ) -> impl Future<Output = Result<PageResponse, ErrorKind>> + Send;

    /// A watch of the events after `resource_version`, which the server ends after `timeout`.
    fn watch(
        &mut self,
        resource_version: &str,
        timeout: Duration,
    ) -> impl Future<Output = Result<Chunks, ErrorKind>> + Send;
}

/// Over kube's client.
pub(crate) struct KubeTransport {
    clients: ClientReceiver,
    collection: Collection,
    limits: Limits,
}

impl KubeTransport {
    pub(crate) fn new(clients: ClientReceiver, collection: Collection, limits: Limits) -> Self {
        Self {
            clients,
            collection,
            limits,
        }
    }

    async fn get(
        &mut self,
        verb: Verb,
        parameters: &[(&str, &str)],
    ) -> Result<Response<Body>, ErrorKind> {
        let request = Request::get(self.collection.uri(parameters))
            .header(header::ACCEPT, self.collection.accept(verb))
            // kube's client reads only the first member of a gzip stream, and watches have one per event.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(ErrorKind::InvalidRequest)?;
        let response = self
            .clients
            .current()
            .send(request)
            .await
            .map_err(connection)?;
        if response.status().is_success() {
            Ok(response)
        } else {
            let status = error_status(response, self.limits.error_body_bytes).await;
            Err(status.into())
        }
    }
}

impl Transport for KubeTransport {
    async fn list(
        &mut self,
        page_size: u32,
        continue_token: Option<&str>,
    ) -> Result<PageResponse, ErrorKind> {
        // No resourceVersion: a consistent read, at least as new as everything known before.
        let limit = page_size.to_string();
        let mut parameters = vec![("limit", &*limit)];
        parameters.extend(continue_token.map(|token| ("continue", token)));
        let response = self.get(Verb::List, &parameters).await?;
        let date = response.headers().get(header::DATE).cloned();
        let body = collect(response, self.limits.page_bytes).await?;
        Ok(PageResponse { body, date })
    }

    async fn watch(
        &mut self,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<Chunks, ErrorKind> {
        let seconds = timeout.as_secs().max(1).to_string();
        let parameters = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", &seconds),
        ];
        let response = self.get(Verb::Watch, &parameters).await?;
        let reservation = Reservation::of(&response);
        let stream = response.into_body().into_data_stream();
        Ok(Chunks {
            stream: stream.map_err(connection).boxed(),
            reservation,
        })
    }
}
