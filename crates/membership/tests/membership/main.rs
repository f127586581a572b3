//! The operations on members, run against embedded clusters over HTTPS.

#![expect(clippy::unwrap_used, reason = "a test that can't continue ends")]

mod clusters;
mod discovery;
mod federation;
mod join;
mod replica_sets;
mod uninstall;
mod unjoin;
