//! The revisions of a FederatedDeployment: each template is kept on the host (L2), and one that failed may be rolled back.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use controller_base::{
    event::Event,
    history::{History, Wanted},
};
use fedrs_api::{
    EventReason, FederatedReplicaSetStatus, ObjectKey, SetKind, ValidFrs, ValidTemplate,
    annotations, revision_name,
};
use tokio::time::Instant;

use super::Reconciler;
use crate::{
    check::{Action, DesiredHashes, Outcomes, RolloutRecord},
    frs_store::Entry,
    history,
};

/// The time between two attempts to keep a revision.
const RETRY_PERIOD: Duration = Duration::from_secs(30);

impl Reconciler {
    /// Keeps the template of `entry` as a revision, unless this process has. A rollout does not wait for that: what fails is tried
    /// again with the next check.
    pub(super) async fn keep_revision(&self, key: &ObjectKey, entry: &Entry, frs: &ValidFrs) {
        let Some(rollout) = entry.rollout.as_deref() else {
            return;
        };
        let name = revision_name(&key.name, entry.template);
        let change_cause = entry.annotation(annotations::CHANGE_CAUSE);
        let kept = (name.clone(), change_cause.map(str::to_owned));
        let now = Instant::now();
        let (is_kept, held, status) = (self.cache).of_object(key, entry, |cached| {
            let is_kept = cached.kept_revision.as_ref() == Some(&kept);
            let held = cached.next_revision.filter(|next| now < *next);
            (is_kept, held, Arc::clone(&cached.status))
        });
        if is_kept {
            return;
        }
        if let Some(next) = held {
            // This check may be in place of the one at that time.
            self.queue.add_check(key.clone(), next - now);
            return;
        }
        let wanted = Wanted {
            owner: history::owner(frs),
            data: &history::data(frs),
            name: &name,
            change_cause,
            in_use: &in_use(&status),
            limit: rollout.revision_history_limit,
        };
        match self.history().ensure(&wanted).await {
            Ok(()) => self
                .cache
                .of_key(key, |cached| cached.kept_revision = Some(kept)),
            // Not a failed write of the set: its status must not wait for a missing permission.
            Err(error) => {
                tracing::warn!(frs = %key, %error, "failed to keep revision {name}; trying again");
                let next = Some(now + RETRY_PERIOD);
                (self.cache).of_key(key, |cached| cached.next_revision = next);
                self.queue.add_check(key.clone(), RETRY_PERIOD);
            }
        }
    }

    /// The set as it is rolled out: with the template of the current revision if that of the spec has failed, and is undone.
    pub(super) async fn rolled_out(
        &self,
        key: &ObjectKey,
        entry: &Arc<Entry>,
        recorded: &RolloutRecord,
    ) -> Arc<Entry> {
        let failed = recorded.failed_revision.as_deref();
        let is_undone = failed == Some(&*revision_name(&key.name, entry.template));
        let (Ok(frs), Some(current)) = (&entry.valid, &recorded.current_revision) else {
            return Arc::clone(entry);
        };
        if key.kind != SetKind::FederatedDeployment || !is_undone {
            return Arc::clone(entry);
        }
        match self.template(key, entry, frs, current).await {
            Some(template) => Arc::new(entry.with_template(&template)),
            None => Arc::clone(entry),
        }
    }

    /// Carries out `actions`, which create Deployments with the template of an earlier revision, all with the same one: the step of
    /// their members has not begun. Returns the hashes of what was written, too. Without the template nothing is created.
    pub(super) async fn create_earlier(
        self: &Arc<Self>,
        key: &ObjectKey,
        entry: &Arc<Entry>,
        frs: &ValidFrs,
        actions: &[Action],
    ) -> (Outcomes, DesiredHashes) {
        let name = actions
            .first()
            .and_then(|action| action.change.earlier_revision());
        let Some(name) = name else {
            return (Outcomes::new(), entry.desired);
        };
        let Some(template) = self.template(key, entry, frs, name).await else {
            self.queue.add_check(key.clone(), RETRY_PERIOD);
            return (Outcomes::new(), entry.desired);
        };
        let entry = Arc::new(entry.with_template(&template));
        (self.carry_out(key, &entry, actions).await, entry.desired)
    }

    /// The template of the revision `name`; without it the rollout stays as it is.
    async fn template(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        frs: &ValidFrs,
        name: &str,
    ) -> Option<Arc<ValidTemplate>> {
        let read = self
            .cache
            .of_key(key, |cached| cached.read_template.clone());
        if let Some((_, template)) = read.filter(|(read, _)| read == name) {
            return Some(template);
        }
        match history::template(&self.history(), frs, name).await {
            Ok(template) => {
                let template = Arc::new(template);
                let read = (name.to_owned(), Arc::clone(&template));
                self.cache
                    .of_key(key, |cached| cached.read_template = Some(read));
                Some(template)
            }
            Err(error) => {
                let message = format!("can't use revision {name}: {error}");
                let event = Event::warning(EventReason::RolloutFailed, message);
                self.record(key, entry, event);
                None
            }
        }
    }

    /// Why a pod of the revision is not available, once for each revision that fails.
    pub(super) async fn failing_pod(
        &self,
        key: &ObjectKey,
        entry: &Entry,
        status: &FederatedReplicaSetStatus,
    ) -> Option<String> {
        let rollout = status.rollout.as_deref();
        let rollout = rollout.filter(|rollout| rollout.record.failed)?;
        let revision = &rollout.record.revision;
        let is_known = rollout.failing_pod.is_some()
            || (self.cache).of_object(key, entry, |cached| {
                cached.asked_revision.replace(revision.clone()).as_ref() == Some(revision)
            });
        if is_known {
            return None;
        }
        let loans = rollout.record.loans.iter();
        let rolling = loans.filter(|(_, loan)| loan.revision == *revision);
        let members = rolling.filter_map(|(name, _)| self.members.access(name));
        let members: Vec<_> = members.collect();
        (self.executor)
            .failing_pod(key, &members, entry.template)
            .await
    }

    fn history(&self) -> History<'_> {
        History {
            client: &self.host,
            call_timeout: self.config.call_timeout,
        }
    }
}

/// The revisions that are or may be in members.
fn in_use(status: &FederatedReplicaSetStatus) -> BTreeSet<String> {
    let of_members = status.clusters.iter().map(|cluster| &cluster.revision);
    let of_set = [&status.current_revision, &status.update_revision];
    of_members.chain(of_set).flatten().cloned().collect()
}
