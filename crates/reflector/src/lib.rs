#![doc = include_str!("../README.md")]

mod backoff;
mod byte_budget;
mod client_channel;
mod collection;
mod decode;
mod error;
mod format_error;
#[cfg(test)]
mod fuzz_tests;
mod handler;
mod invalid_object;
mod limited_value;
mod list_watch;
mod pages;
pub mod partial;
mod printable;
mod reflector;
mod resource_version;
mod response;
mod settings;
mod transport;
mod uid;
mod watch_lines;

pub use backoff::Backoff;
pub use byte_budget::ByteBudget;
pub use client_channel::{ClientReceiver, ClientSender, client_channel};
pub use collection::Collection;
pub use error::{Error, ErrorKind, Verb};
pub use format_error::{format_error, is_credentials_error};
pub use handler::{EventHandler, Versioned};
pub use invalid_object::{InvalidObject, InvalidObjectCause};
pub use limited_value::limited_value;
pub use pages::list;
pub use printable::{printable, printable_lines};
pub use reflector::Reflector;
pub use resource_version::ResourceVersion;
pub use response::read_response;
pub use settings::{Limits, ReflectorSettings};
pub use uid::Uid;
