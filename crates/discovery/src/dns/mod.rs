//! DNS: the addresses and ports of sets, as A, AAAA and SRV records.
//!
//! ```text
//! query --> rate of the client --> question (which set, port or endpoint) --> records, from the catalog --> response
//! ```
//!
//! The zone is `endpoints.DOMAIN`. What is not known is SERVFAIL, never an empty answer: resolvers ask another replica, or keep the
//! answer that they have.

mod handler;
mod question;
mod rate;
mod records;
mod response;
mod server;
mod tcp;
mod udp;
mod zone;

pub use server::{DnsConfig, DnsServer};
pub use zone::InvalidDomain;
