//! The members of the federation: which there are, how to reach them, and what they show.
//!
//! ```text
//! folder of kubeconfigs --MemberEvent--> Members --> registry (read by checks)
//! MemberCluster objects ---------------->   |   \--> an informer per member
//!                                           '------> MemberCluster objects and their status
//! ```

pub mod directory;
mod objects;
mod registry;

use std::{collections::BTreeMap, sync::Arc};

use cluster_informer::{ChangeSink, InformerSettings, MemberInformer, MemberView};
use kube::Client;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::objects::ObjectKeeper;
pub(crate) use self::registry::Registry;
use crate::{
    clock::Clock,
    config::Config,
    election::Fence,
    executor::MemberAccess,
    reconcile::Reconciler,
    watch::{MemberObject, MemberObjects},
};

/// What became of a member's kubeconfig.
#[derive(Clone)]
pub enum MemberEvent {
    /// It is there, or was changed.
    Present {
        /// The member's name.
        name: String,
        /// Reaches it; without a retry of its own.
        client: Client,
    },
    /// It is there and can't be used: what runs there is left as it is.
    Broken {
        /// The member's name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// It is gone: the member is lost, after its grace period.
    Gone {
        /// The member's name.
        name: String,
    },
    /// All that is there has been told once.
    Complete,
}

/// The task that owns the list of members.
pub(crate) struct Members {
    pub(crate) reconciler: Arc<Reconciler>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) host: Client,
    pub(crate) fence: Fence,
    pub(crate) federation: Arc<str>,
    pub(crate) config: Config,
    pub(crate) informer_settings: InformerSettings,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) tasks: TaskTracker,
    pub(crate) cancel: CancellationToken,
    /// Ends the informer of each member.
    pub(crate) informers: BTreeMap<String, CancellationToken>,
    /// Set once all members that are there have been told.
    pub(crate) complete: watch::Sender<bool>,
}

impl Members {
    /// Takes in events and objects until everything ends.
    pub(crate) async fn run(
        mut self,
        mut events: mpsc::Receiver<MemberEvent>,
        objects: Arc<MemberObjects>,
    ) {
        let cancel = self.cancel.clone();
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                Some(event) = events.recv() => self.event(event),
                object = objects.next() => self.object(object),
            }
        }
    }

    fn event(&mut self, event: MemberEvent) {
        match event {
            MemberEvent::Present { name, client } => self.present(&name, &client),
            MemberEvent::Broken { name, message } => {
                tracing::warn!(cluster = %name, "kubeconfig can't be used: {message}");
                let is_new = !self.registry.is_known(&name);
                self.registry.put_broken(&name, message, self.clock.now());
                self.keep_object(&name, is_new);
            }
            MemberEvent::Gone { name } => {
                tracing::warn!(cluster = %name, "kubeconfig removed: the member is lost after its grace period");
                if let Some(informer) = self.informers.remove(&name) {
                    informer.cancel();
                }
                self.registry.put_removed(&name, self.clock.now());
            }
            MemberEvent::Complete => {
                self.complete.send_replace(true);
            }
        }
        self.reconciler.check_all();
    }

    fn present(&mut self, name: &str, client: &Client) {
        let client = self.fence.guard(client);
        let is_new = !self.registry.is_known(name);
        if let Some(informer) = self.informers.remove(name) {
            informer.cancel();
        }
        let cancel = self.cancel.child_token();
        let sink: Arc<dyn ChangeSink> = Arc::clone(&self.reconciler) as _;
        let clock = self.clock.clone();
        let informer = MemberInformer::spawn(
            name,
            client.clone(),
            &self.federation,
            sink,
            self.informer_settings.clone(),
            &self.reconciler.metrics.informers,
            Arc::new(move || clock.now()),
            self.seed,
            cancel.clone(),
        );
        self.informers.insert(name.to_owned(), cancel);
        let store: Arc<dyn MemberView> = informer.store;
        let task = informer.task;
        self.tasks
            .spawn(async move { task.await.expect("an informer does not panic") });
        let permits = Arc::new(Semaphore::new(self.config.calls_per_member as usize));
        let access = MemberAccess {
            name: name.into(),
            client,
            store,
            permits,
        };
        self.registry.put(access, self.clock.now());
        self.keep_object(name, is_new);
        tracing::info!(cluster = %name, "member added");
    }

    /// Starts keeping the MemberCluster of a member that is new.
    fn keep_object(&self, name: &str, is_new: bool) {
        if is_new {
            let keeper = ObjectKeeper {
                host: self.host.clone(),
                registry: Arc::clone(&self.registry),
                name: name.to_owned(),
                clock: self.clock.clone(),
                call_timeout: self.config.call_timeout,
                joining_timeout: self.config.joining_timeout,
            };
            self.tasks.spawn(keeper.run(self.cancel.clone()));
        }
    }

    fn object(&mut self, (name, spec): MemberObject) {
        let changed = match spec {
            Some(spec) => {
                if !self.registry.is_known(&name) {
                    // A member of an earlier run whose kubeconfig is not, or not yet, there.
                    self.registry.put_removed(&name, self.clock.now());
                    self.keep_object(&name, true);
                }
                self.registry.put_spec(&name, &spec)
            }
            None => self.registry.forget(&name),
        };
        if changed {
            self.reconciler.check_all();
        }
    }
}
