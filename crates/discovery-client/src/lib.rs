//! How clients of `fedrs discovery` reach its servers by gRPC: those in users' programs, and replicas that read another one.
//!
//! ```text
//! server, Credentials (files) --connect--> DiscoveryClient, Credentials::request --> call --fails--> pause --> the next server
//! ```

mod backoff;
mod connection;
mod credentials;
mod server;

pub use backoff::pause;
pub use connection::{ConnectError, chain, connect};
pub use credentials::{Credentials, CredentialsError};
pub use server::Server;
