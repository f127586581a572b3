//! The requests of a list and watch, over kube's client. Behind a trait, so that tests swap it.

use std::{future::Future, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use http::{Request, Response, header};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::{
    clients::Clients,
    decode::Status,
    error::{Doing, Error},
};

/// 500 pods of 100 KB each: no honest page comes near.
const MAX_PAGE_BYTES: usize = 64 << 20;
/// A `Status` has a message and some causes.
const MAX_STATUS_BYTES: usize = 64 << 10;

/// What is listed and watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Path of the collection, such as `/apis/apps/v1/replicasets`.
    pub path: String,
    /// Label selector, or all objects.
    pub label_selector: Option<String>,
    /// Field selector, or all objects.
    pub field_selector: Option<String>,
}

impl Resource {
    /// All objects of the collection at `path`.
    pub fn all(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            label_selector: None,
            field_selector: None,
        }
    }

    /// The objects at `path` that `label_selector` takes.
    pub fn labelled(path: impl Into<String>, label_selector: impl Into<String>) -> Self {
        Self {
            label_selector: Some(label_selector.into()),
            ..Self::all(path)
        }
    }

    /// The objects at `path` whose fields `field_selector` takes.
    pub fn with_fields(path: impl Into<String>, field_selector: impl Into<String>) -> Self {
        Self {
            field_selector: Some(field_selector.into()),
            ..Self::all(path)
        }
    }

    fn uri(&self, parameters: &[(&str, &str)]) -> String {
        let mut uri = self.path.clone();
        let selectors = [
            ("labelSelector", &self.label_selector),
            ("fieldSelector", &self.field_selector),
        ];
        let selectors = selectors
            .iter()
            .filter_map(|(name, selector)| Some((*name, selector.as_deref()?)));
        for (position, (name, value)) in parameters.iter().copied().chain(selectors).enumerate() {
            uri.push(if position == 0 { '?' } else { '&' });
            uri.push_str(name);
            uri.push('=');
            encode(value, &mut uri);
        }
        uri
    }
}

/// Percent-encodes all but what is unreserved in a URI (RFC 3986, 2.3).
fn encode(value: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let [high, low] =
                [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
            out.extend(['%', high, low]);
        }
    }
}

/// The bytes of a watch as they come.
pub(crate) type Chunks = BoxStream<'static, Result<Bytes, Error>>;

/// Lists and watches one resource. Deadlines are the caller's.
pub(crate) trait Transport: Send {
    /// The body of a page; of the first one without a token.
    fn list(
        &mut self,
        limit: u32,
        token: Option<&str>,
    ) -> impl Future<Output = Result<Bytes, Error>> + Send;

    /// A watch of what happens after `version`, to be ended by the server after `timeout`.
    fn watch(
        &mut self,
        version: &str,
        timeout: Duration,
    ) -> impl Future<Output = Result<Chunks, Error>> + Send;
}

/// Over kube's client.
pub(crate) struct KubeTransport {
    clients: Clients,
    resource: Resource,
}

impl KubeTransport {
    pub(crate) fn new(clients: Clients, resource: Resource) -> Self {
        Self { clients, resource }
    }

    async fn get(&mut self, doing: Doing, parameters: &[(&str, &str)]) -> Result<Body, Error> {
        let request = Request::get(self.resource.uri(parameters))
            .header(header::ACCEPT, "application/json")
            // kube's client reads only the first member of a gzip stream, and watches have one per event.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|source| Error::Request { doing, source })?;
        let response = self
            .clients
            .current()
            .send(request)
            .await
            .map_err(|source| connection(doing, source))?;
        if response.status().is_success() {
            Ok(response.into_body())
        } else {
            Err(refused(doing, response).await)
        }
    }
}

impl Transport for KubeTransport {
    async fn list(&mut self, limit: u32, token: Option<&str>) -> Result<Bytes, Error> {
        // No resourceVersion: a consistent read, at least as new as all that was known before.
        let limit = limit.to_string();
        let mut parameters = vec![("limit", &*limit)];
        parameters.extend(token.map(|token| ("continue", token)));
        let body = self.get(Doing::List, &parameters).await?;
        collect(Doing::List, body, MAX_PAGE_BYTES).await
    }

    async fn watch(&mut self, version: &str, timeout: Duration) -> Result<Chunks, Error> {
        let seconds = timeout.as_secs().max(1).to_string();
        let parameters = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", &seconds),
        ];
        let body = self.get(Doing::Watch, &parameters).await?;
        Ok(body
            .into_data_stream()
            .map_err(|source| connection(Doing::Watch, source))
            .boxed())
    }
}

fn connection(doing: Doing, source: kube::Error) -> Error {
    Error::Connection {
        doing,
        source: Box::new(source),
    }
}

async fn collect(doing: Doing, body: Body, limit: usize) -> Result<Bytes, Error> {
    let mut chunks = body.into_data_stream();
    let mut bytes = BytesMut::new();
    while let Some(chunk) = chunks
        .try_next()
        .await
        .map_err(|source| connection(doing, source))?
    {
        if bytes.len() + chunk.len() > limit {
            return Err(Error::TooLarge { limit });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// What an answer that is no success says, by its body if that is a `Status`.
async fn refused(doing: Doing, response: Response<Body>) -> Error {
    let code = response.status().as_u16();
    let canonical = response.status().canonical_reason().unwrap_or_default();
    let body = collect(doing, response.into_body(), MAX_STATUS_BYTES)
        .await
        .unwrap_or_default();
    let Status {
        reason, message, ..
    } = serde_json::from_slice(&body).unwrap_or_default();
    let reason = if reason.is_empty() {
        canonical.to_owned()
    } else {
        reason
    };
    Error::Refused {
        doing,
        code,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_encoded() {
        let resource = Resource::labelled(
            "/api/v1/pods",
            "fedrs.dev/federation=a,fedrs.dev/replica-set",
        );
        assert_eq!(
            resource.uri(&[("limit", "500"), ("continue", "a+b=")]),
            "/api/v1/pods?limit=500&continue=a%2Bb%3D&labelSelector=fedrs.dev%2Ffederation%3Da%2Cfedrs.dev%2Freplica-set"
        );
        assert_eq!(Resource::all("/api/v1/pods").uri(&[]), "/api/v1/pods");
        assert_eq!(
            Resource::with_fields("/api/v1/secrets", "type=fedrs.dev/kubeconfig").uri(&[]),
            "/api/v1/secrets?fieldSelector=type%3Dfedrs.dev%2Fkubeconfig"
        );
    }
}
