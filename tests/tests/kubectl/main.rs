//! kubectl.
fn main() {}
