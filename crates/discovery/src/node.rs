//! A node of a member.

use std::sync::Arc;

use reflector::{
    Versioned,
    partial::{for_each_entry, name, null_as_default},
};
use serde::{Deserialize, Deserializer};

/// The label of a node with its zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// A node of a member, as far as endpoints tell it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) name: Box<str>,
    pub(crate) zone: Option<Arc<str>>,
}

/// The fields of a node that endpoints need.
#[derive(Debug, Deserialize)]
pub(crate) struct NodeObject {
    pub(crate) metadata: Metadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "name")]
    pub(crate) name: Box<str>,
    #[serde(deserialize_with = "name")]
    resource_version: Box<str>,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: Zone,
}

#[derive(Debug, Default)]
struct Zone(Option<Arc<str>>);

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut zone = None;
        for_each_entry(deserializer, &[ZONE], |_, value| {
            zone = Some(value)
                .filter(|zone| !zone.is_empty() && zone.len() <= 63)
                .map(Arc::from);
        })?;
        Ok(Self(zone))
    }
}

impl Versioned for NodeObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl NodeObject {
    pub(crate) fn into_node(self) -> Node {
        Node {
            name: self.metadata.name,
            zone: self.metadata.labels.0,
        }
    }
}
