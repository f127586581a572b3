//! What clients are answered, over embedded clusters: a host and two members.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod answers;
mod authorization;
mod certificates;
mod grpc;
mod limits;
mod snapshots;
mod statuses;
mod tls;
mod upstreams;
mod world;
mod xds;
