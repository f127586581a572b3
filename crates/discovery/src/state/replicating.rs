//! What the state of a replica without clusters of its own takes from an upstream.

use std::sync::Arc;

use jiff::Timestamp;

use super::State;
use crate::{
    freshness::Staleness,
    member_state::MemberState,
    pod::{Pod, Shared},
};

impl State {
    /// How current what is known of the member is; `None` if there is no such member.
    pub(crate) fn member_state(&self, name: &str) -> Option<MemberState> {
        self.members.get(name).map(MemberState::of)
    }

    /// Pods of a member exist, which `read` makes for this cluster, with what pods have in common. In a list, those that
    /// are known change with [`apply_deferred_pods`](Self::apply_deferred_pods).
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn replicate_pods<E>(
        &mut self,
        member: &str,
        is_list: bool,
        read: impl FnOnce(&Arc<str>, &mut Shared) -> Result<Vec<(Box<str>, Pod)>, E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        self.with_member(member, |member, shared| {
            let replicated = member.replicate(is_list, |cluster| read(cluster, shared));
            replicated.unwrap_or_else(|error| {
                result = Err(error);
                Vec::new()
            })
        });
        result
    }

    /// The list is there as a whole: pods of it that were known change.
    pub(crate) fn apply_deferred_pods(&mut self, member: &str) {
        self.with_member(member, |member, _| member.apply_deferred());
    }

    /// Pods of a member that were not replicated since [`begin_pods`](Self::begin_pods) are gone.
    pub(crate) fn remove_unlisted_pods(&mut self, member: &str) {
        self.with_member(member, |member, _| member.remove_unlisted());
    }

    /// What is known of the pods of a member is as current as the upstream says.
    pub(crate) fn replicate_pods_currency(&mut self, member: &str, of_upstream: Staleness) {
        self.with_member(member, |member, _| {
            member.freshness.replicated(of_upstream);
            None
        });
    }

    /// What is known of the host is as current as the upstream says.
    pub(crate) fn replicate_host_currency(&mut self, of_upstream: Staleness) {
        let kinds: Vec<_> = self.host.keys().copied().collect();
        for kind in kinds {
            self.refresh_host(kind, |freshness| freshness.replicated(of_upstream));
        }
    }

    /// Changes of all that is known may be missing since then.
    pub(crate) fn upstream_lost(&mut self, since: Timestamp) {
        let kinds: Vec<_> = self.host.keys().copied().collect();
        for kind in kinds {
            self.refresh_host(kind, |freshness| freshness.stale(since, true));
        }
        let members: Vec<_> = self.members.keys().cloned().collect();
        for member in members {
            self.stale(&member, since, true);
            self.refresh_services(&member, |services| services.stale(since, true));
        }
    }
}
