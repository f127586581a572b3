//! Whether the embedded clusters tell the truth: the same things are asked of a real Kubernetes and of an embedded one,
//! and the answers compared.
//!
//! ```text
//! Conversation --play--> real control plane --records--> normal --.
//!      \---------play--> embedded cluster ---records--> normal ---+--compare--> differences, less those on purpose
//! ```

pub mod command;
pub mod compare;
pub mod harness;
pub mod normal;
pub mod pair;
pub mod play;
pub mod purpose;
pub mod talk;
