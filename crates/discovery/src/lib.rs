//! Discovery: which pods of all members an EndpointSet has, kept up to date, and answers for who asks (D1 to D3).
//!
//! ```text
//! watches: EndpointSets, federated sets of the host --.
//! watches: pods, nodes of each member ----------------+--> State (pure) --changed sets--> Catalog --> readers, HTTP
//! ```
//!
//! A member that can't be reached keeps its endpoints, which answers mark with their age: nothing is removed because it is
//! not known. Does not write anywhere.
//!
//! The CRD is [`fedrs_api::EndpointSet`]; it is not among those that a host installs until a command runs this.

mod answer;
mod catalog;
mod handlers;
mod http;
mod interner;
mod member;
mod node;
mod pod;
mod resolve;
mod run;
mod set;
mod snapshot;
mod source;
mod state;

pub use answer::{Answer, AnswerEndpoint, StaleMember};
pub use catalog::{Catalog, Lookup, MemberState, Waiting};
pub use http::router;
pub use run::Discovery;
pub use set::SetKey;
pub use snapshot::{Endpoint, EndpointPort, EndpointSnapshot};
