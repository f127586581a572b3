//! How a simulation is printed.

/// Prints text, without the end of its last line.
pub type Print<'a> = &'a (dyn Fn(&str) + Sync);
