//! The nodes of the cluster.

use std::collections::{BTreeMap, HashMap};

use controller_base::listing::Listing;
use reflector::ResourceVersion;
use replica_set_controller::{NodeState, ObservedNode};

#[derive(Debug, Default)]
pub(super) struct Nodes {
    known: HashMap<String, Known>,
    pub(super) listing: Listing,
}

#[derive(Debug)]
struct Known {
    version: String,
    node: Node,
}

/// A node, as a read or the watch has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// It exists.
    Exists(NodeState),
    /// There is none of this name.
    Gone,
}

impl Nodes {
    pub(super) fn get(&self, name: &str) -> Option<Node> {
        self.known.get(name).map(|known| known.node)
    }

    /// Those that exist, in the order of their names.
    pub(super) fn existing(&self) -> BTreeMap<&str, NodeState> {
        let known = self.known.iter();
        let existing = known.filter_map(|(name, known)| match known.node {
            Node::Exists(state) => Some((&**name, state)),
            Node::Gone => None,
        });
        existing.collect()
    }

    /// Whether something changes for its pods.
    pub(super) fn apply(&mut self, node: &ObservedNode) -> bool {
        self.listing.show(node.name());
        let state = Node::Exists(node.state());
        let known = self.known.get_mut(node.name());
        match known {
            Some(known) if !is_news(known, node) => false,
            Some(known) => {
                node.resource_version().clone_into(&mut known.version);
                std::mem::replace(&mut known.node, state) != state
            }
            None => {
                let version = node.resource_version().to_owned();
                let known = Known {
                    version,
                    node: state,
                };
                self.known.insert(node.name().to_owned(), known);
                true
            }
        }
    }

    /// Whether something changes for its pods.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let gone = Node::Gone;
        if let Some(known) = self.known.get_mut(name) {
            return std::mem::replace(&mut known.node, gone) != gone;
        }
        let known = Known {
            version: String::new(),
            node: gone,
        };
        self.known.insert(name.to_owned(), known);
        true
    }

    /// Those that a complete list, as of this version, did not show.
    pub(super) fn unlisted(&mut self, as_of: &str) -> Vec<String> {
        let Some(shown) = self.listing.end() else {
            return Vec::new();
        };
        // What is known to be gone is forgotten: its name may have a new node, and a read shows it again.
        self.known.retain(|_, known| known.node != Node::Gone);
        let unlisted = self.known.iter().filter(|(name, known)| {
            let is_newer =
                ResourceVersion::parse(as_of).is_older_than(ResourceVersion::parse(&known.version));
            !is_newer && !shown.contains(*name)
        });
        unlisted.map(|(name, _)| name.clone()).collect()
    }
}

/// A node that was gone and exists is another one.
fn is_news(known: &Known, node: &ObservedNode) -> bool {
    let is_older = ResourceVersion::parse(&known.version)
        .is_older_than(ResourceVersion::parse(node.resource_version()));
    is_older || known.version.is_empty()
}
