//! The members of a federation, as a controller on the host reaches them.

use std::collections::BTreeMap;

use kube::Client;

/// How a member is reached.
#[derive(Clone)]
pub enum Access {
    /// By this client, which writes within the term of the leader only.
    Client(Client),
    /// Its client is being made.
    Joining,
    /// It does not answer, or has no client: why, for people.
    Unreachable(String),
}

/// The members of the federation.
pub trait Members: Send + Sync {
    /// All of them, by name; also those that do not answer. Who is not among them has been forgotten.
    fn all(&self) -> BTreeMap<String, Access>;
}
