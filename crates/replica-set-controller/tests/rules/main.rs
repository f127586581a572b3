//! The rules L3 to L22 and C1 to C8, as tables of one step each.

mod changes;
mod disruption;
mod evictions;
mod fixtures;
mod in_place;
mod leave;
mod order;
mod resizes;
mod scaling;
mod updates;
