//! The deletion of a FederatedReplicaSet (F5): its local ReplicaSets are released or deleted before the object disappears.

use std::{sync::Arc, time::Duration};

use controller_base::{
    calls::{self, CallError},
    event::Event,
    finalizer,
};
use fedrs_api::{
    DeletionPolicy, EventReason, FederatedReplicaSetStatus, ObjectKey, WorkloadKey, finalizers,
};
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::time::{Instant, timeout};

use super::{Reconciler, frs_path, is_current};
use crate::{
    check::{self, NamespaceState},
    frs_store::Entry,
    messages,
};

/// The time between two attempts of a deletion while it waits for members.
const RETRY_PERIOD: Duration = Duration::from_secs(5);
/// How long an attempt may go on after the deadline: there is at least one, also by a controller that starts later.
const LAST_ATTEMPT: Duration = Duration::from_secs(30);

impl Reconciler {
    /// Starts a task that releases or deletes the local ReplicaSets of `entry`, unless one runs: a member that hangs must not
    /// keep the workers from repairs.
    pub(super) fn start_deletion(
        self: &Arc<Self>,
        key: &ObjectKey,
        entry: &Arc<Entry>,
        policy: DeletionPolicy,
    ) {
        let next = self.cache.of_key(key, |cached| cached.next_deletion);
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            self.queue.add_check(key.clone(), left);
            return;
        }
        if !self.deletions.insert(key.clone()) {
            return;
        }
        let (this, key, entry) = (Arc::clone(self), key.clone(), Arc::clone(entry));
        let cancel = self.executor.cancel.clone();
        self.executor.tasks.spawn(async move {
            let deletion = this.delete(&key, &entry, policy);
            cancel.run_until_cancelled(deletion).await;
            this.deletions.remove(&key);
        });
    }

    /// Releases or deletes the local ReplicaSets of `entry`, as its deletion policy says, then removes the finalizer.
    async fn delete(&self, key: &ObjectKey, entry: &Entry, policy: DeletionPolicy) {
        if !finalizer::is_present(&entry.metadata, finalizers::MEMBERS) {
            self.forget(key);
            return;
        }
        // The status on the host may be older.
        let (status, (_, pending)) = (self.cache).of_object(key, entry, |cached| {
            (Arc::clone(&cached.status), cached.take_late())
        });
        let workload = key.workload(entry.local);
        let members = self.snapshot_members(&workload, &pending, None);
        let until = deadline(&entry.metadata, self.config.deletion_deadline);
        let left = Duration::try_from(until.duration_since(self.clock.now())).unwrap_or_default();
        let attempt = left.max(LAST_ATTEMPT);
        let deletions = members.iter().map(async |member| {
            let deletion = self.delete_in_member(&workload, &status, policy, member);
            let done = timeout(attempt, deletion).await;
            done.unwrap_or_else(|_| Some(member.name.clone()))
        });
        let open: Vec<String> = join_all(deletions).await.into_iter().flatten().collect();
        if !open.is_empty() {
            // A controller that starts after the deadline has seen none of them.
            let is_open = |member: &&check::Member| open.contains(&member.name);
            let joining = members.iter().filter(is_open);
            let until = joining.fold(until, |until, member| until.max(self.lists_until(member)));
            if self.clock.now() < until {
                self.wait_for(key, entry, &open, until);
                return;
            }
            self.leave_behind(key, entry, &open);
        }
        // Each pod that ends in a member causes an attempt.
        if !self.may_write_host(key) {
            return;
        }
        if let Err(error) = self.remove_finalizer(key, entry).await {
            self.retry_host_write(key, entry, &error, "failed to remove the finalizer");
        }
    }

    /// Releases or deletes the local ReplicaSet in one member. Returns the name of the member while it may have one.
    async fn delete_in_member(
        &self,
        key: &WorkloadKey,
        status: &FederatedReplicaSetStatus,
        policy: DeletionPolicy,
        member: &check::Member,
    ) -> Option<String> {
        if member.namespace == NamespaceState::System {
            return None;
        }
        let open = Some(member.name.clone());
        let mut clusters = status.clusters.iter();
        let cluster = clusters.find(|cluster| cluster.name == member.name);
        let had_set = cluster.is_some_and(|cluster| {
            if member.namespace == NamespaceState::NotTaken {
                // The controller no longer watches the namespace: only replicas matter there.
                return cluster.has_replicas();
            }
            // A request whose response was lost may have been carried out.
            let internal = &cluster.internal;
            let is_requested = internal.requested_replicas.is_some();
            internal.template.is_some() || is_requested || internal.rejection.is_some()
        });
        let Some(set) = member.view.workload.as_ref().filter(|_| is_current(member)) else {
            // An earlier leader may have died after it had created one, and before it recorded that.
            let is_joining = self.clock.now() < self.lists_until(member);
            // A pending write may still create one.
            let may_have_set = member.view.workload.is_some() || had_set || member.write_pending;
            return open.filter(|_| (may_have_set || is_joining) && !is_current(member));
        };
        let access = self.members.access(&member.name)?;
        let done = self
            .executor
            .release_or_delete(key, &access, &set.uid, policy)
            .await;
        match done {
            Ok(()) => None,
            Err(error) => {
                let (frs, cluster) = (key, &member.name);
                tracing::warn!(%frs, %cluster, %error, "failed to release or delete the local ReplicaSet");
                // Each pod that ends in a member would cause an attempt.
                let next = Instant::now() + RETRY_PERIOD;
                self.cache
                    .of_key(&key.of_set(), |cached| cached.next_deletion = Some(next));
                open
            }
        }
    }

    /// Until when the first answers of a member are waited for.
    fn lists_until(&self, member: &check::Member) -> Timestamp {
        check::after(member.joined, self.config.joining_timeout)
    }

    fn wait_for(&self, key: &ObjectKey, entry: &Entry, members: &[String], until: Timestamp) {
        let reported = (self.cache).of_object(key, entry, |cached| {
            std::mem::replace(&mut cached.waited_for, members.to_vec())
        });
        if reported != members {
            let message = messages::deletion_pending(members, until);
            self.record(
                key,
                entry,
                Event::warning(EventReason::DeletionPending, message),
            );
        }
        self.queue
            .add_check(key.clone(), RETRY_PERIOD.min(self.config.recheck_interval));
    }

    fn leave_behind(&self, key: &ObjectKey, entry: &Entry, members: &[String]) {
        let message = messages::left_behind(members, self.config.deletion_deadline);
        self.metrics.left_behind.inc_by(members.len() as u64);
        self.record(key, entry, Event::warning(EventReason::LeftBehind, message));
    }

    async fn remove_finalizer(&self, key: &ObjectKey, entry: &Entry) -> Result<(), CallError> {
        let permit = self.deletion_writes.acquire().await;
        let _permit = permit.expect("the semaphore is never closed");
        let patch = finalizer::removal(&entry.metadata, finalizers::MEMBERS);
        let path = frs_path(key);
        let call = calls::merge_patch(&self.host, &path, &patch);
        match self.host_call(call).await {
            Err(error) if error.code() == Some(404) => {}
            answer => drop(answer?),
        }
        // The last event about an object that the finalizers of others keep.
        let others = finalizer::others(&entry.metadata, finalizers::MEMBERS);
        if !others.is_empty() {
            let message = messages::deletion_held(&others);
            self.record(
                key,
                entry,
                Event::warning(EventReason::DeletionPending, message),
            );
        }
        self.forget(key);
        Ok(())
    }
}

/// Until when the deletion waits for members that don't answer (F5).
fn deadline(metadata: &ObjectMeta, limit: Duration) -> Timestamp {
    let since = metadata.deletion_timestamp.as_ref();
    since.map_or(Timestamp::MIN, |time| check::after(time.0, limit))
}
