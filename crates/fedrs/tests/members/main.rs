//! The commands about members, run as a user runs them against embedded clusters over HTTPS. The tests of the crate
//! membership cover the operations themselves.

#![expect(clippy::unwrap_used, reason = "a test that can't continue ends")]

mod approve_by_metrics;
#[path = "../../../membership/tests/membership/clusters.rs"]
mod clusters;
mod commands;
mod confirmations;
mod controlled;
mod discovery;
mod federation;
mod lrs;
mod maintenance;
mod migrations;
mod plan;
mod replica_sets;
mod rollout;
