//! What the status of a set says, from what was decided. Pure.

mod conditions;
mod progress;
mod status;

pub(crate) use progress::Progress;
pub(crate) use status::{Report, invalid, invalid_message};
