//! What the servers answer from, and within which limits.

use std::{sync::Arc, time::Duration};

use kube::Client;
use tonic::{Request, Status};

use crate::{
    access::{Access, Caller, Refusal},
    catalog::Catalog,
    metrics::DiscoveryMetrics,
    peer::Peer,
    serving::{Connections, Limits, Protocol, Quota, Share, Tls},
};

/// For how long a client may take nothing of what is sent to it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The service, which its servers share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) metrics: DiscoveryMetrics,
    pub(crate) access: Access,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    patience: Duration,
    /// Calls that follow sets.
    streams: Arc<Quota>,
}

impl Service {
    /// The service that answers from `catalog` to everybody, in plain text, within the usual limits.
    #[must_use]
    pub fn new(catalog: Arc<Catalog>, metrics: DiscoveryMetrics) -> Self {
        let limits = Limits::default();
        Self {
            catalog,
            metrics,
            access: Access::default(),
            tls: None,
            streams: Quota::streams(&limits),
            limits,
            patience: PATIENCE,
        }
    }

    /// With answers only for clients that may `get` the EndpointSet on the host. `host` has to be allowed to create
    /// `TokenReview` and `SubjectAccessReview`; tokens of clients have to be meant for `audience`.
    #[must_use]
    pub fn with_reviews(mut self, host: Client, audience: String) -> Self {
        self.access = Access::reviewed(host, audience, self.metrics.access.clone());
        self
    }

    /// With TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<Arc<Tls>>) -> Self {
        self.tls = tls;
        self
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.streams = Quota::streams(&limits);
        self.limits = limits;
        self
    }

    /// With another time, than 60 seconds, after which a client is cut off that takes nothing of what is sent to it.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Who sends a request.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, or `UNAVAILABLE` while the host can't be asked.
    pub(crate) async fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Status> {
        let headers = request.metadata().as_ref();
        let caller = self.access.caller(headers, &Peer::of(request)).await;
        caller.map_err(|refusal| match refusal {
            Refusal::NotAuthenticated => Status::unauthenticated(refusal.to_string()),
            Refusal::HostAway(_) => Status::unavailable(refusal.to_string()),
        })
    }

    /// What the connections of a server have in common.
    pub(crate) fn connections(&self, protocol: Protocol) -> Connections {
        Connections {
            protocol,
            quota: Quota::connections(&self.limits),
            tls: self.tls.clone(),
            patience: self.patience,
            metrics: self.metrics.servers.clone(),
        }
    }

    /// Counts a call that follows sets, until the result is dropped.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if a limit is reached.
    pub(crate) fn stream(&self, peer: &Peer) -> Result<Share, Status> {
        self.streams.take(peer.address).map_err(|exceeded| {
            self.metrics.servers.count_refused(exceeded);
            Status::resource_exhausted(exceeded.to_string())
        })
    }
}
