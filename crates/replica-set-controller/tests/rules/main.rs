//! The rules L3 to L22, C1 to C8 and M1 to M15, as tables of one step each.

#![expect(
    clippy::large_types_passed_by_value,
    reason = "tables make one pod out of another"
)]

mod changes;
mod copies;
mod disruption;
mod evictions;
mod fixtures;
mod in_place;
mod leave;
mod manual;
mod migrations;
mod order;
mod resizes;
mod scaling;
mod shutdown;
mod updates;
