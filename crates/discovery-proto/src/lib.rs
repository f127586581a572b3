//! The gRPC service of `fedrs discovery`: messages, client and server.
//!
//! `cargo xtask proto` generates them from `proto/fedrs/discovery/v1alpha1/discovery.proto`, which describes them.

#[rustfmt::skip]
#[expect(clippy::pedantic, reason = "generated")]
mod generated;

pub use generated::*;

/// The compiled protocol, for the reflection service.
pub const DESCRIPTORS: &[u8] = include_bytes!("descriptors.bin");
