//! The nodes of the cluster.

use std::collections::HashMap;

use replica_set_controller::{NodeState, ObservedNode};

use super::{Listing, version};

#[derive(Debug, Default)]
pub(super) struct Nodes {
    known: HashMap<String, Known>,
    pub(super) listing: Listing,
}

#[derive(Debug)]
struct Known {
    version: String,
    /// `None` for a node that does not exist, as a read or the watch has shown.
    state: Option<NodeState>,
}

impl Nodes {
    pub(super) fn get(&self, name: &str) -> Option<Option<NodeState>> {
        self.known.get(name).map(|known| known.state)
    }

    /// Whether something changes for its pods.
    pub(super) fn apply(&mut self, node: &ObservedNode) -> bool {
        self.listing.show(node.name());
        let state = Some(node.state());
        let known = self.known.get_mut(node.name());
        match known {
            Some(known) if !is_news(known, node) => false,
            Some(known) => {
                node.resource_version().clone_into(&mut known.version);
                std::mem::replace(&mut known.state, state) != state
            }
            None => {
                let version = node.resource_version().to_owned();
                let known = Known { version, state };
                self.known.insert(node.name().to_owned(), known);
                true
            }
        }
    }

    /// Whether something changes for its pods.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        match self.known.get_mut(name) {
            Some(known) => known.state.take().is_some(),
            None => {
                let version = String::new();
                let state = None;
                let gone = Known { version, state };
                self.known.insert(name.to_owned(), gone);
                true
            }
        }
    }

    /// Those that a complete list, as of this version, did not show.
    pub(super) fn unlisted(&mut self, as_of: &str) -> Vec<String> {
        let Some(shown) = self.listing.end() else {
            return Vec::new();
        };
        // What is known to be gone is forgotten: its name may have a new node, and a read shows it again.
        self.known.retain(|_, known| known.state.is_some());
        let unlisted = self.known.iter().filter(|(name, known)| {
            let is_newer = version(as_of).is_older_than(version(&known.version));
            !is_newer && !shown.contains(*name)
        });
        unlisted.map(|(name, _)| name.clone()).collect()
    }
}

/// A node that was gone and exists is another one.
fn is_news(known: &Known, node: &ObservedNode) -> bool {
    let is_older = version(&known.version).is_older_than(version(node.resource_version()));
    is_older || known.version.is_empty()
}
