//! What the connections of one server have in common.

use std::{sync::Arc, time::Duration};

use super::{limits::Quota, metrics::ServerMetrics, tls::Tls};

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP.
    Http1,
    /// gRPC.
    Http2,
}

impl Protocol {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Http1 => "http",
            Self::Http2 => "grpc",
        }
    }
}

/// What the connections of one server have in common.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) protocol: Protocol,
    pub(crate) quota: Arc<Quota>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// For how long a client may take nothing of what is sent to it.
    pub(crate) patience: Duration,
    pub(crate) metrics: ServerMetrics,
}
