//! The rules by number, as tables.

mod fixtures;
mod loans;
mod speed;
mod steps;
