//! The edge of the controller: what it reads from objects and what it sends.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod fixtures;
mod observed_node;
mod observed_pod;
mod pod_template;
mod requests;
