//! Looks at one Service in one member, and writes what has to change there.

use std::{sync::Arc, time::Duration};

use controller_base::watchdog::Watched;
use kube::Client;

use crate::{
    decide::decide,
    key::ServiceKey,
    metrics::OfMember,
    plan::plan,
    shared::{Queue, Shared},
    write::{self, Written},
};

/// How long a Service waits after a member has changed meanwhile: the watch shows how.
const OUTDATED: Duration = Duration::from_secs(1);

/// One worker of a member.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) member: Arc<str>,
    pub(crate) client: Client,
    pub(crate) queue: Queue,
}

impl Worker {
    /// Works until the queue ends. Begins when all members are known, or have had their time.
    pub(crate) async fn run(self, watched: Watched) {
        let mut has_begun = self.shared.has_begun.subscribe();
        if has_begun.wait_for(|has_begun| *has_begun).await.is_err() {
            return;
        }
        while let Some(item) = self.queue.next().await {
            let _busy = watched.begin(&*item);
            self.look_at(&item, &watched).await;
        }
    }

    async fn look_at(&self, key: &ServiceKey, watched: &Watched) {
        let view = self.shared.state.view(key);
        let decision = decide(&view).remove(&self.member);
        let Some((Some(member), decision)) = view.members.get(&self.member).zip(decision) else {
            return self.queue.forget_failures(key);
        };
        let mut has_failed = false;
        for write in plan(key, member, &decision, self.shared.clock.now()) {
            let of = OfMember::new(&self.member);
            self.shared.metrics.writes.get_or_create(&of).inc();
            let written = write::send(&self.client, &write).await;
            watched.beat();
            match written {
                Ok(Written::Done(change)) => {
                    self.shared.update(&self.member, |state| change(state));
                }
                Ok(Written::Outdated) => self.queue.add(key.clone(), OUTDATED),
                Err(error) => {
                    self.shared.metrics.failed_writes.get_or_create(&of).inc();
                    let (cluster, path) = (&*self.member, &write.path);
                    tracing::warn!(cluster, service = %key, path, %error, "failed to write");
                    has_failed = true;
                    if !error.is_rejection() {
                        break;
                    }
                }
            }
        }
        if has_failed {
            self.queue.retry(key);
        } else {
            self.queue.forget_failures(key);
        }
    }
}
