//! Finishing a FederatedReplicaSet that is being deleted (F5).

use std::time::Duration;

use fedrs_api::{FederatedReplicaSet, SetKey};
use futures::future::join_all;
use jiff::Timestamp;

use super::{RETRY, Reconciler, frs_path, is_current, subject, tell};
use crate::{
    calls::{self, CallError},
    check,
    event::Event,
    finalizer,
    host::Entry,
};

/// How soon members that a deletion waits for are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Reconciler {
    /// Releases or deletes the local sets of `entry`, as its deletion policy says, then removes the finalizer.
    pub(super) async fn finish(&self, key: &SetKey, entry: &Entry) {
        if !finalizer::is_present(&entry.object) {
            self.forget(key);
            return;
        }
        let mut members = self.members.snapshot(key);
        let (_, awaited) = self.memories.take_late(key);
        for member in &mut members {
            member.write_pending = awaited.contains(&member.name);
        }
        let open: Vec<String> =
            join_all(members.iter().map(|it| self.finish_member(key, entry, it)))
                .await
                .into_iter()
                .flatten()
                .collect();
        if !open.is_empty() {
            let until = deadline(&entry.object, self.config.deletion_deadline);
            if self.clock.now() < until {
                self.wait_for(key, entry, &open, until);
                return;
            }
            self.leave_behind(key, entry, &open);
        }
        if let Err(error) = self.remove_finalizer(key, entry).await {
            tell(key, &error, "failed to remove the finalizer");
            self.agenda.check(key.clone(), RETRY);
        }
    }

    /// Finishes one member; answers its name while something may be left there.
    async fn finish_member(
        &self,
        key: &SetKey,
        entry: &Entry,
        member: &check::Member,
    ) -> Option<String> {
        let open = Some(member.name.clone());
        let known = entry.object.status.as_ref().is_some_and(|status| {
            status
                .clusters
                .iter()
                .any(|it| it.name == member.name && it.internal.template.is_some())
        });
        let Some(set) = &member.view.workload else {
            // A write that is under way may still make one.
            return if is_current(member) || !(known || member.write_pending) {
                None
            } else {
                open
            };
        };
        if !is_current(member) {
            return open;
        }
        let access = self.members.access(&member.name)?;
        let policy = entry.object.spec.deletion_policy;
        let done = self.executor.finish_set(key, &access, set, policy).await;
        match done {
            Ok(()) => None,
            Err(error) => {
                tracing::warn!(frs = %key, cluster = %member.name, %error, "local set not finished");
                open
            }
        }
    }

    fn wait_for(&self, key: &SetKey, entry: &Entry, members: &[String], until: Timestamp) {
        if self.memories.put_waited_for(key, members) {
            let message = format!(
                "the deletion waits for {}, which may still hold the local set; at {until:.0} it is left behind there",
                members.join(", ")
            );
            self.record(
                key,
                &subject(entry),
                Event::warning("DeletionWaits", message),
            );
        }
        self.agenda
            .check(key.clone(), LOOK_AGAIN.min(self.config.recheck_interval));
    }

    fn leave_behind(&self, key: &SetKey, entry: &Entry, members: &[String]) {
        let message = format!(
            "local sets left behind in {}: no answer within {:?}",
            members.join(", "),
            self.config.deletion_deadline
        );
        tracing::warn!(frs = %key, "{message}");
        self.metrics.left_behind.inc_by(members.len() as u64);
        self.recorder
            .record(&subject(entry), Event::warning("LeftBehind", message));
    }

    async fn remove_finalizer(&self, key: &SetKey, entry: &Entry) -> Result<(), CallError> {
        let patch = finalizer::removal(&entry.object);
        let path = frs_path(key);
        let call = calls::merge_patch(&self.host, &path, &patch);
        match self.host_call(call).await {
            Err(error) if error.code() == Some(404) => {}
            answer => drop(answer?),
        }
        self.forget(key);
        Ok(())
    }
}

/// Until when the deletion waits for members that don't answer (F5).
fn deadline(frs: &FederatedReplicaSet, patience: Duration) -> Timestamp {
    let since = frs.metadata.deletion_timestamp.as_ref();
    since.map_or(Timestamp::MIN, |time| check::after(time.0, patience))
}
