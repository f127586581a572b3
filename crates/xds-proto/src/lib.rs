//! The part of xDS that `fedrs discovery` speaks: messages and the server.
//!
//! `cargo xtask proto` generates them from `proto/xds`, which has the messages and fields that are used, with the names and numbers
//! of the protocol: fields that are not there are skipped, as protobuf has it. All of Envoy's messages would be a hundred times as
//! much to compile.

#[rustfmt::skip]
#[expect(clippy::pedantic, missing_docs, reason = "generated")]
#[path = "generated/mod.rs"]
mod generated;

pub use generated::{envoy, google};
