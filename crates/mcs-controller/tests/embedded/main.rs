//! The controller over embedded clusters, with the permissions of its manifests.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod crds;
mod faults;
mod permissions;
mod services;
mod world;
