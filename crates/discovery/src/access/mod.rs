//! Who may ask for which sets: those who may `get` them on the host.
//!
//! ```text
//! bearer token --> TokenReview (cached) --.
//!                                         +--> User --> SubjectAccessReview for each set (cached) --> Caller::check
//! client certificate ---------------------'
//! ```
//!
//! What was allowed stays allowed for a day while the host is away; who is not known then waits.

mod cache;
mod caller;
mod metrics;
#[cfg(test)]
pub(crate) mod mock_host;
mod recent;
mod refusal;
mod reviews;
mod token;

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use kube::Client;

pub(crate) use self::{caller::Caller, metrics::AccessMetrics, refusal::Refusal};
use self::{caller::Known, reviews::Reviews, token::Token};
use crate::peer::Peer;

/// Who may ask. Cheap to clone. By default everybody may ask for everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access(Option<Arc<Reviews>>);

impl Access {
    /// Who may `get` an EndpointSet on the host may ask for it. Tokens have to be meant for `audience`.
    pub(crate) fn reviewed(host: Client, audience: String, metrics: AccessMetrics) -> Self {
        Self(Some(Arc::new(Reviews::new(host, audience, metrics))))
    }

    /// Who sends a request: the user of its bearer token, or, without one, of the certificate of the connection.
    ///
    /// # Errors
    /// If neither names a user, or the host can't be asked about the token.
    pub(crate) async fn caller(&self, headers: &HeaderMap, peer: &Peer) -> Result<Caller, Refusal> {
        let Some(reviews) = &self.0 else {
            return Ok(Caller::anybody());
        };
        let (user, expires) = if let Some(header) = headers.get(header::AUTHORIZATION) {
            let token = Token::of(header).ok_or(Refusal::NotAuthenticated)?;
            (reviews.user_of(&token).await?, None)
        } else {
            let certificate = peer.certificate.as_deref();
            let certificate = certificate.filter(|found| found.expires > Timestamp::now());
            let certificate = certificate.ok_or(Refusal::NotAuthenticated)?;
            (Arc::clone(&certificate.user), Some(certificate.expires))
        };
        Ok(Caller::of(Known {
            reviews: Arc::clone(reviews),
            user,
            expires,
        }))
    }
}
