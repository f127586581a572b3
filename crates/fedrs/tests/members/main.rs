//! The commands about members, run as a user runs them against embedded clusters over HTTPS.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod controlled;
mod fleet;
mod join;
mod leave;
mod uninstall;
