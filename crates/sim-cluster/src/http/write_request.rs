//! A write request: the user, the object it is for, its options and its body.

use std::sync::Arc;

use http::HeaderMap;

use super::negotiate::Format;
use super::query::Query;
use super::view::View;
use crate::api::{Api, Target, WriteOptions};
use crate::authentication::User;
use crate::status::Status;

/// A request to create, update or patch.
pub(crate) struct WriteRequest<'a> {
    pub(crate) api: &'a Api,
    pub(crate) user: &'a Arc<User>,
    pub(crate) view: &'a View,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) subresource: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) query: &'a Query,
    pub(crate) body: &'a [u8],
    pub(crate) format: Format,
}

impl WriteRequest<'_> {
    pub(crate) fn target(&self) -> Target<'_> {
        Target {
            kind: &self.view.kind,
            subresource: self.subresource,
            namespace: self.namespace,
            name: self.name,
        }
    }

    /// The options of the write; errors call them `what`.
    pub(crate) fn options(&self, what: &str) -> Result<WriteOptions, Status> {
        let options = self.query.write_options(what, agent(self.headers))?;
        Ok(WriteOptions {
            user: Some(Arc::clone(self.user)),
            ..options
        })
    }
}

/// The field manager of clients that specify none: the first part of their `User-Agent`.
fn agent(headers: &HeaderMap) -> &str {
    let agent = headers
        .get(http::header::USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let agent = agent
        .unwrap_or("unknown")
        .split('/')
        .next()
        .unwrap_or_default();
    agent.get(..128).unwrap_or(agent)
}
