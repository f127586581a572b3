//! What clients are answered, over embedded clusters: a host and two members.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod answers;
mod grpc;
mod snapshots;
mod statuses;
mod world;
mod xds;
