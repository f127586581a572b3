//! fedrs
fn main() {}
