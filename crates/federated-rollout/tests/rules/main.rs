//! The rules by number, as tables.

mod fixtures;
mod loans;
mod local_sets;
mod speed;
mod steps;
