//! What a user may do: role-based access control over the roles and bindings of the store.
//!
//! ```text
//! user + attributes -> system:masters? -> rules of the bindings that mean the user -> allowed | no opinion -> 403
//! ```
//!
//! Pure: the store is read, nothing else. Roles that gather others by label (`aggregationRule`) have the rules that
//! are written in them.

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
