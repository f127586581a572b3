//! The client of `fedrs discovery`: resolves EndpointSets in process (D1 to D3).
//!
//! ```text
//! Endpoints (handles, channels) <-- Publisher <-- Held (pure) <--responses-- one of the servers
//!      |                                           ^
//!      '--> NAMESPACE.NAME.json ---at the start----'
//! ```
//!
//! An old answer is better than none: whatever fails, the last endpoints stay, and say how old they are and what the problem
//! is. A program that starts has those of the last time from disk, without waiting for the service. A set is empty only if the
//! service says so.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use endpoint_resolver::Resolver;
//!
//! let resolver = Resolver::builder().server("http://discovery-0:9490").server("http://discovery-1:9490");
//! let resolver = resolver.directory("/var/cache/my-program").build()?;
//! let channel = resolver.endpoints("shop/web")?.channel("http");
//! # Ok(())
//! # }
//! ```

mod balance;
mod calls;
mod endpoint;
mod endpoints;
mod file;
mod held;
mod name;
mod refresh;
mod resolved;
mod resolver;
mod store;

pub use endpoint::{Endpoint, EndpointKey, Port};
pub use endpoints::{Closed, Endpoints};
pub use name::{InvalidSetName, SetName};
pub use resolved::{Problem, Reason, Resolved, StaleMember};
pub use resolver::{BuildError, Builder, Resolver};
