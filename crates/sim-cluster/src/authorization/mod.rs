//! Authorization: role-based access control with the roles and bindings of the store.
//!
//! ```text
//! user + attributes -> system:masters? -> rules of the user's bindings -> allowed | no opinion -> 403
//! ```
//!
//! Pure: it only reads the store. Aggregated roles (`aggregationRule`) have the rules that are written in them.

mod attributes;
mod decision;
mod escalation;
mod rules;
mod standard;
#[cfg(test)]
mod tests;

pub(crate) use attributes::{Attributes, Target};
pub(crate) use decision::{authorize, decide, rules_of};
pub(crate) use escalation::check_escalation;
pub(crate) use standard::standard_objects;
