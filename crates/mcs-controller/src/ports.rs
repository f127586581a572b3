//! The ports of Services and of ServiceImports: what clients connect to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A port of a Service as a ServiceImport has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServicePort {
    /// Empty, if it is the only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(default = "tcp")]
    pub(crate) protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) app_protocol: Option<String>,
    pub(crate) port: i32,
}

fn tcp() -> String {
    "TCP".to_owned()
}

impl ServicePort {
    /// Whether one Service can't have both: ports have different names, and different numbers for a protocol.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        self.name == other.name || (&self.protocol, self.port) == (&other.protocol, other.port)
    }
}

impl fmt::Display for ServicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{} ", self.name)?;
        }
        write!(f, "{}/{}", self.port, self.protocol)
    }
}
