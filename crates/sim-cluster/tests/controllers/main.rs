//! Scenarios of a whole cluster on paused time: what is asked for by the API, and what controllers make of it.

mod cluster;
mod namespaces;
mod nodes;
mod ownership;
mod pods;
mod replica_sets;
mod scheduling;
