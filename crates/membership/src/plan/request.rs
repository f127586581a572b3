//! What is planned.

use federation_controller::{config::Config, forecast::WhatIf};

use crate::{SetRef, ValidSet};

/// Which sets are planned, and what changes about them and the members.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// Which sets.
    pub sets: Sets,
    /// Other replicas of the set than `spec.replicas`.
    pub replicas: Option<u32>,
    /// What changes about the members.
    pub what_if: WhatIf,
    /// The controller's configuration.
    pub settings: Config,
}

impl PlanRequest {
    /// Whether nothing is known of the controller's configuration.
    #[must_use]
    pub fn has_default_settings(&self) -> bool {
        self.settings == Config::default()
    }
}

/// Which sets are planned.
#[derive(Clone, Debug)]
pub enum Sets {
    /// One of the host.
    One(SetRef),
    /// All of a namespace.
    Namespace(String),
    /// All.
    All,
    /// A new one, or a changed one of the host.
    Manifest(Box<ValidSet>),
}
