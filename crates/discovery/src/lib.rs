//! Discovery: which pods of all members an EndpointSet has, kept up to date, and answers for who asks (D1 to D3).
//!
//! ```text
//! watches: EndpointSets, federated sets of the host --.
//! watches: pods, nodes of each member ----------------+--> State (pure) --changed sets--> Catalog --> readers, HTTP, gRPC, DNS
//! snapshots on disk, at the start, and written -------'
//! another replica instead of the watches (Upstreams) --'
//! ```
//!
//! A member that can't be reached keeps its endpoints, which answers mark with their age: nothing is removed because it is
//! not known. Writes nothing but, if it is asked to, the statuses of EndpointSets, and snapshots on disk.

mod access;
mod answer;
mod balancer;
mod catalog;
mod changes;
mod disk;
mod dns;
mod freshness;
mod grpc;
mod handlers;
mod http;
mod interner;
mod kept;
mod lost;
mod member;
mod member_state;
mod metrics;
mod node;
mod peer;
mod pod;
mod problem;
pub mod rbac;
mod replicas;
mod replication;
mod report;
mod resolve;
mod run;
mod service;
mod services;
mod serving;
mod set;
mod snapshot;
mod source;
mod state;
mod status;
mod status_writer;
mod tables;
mod user;
mod xds;

pub use answer::{Answer, AnswerEndpoint, StaleMember};
pub use catalog::{Catalog, Lookup, Waiting};
pub use discovery_client::Credentials;
pub use disk::{SnapshotBytes, SnapshotDirectory, write_snapshots};
pub use dns::{DnsConfig, DnsServer, InvalidDomain};
pub use freshness::Staleness;
pub use grpc::serve_grpc;
pub use http::{router, serve_http};
pub use kept::LoadedSnapshots;
pub use lost::end_lost;
pub use member_state::MemberState;
pub use metrics::DiscoveryMetrics;
pub use replication::{InvalidUpstream, UpstreamMetrics, Upstreams};
pub use run::Discovery;
pub use service::Service;
pub use serving::{Limits, Tls, TlsError, TlsFiles};
pub use set::SetKey;
pub use snapshot::{Endpoint, EndpointPort, EndpointSnapshot};
pub use status_writer::{COMPONENT, LEASE, write_statuses};
