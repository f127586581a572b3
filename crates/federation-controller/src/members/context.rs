//! What the handles of all members share.

use std::sync::Arc;

use cluster_informer::{InformerSettings, WatchScope};
use controller_base::{clock::Clock, election::Fence, event_recorder::EventRecorder};
use kube::Client;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{MemberSecrets, Registry};
use crate::{config::Config, metrics::Metrics, trigger::Trigger};

/// What the handles of all members share.
pub(crate) struct Context {
    pub(crate) trigger: Arc<dyn Trigger>,
    pub(crate) recorder: EventRecorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) host: Client,
    pub(crate) fence: Fence,
    pub(crate) federation: Arc<str>,
    pub(crate) secrets: MemberSecrets,
    pub(crate) config: Config,
    pub(crate) informer_settings: InformerSettings,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) tasks: TaskTracker,
    pub(crate) cancel: CancellationToken,
}

impl Context {
    /// The namespaces that are watched in `member`: all, or those in a list and those that were in it and still have replicas.
    pub(super) fn watch_scope(&self, member: &str) -> WatchScope {
        match self.registry.listed_namespaces(member) {
            None => WatchScope::All,
            Some(mut namespaces) => {
                namespaces.extend(self.trigger.namespaces_in(member));
                WatchScope::Namespaces(namespaces)
            }
        }
    }
}
