//! What the status of a set says, from what was decided. Pure.

mod conditions;
mod input;
mod progress;
mod status;

pub(crate) use input::Report;
pub(crate) use progress::Progress;
pub(crate) use status::{invalid, invalid_message};
