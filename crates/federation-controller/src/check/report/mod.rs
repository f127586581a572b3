//! What a check reports: the status with its clusters and conditions (F6, F19), and events about what changed (F38).

mod clusters;
mod conditions;
mod events;
mod invalid;
mod names;
mod status;
mod unready;

pub(super) use self::status::report;
pub use self::{
    invalid::{InvalidFrs, reject},
    status::StatusRefresh,
};
