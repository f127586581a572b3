//! Connections of clients by HTTP and gRPC.
//!
//! ```text
//! listener --> limits --> TLS --> Peer --> HTTP/1 or HTTP/2 --> router
//!                |                           '-- a client that takes nothing is cut off
//!                '--> refusals
//! ```

mod connection;
mod limits;
mod listener;
mod metrics;
mod progress;
mod server;
mod tls;

pub use limits::Limits;
pub use tls::{Tls, TlsError, TlsFiles};

pub(crate) use limits::{Quota, Share, client};
pub(crate) use listener::accept;
pub(crate) use metrics::ServerMetrics;
pub(crate) use server::{Connections, Protocol};
