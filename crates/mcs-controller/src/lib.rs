//! The controller of the [Multi-Cluster Services API](https://github.com/kubernetes-sigs/mcs-api) (KEP-1645).
//!
//! ```text
//! members --watches--> State --> View of one Service --decide()--> ServiceImport, EndpointSlices, conditions
//!    ^                                                                  |  for each member
//!    '------- writes, each with a precondition <-------- plan() <-------'
//! ```
//!
//! `decide` and `plan` are pure. What is not known is never taken for gone: of a member that has not been listed, all that was
//! imported from it stays. There is no data plane: ServiceImports have no addresses, and nothing answers DNS.

pub mod rbac;

mod conditions;
mod controller;
mod decide;
mod export;
mod handler;
mod import;
mod key;
mod member;
mod meta;
mod metrics;
mod names;
mod plan;
mod ports;
mod resolve;
mod shared;
mod slice;
mod state;
mod table;
mod view;
mod watches;
mod worker;
mod write;

#[cfg(test)]
mod decide_tests;
#[cfg(test)]
mod fake_members;
#[cfg(test)]
mod property_tests;

pub use controller::{COMPONENT, LEASE, McsController, Members};
pub use metrics::McsMetrics;
