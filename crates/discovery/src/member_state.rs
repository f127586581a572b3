//! How much is known of a member.

use std::sync::Arc;

use fedrs_api::ValidEndpointSet;

use crate::{freshness::Staleness, member::Member, set::is_of_service};

/// The state of what is known of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// Its name.
    pub name: Arc<str>,
    /// What is known of its pods.
    pub pods: Staleness,
    /// What is known of its Services.
    pub services: Staleness,
}

impl MemberState {
    pub(crate) fn of(member: &Member) -> Self {
        Self {
            name: Arc::clone(&member.name),
            pods: member.freshness.staleness(),
            services: member.services.freshness.staleness(),
        }
    }

    /// What is known of all in the member that decides about endpoints of the set.
    pub(crate) fn staleness(&self, set: &ValidEndpointSet) -> Staleness {
        if is_of_service(set) {
            self.pods.and(self.services)
        } else {
            self.pods
        }
    }
}
