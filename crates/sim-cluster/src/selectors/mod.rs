//! Selectors: which objects does a list, a watch or a controller mean?
//!
//! ```text
//! query string -> LabelSelector, FieldSelector -> matches(object)
//! {matchLabels, matchExpressions} -> object::matches(labels)
//! ```

mod field;
mod label;
pub(crate) mod object;
mod requirement;
mod selector;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;
pub(crate) use selector::Selector;
