//! Scenarios of a whole cluster on paused time: what is asked for by the API, and what controllers make of it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod cluster;
mod events;
mod namespaces;
mod nodes;
mod ownership;
mod pods;
mod replica_sets;
mod scheduling;
