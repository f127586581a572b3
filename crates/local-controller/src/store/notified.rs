//! Who is notified of which migrations.

use std::sync::Arc;

use fedrs_api::ValidMigrationPolicy;

use super::State;
use crate::{
    key::SetKey,
    migration_object::RequestObject,
    notify::{NotifySettings, Target},
};

impl State {
    /// The policy that selects the ReplicaSet of the pod of a request, if that is known.
    pub(crate) fn native_policy(
        &self,
        request: &RequestObject,
    ) -> Option<Arc<ValidMigrationPolicy>> {
        let native = request.status()?.native.as_ref()?;
        let policy = self.policies.named(request.id().0, &native.policy)?;
        policy.valid.clone().ok()
    }

    /// The MigrationRequests of which somebody is notified, and whose tickets are not closed.
    pub(crate) fn notified(
        &self,
        settings: &NotifySettings,
        default_policy: Option<&ValidMigrationPolicy>,
    ) -> Vec<(Arc<RequestObject>, Target)> {
        if !settings.has_default() && !self.policies.notify_anybody() {
            return Vec::new();
        }
        let target = |request: &RequestObject| {
            let policy = if request.workload().is_some() {
                self.native_policy(request)
            } else {
                let key = SetKey::new(request.id().0, request.replica_set()?);
                let valid = self.sets.get(&key)?.valid.as_ref().ok();
                valid.and_then(|valid| self.policies.of(&valid.set).ok().flatten())
            };
            settings.target(policy.as_deref().or(default_policy))
        };
        let requests = self.requests.all().filter(|request| !request.is_closed());
        let notified = requests.filter_map(|request| Some((Arc::clone(request), target(request)?)));
        notified.collect()
    }
}
