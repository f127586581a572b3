//! Scenarios of a whole cluster on paused time: requests to the API, and their effects by controllers.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod cluster;
mod deployments;
mod disruptions;
mod events;
mod namespaces;
mod nodes;
mod ownership;
mod pods;
mod replica_sets;
mod scheduling;
mod web;
