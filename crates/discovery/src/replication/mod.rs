//! Replicas without clusters of their own, which read another one: the load on clusters does not grow with their number.
//!
//! ```text
//! upstream:   State --names of what changes--> Feed --what there is now, packed--> gRPC Replicate
//! downstream: gRPC Replicate, of one of several upstreams --> Intake --> State, as of a replica that watches clusters
//! ```
//!
//! The two exchange what sets are resolved from, not what they resolve to: a replica that is fed answers by the same code, keeps
//! the same snapshots, has versions of its own, and can feed others. What it knows is never replaced by what is less current: an
//! upstream may have started again, or lost a member for longer.

mod feed;
mod intake;
#[cfg(test)]
mod intake_tests;
mod metrics;
mod packer;
mod unpacker;
mod upstreams;

pub(crate) use self::feed::Feed;
pub use self::{
    metrics::UpstreamMetrics,
    upstreams::{InvalidUpstream, Upstreams},
};
