//! The texts of a check: messages of clusters, conditions and events. Nothing parses them.

mod cluster;
pub(super) mod conditions;
mod events;
mod text;

pub(super) use self::{
    cluster::{ClusterDetail, ClusterMessage},
    conditions::{NotPlaced, Waiting},
    events::{
        action_event, capacity_event, condition_event, duplicate_event, invalid_event, lost_event,
        returned_event, unplaced_event,
    },
};

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
