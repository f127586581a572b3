//! Changes the replicas of a local workload: alone, or with all that may be written of it.

use controller_base::calls::CallError;
use planted_bugs::{PlantedBug, is_planted};

use super::{LocalWorkload, json_patch::JsonPatch, live_set::Over};
use crate::{
    check::{Outcome, Precondition},
    manifest::Source,
    messages,
};

/// A workload is read so many times for one overwrite: while it scales, the member's controllers write its status several times
/// a second, and each of these writes makes what was read an old version.
const OVERWRITE_ATTEMPTS: u32 = 4;

impl LocalWorkload<'_> {
    /// Sets the replicas of the workload that was seen, unless its spec or its owner has changed since.
    pub(super) async fn scale(
        self,
        seen: &Precondition,
        from: u32,
        to: u32,
    ) -> Result<Outcome, CallError> {
        let mut patch = JsonPatch::of_seen(seen, &self.executor.federation, Some(from));
        patch.replace("/spec/replicas", to.into());
        let write = Box::pin(self.patch("scale", &patch));
        self.change_replicas(seen, to, write).await
    }

    /// Writes the whole workload, if its spec is still the one that was seen (F29). Of a Deployment, all but the template and
    /// the strategy.
    pub(super) async fn overwrite(
        self,
        source: &Source<'_>,
        seen: &Precondition,
        replicas: u32,
        over: Over,
    ) -> Result<Outcome, CallError> {
        let mut refused = None;
        for _ in 0..OVERWRITE_ATTEMPTS {
            let live = self.get().await?;
            if !live.is_seen(seen) || self.foreign_owner(&live).is_some() {
                break;
            }
            // Nobody has written it since, so its version was not why the member refused the write: it would refuse it again.
            if refused.as_ref() == Some(&live.metadata.resource_version) {
                return Ok(Outcome::Failed(messages::rejected_unchanged(self.kind())));
            }
            let write = Box::pin(self.write_over(source, &live, replicas, over));
            let done = self.change_replicas(seen, replicas, write).await;
            if !matches!(done, Ok(Outcome::Conflict(_))) {
                return done;
            }
            refused = Some(live.metadata.resource_version);
        }
        Ok(self.changed_meanwhile())
    }

    /// Sends a `write` that sets the replicas to `to`: from now on the store counts with them, because the write may be carried
    /// out, unless the response shows that it was not. If the response shows other replicas, the member changes what is written,
    /// or does not tell the truth: the next attempt would end in the same way.
    async fn change_replicas(
        self,
        seen: &Precondition,
        to: u32,
        write: impl Future<Output = Result<Outcome, CallError>>,
    ) -> Result<Outcome, CallError> {
        if is_planted(PlantedBug::LostScaleDownForgotten) {
            return write.await;
        }
        let store = &self.member.store;
        store.observe_scale(self.key, &seen.uid, seen.generation, to);
        let done = write.await;
        let is_rejected = match &done {
            Ok(outcome) => matches!(outcome, Outcome::Conflict(_)),
            Err(error) => matches!(error.code(), Some(400..500)),
        };
        if is_rejected {
            store.observe_rejected_scale(self.key, &seen.uid, seen.generation);
        }
        match done {
            Ok(Outcome::Written(set)) if set.replicas != to => {
                Ok(Outcome::Failed(messages::other_replicas(to, set.replicas)))
            }
            done => done,
        }
    }
}
