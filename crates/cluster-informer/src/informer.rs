//! One member, put together: one task that lists and watches its local sets and pods, probes it, and asks it about
//! itself.
//!
//! The five parts share the task, so that one thing happens after another: no two of them touch the facts at the
//! same time, and a simulation repeats.

use std::{sync::Arc, time::Duration};

use fedrs_api::{SetKey, labels};
use futures::future::join5;
use kube::Client;
use reflector::{
    ClientReceiver, ClientSender, Collection, Error, EventHandler, InvalidObject, Reflector,
    ReflectorSettings, ResourceVersion, Uid, client_channel,
};
use tokio::{sync::Notify, task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, info_span};

use crate::{
    about::{self, AboutSettings},
    metrics::{FeedMetrics, InformerMetrics, MemberMetrics, PODS, SETS},
    pod_fact::PodObject,
    probe::{self, ProbeSettings},
    set_fact::SetObject,
    store::{Clock, FeedName, HealthChange, MemberStore},
    view::{Change, ChangeSink, Health, MemberView, SetFact},
};

/// A watch that hangs becomes stale while nothing happens, so it is looked at in between.
const SYNC_LOOK: Duration = Duration::from_secs(5);

/// How a member is followed.
#[derive(Clone, Debug)]
pub struct InformerSettings {
    /// Lists and watches.
    pub reflector: ReflectorSettings,
    /// The liveness probe (F33).
    pub probe: ProbeSettings,
    /// A watch that has been failing for longer makes the view stale (F39). Default 30 s.
    pub stale_after: Duration,
    /// What the member is asked about itself.
    pub about: AboutSettings,
}

impl Default for InformerSettings {
    fn default() -> Self {
        Self {
            reflector: ReflectorSettings::default(),
            probe: ProbeSettings::default(),
            stale_after: Duration::from_secs(30),
            about: AboutSettings::default(),
        }
    }
}

/// A member that is being followed.
#[derive(Debug)]
pub struct MemberInformer {
    /// What is known of it.
    pub store: Arc<MemberStore>,
    /// By which client it is followed.
    pub client: ClientSender,
    /// Ends when cancelled; a panic in it is to end the process.
    pub task: JoinHandle<()>,
}

impl MemberInformer {
    /// Starts to follow `member`: the objects with the labels of `federation` (F40), until `cancel`.
    ///
    /// To be called within a tokio runtime. The client's own retry should be off. Jitters are drawn from `seed`.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing the caller alone decides"
    )]
    pub fn spawn(
        member: impl Into<Arc<str>>,
        client: Client,
        federation: &str,
        sink: Arc<dyn ChangeSink>,
        settings: InformerSettings,
        metrics: &InformerMetrics,
        clock: Clock,
        seed: u64,
        cancel: CancellationToken,
    ) -> Self {
        let member = member.into();
        let store = Arc::new(MemberStore::new(clock, settings.stale_after));
        let span = info_span!("informer", cluster = %member);
        let metrics = Metrics {
            sets: metrics.of_feed(&member, SETS),
            pods: metrics.of_feed(&member, PODS),
            member: metrics.of_member(&member),
        };
        let notifier = Notifier {
            member,
            store: Arc::clone(&store),
            sink,
        };
        let (sender, clients) = client_channel(client);
        let follower = Follower {
            notifier,
            selector: selector(federation),
            settings,
            metrics,
            seed,
            cancel,
        };
        Self {
            store,
            client: sender,
            task: tokio::spawn(follower.run(clients).instrument(span)),
        }
    }
}

/// Takes the objects of `federation` that belong to a set.
fn selector(federation: &str) -> String {
    format!(
        "{}={federation},{}",
        labels::FEDERATION,
        labels::REPLICA_SET
    )
}

struct Metrics {
    sets: FeedMetrics,
    pods: FeedMetrics,
    member: MemberMetrics,
}

/// What follows a member, from one cluster to the next.
struct Follower {
    notifier: Notifier,
    selector: String,
    settings: InformerSettings,
    metrics: Metrics,
    seed: u64,
    cancel: CancellationToken,
}

impl Follower {
    /// Follows by the latest of `clients`, until cancelled.
    async fn run(self, mut clients: ClientReceiver) {
        // Another client doesn't make a member that has not answered for long one that has just begun to fail.
        let mut row = probe::Row::default();
        loop {
            let of_one_cluster = clients.accept();
            tokio::select! {
                biased;
                () = clients.replaced() => {
                    self.notifier.store.taken_over();
                    self.notifier.sync();
                }
                () = self.follow(of_one_cluster, &mut row) => return,
            }
        }
    }

    /// Follows one cluster, until cancelled.
    async fn follow(&self, clients: ClientReceiver, row: &mut probe::Row) {
        let seed = |part| self.seed.wrapping_add(part);
        // A member that is back is listed anew: what was known of it is from before it went.
        let (relist_sets, relist_pods) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let healthy = Notify::new();
        let reflector = |path: &str, part, relist: &Arc<Notify>| {
            Reflector::new(
                clients.clone(),
                Collection::with_labels(path, &*self.selector),
            )
            .settings(self.settings.reflector.clone())
            .seed(seed(part))
            .relist_on(Arc::clone(relist))
        };
        let sets = reflector("/apis/apps/v1/replicasets", 0, &relist_sets).run(SetSink {
            notifier: self.notifier.clone(),
            metrics: self.metrics.sets.clone(),
        });
        let pods = reflector("/api/v1/pods", 1, &relist_pods).run(PodSink {
            notifier: self.notifier.clone(),
            metrics: self.metrics.pods.clone(),
        });
        let sets = self.cancel.run_until_cancelled(sets);
        let pods = self.cancel.run_until_cancelled(pods);
        let probe = probe::run(
            clients.clone(),
            self.settings.probe.clone(),
            Arc::clone(self.notifier.store.clock()),
            seed(2),
            row,
            self.cancel.clone(),
            |health, latency| {
                self.metrics
                    .member
                    .probe_latency
                    .observe(latency.as_secs_f64());
                let change = self.notifier.health(health);
                if change == HealthChange::Back {
                    relist_sets.notify_one();
                    relist_pods.notify_one();
                }
                if change != HealthChange::None {
                    healthy.notify_one();
                }
            },
        );
        let about = about::run(
            clients,
            self.settings.about.clone(),
            &self.notifier.store,
            &healthy,
            seed(3),
        );
        let about = self.cancel.run_until_cancelled(about);
        let staleness = self.cancel.run_until_cancelled(self.look_at_staleness());
        // Boxed, as the five together are larger than a task's stack frame should be.
        Box::pin(join5(sets, pods, probe, about, staleness)).await;
    }

    async fn look_at_staleness(&self) {
        loop {
            sleep(SYNC_LOOK).await;
            self.notifier.sync();
            let staleness = self.notifier.store.staleness();
            self.metrics.member.staleness.set(staleness.as_secs_f64());
        }
    }
}

/// Passes on what changed in a member.
#[derive(Clone)]
struct Notifier {
    member: Arc<str>,
    store: Arc<MemberStore>,
    sink: Arc<dyn ChangeSink>,
}

impl Notifier {
    fn change(&self, key: &SetKey, change: Change) {
        self.sink.changed(&self.member, key, change);
    }

    /// Takes in what the probe says.
    fn health(&self, health: Health) -> HealthChange {
        let told = format!("{health:?}");
        let change = self.store.set_health(health);
        if change != HealthChange::None {
            info!(health = told, "member changed its health");
            self.sink.member_changed(&self.member);
        }
        change
    }

    fn sync(&self) {
        if self.store.sync_changed() {
            info!(sync = ?self.store.sync(), "view of the member changed");
            self.sink.member_changed(&self.member);
        }
    }

    fn alive(&self, feed: FeedName) {
        if self.store.alive(feed) {
            self.sync();
        }
    }

    fn failed(&self, feed: FeedName, error: &Error) {
        debug!(?feed, %error, "watch failed");
        self.store.failed(feed, error.needs_relist());
        self.sync();
    }
}

struct SetSink {
    notifier: Notifier,
    metrics: FeedMetrics,
}

impl SetSink {
    fn count(&self) {
        self.metrics
            .objects
            .set(self.notifier.store.size().0.try_into().unwrap_or(i64::MAX));
    }
}

impl EventHandler<SetObject> for SetSink {
    fn on_init(&mut self) {
        self.metrics.lists.inc();
        self.notifier.store.restarted(FeedName::Sets);
        self.notifier.sync();
    }

    fn on_apply(&mut self, object: SetObject) {
        self.metrics.events.inc();
        let fact = SetFact::from(object);
        let key = fact.key.clone();
        if let Some(change) = self.notifier.store.set_applied(fact) {
            self.notifier.change(&key, change);
        }
        self.count();
    }

    fn on_delete(&mut self, object: SetObject) {
        self.metrics.events.inc();
        let fact = SetFact::from(object);
        let version = ResourceVersion::parse(&fact.resource_version);
        if let Some(change) = self
            .notifier
            .store
            .set_deleted(&fact.key, fact.id(), version)
        {
            self.notifier.change(&fact.key, change);
        }
        self.count();
    }

    fn on_init_done(&mut self, resource_version: &str) {
        for (key, change) in self
            .notifier
            .store
            .sets_listed(ResourceVersion::parse(resource_version))
        {
            self.notifier.change(&key, change);
        }
        self.count();
        self.notifier.sync();
    }

    fn on_error(&mut self, error: &Error) {
        self.metrics.failures.inc();
        self.notifier.failed(FeedName::Sets, error);
    }

    fn on_activity(&mut self) {
        self.notifier.alive(FeedName::Sets);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        self.metrics.malformed.inc();
        let Some(uid) = object.uid else { return };
        if !object.deleted {
            self.notifier.store.set_kept(uid);
        } else if let (Some(namespace), Some(name)) = (&object.namespace, &object.name) {
            let key = SetKey::new(&**namespace, &**name);
            if let Some(change) =
                self.notifier
                    .store
                    .set_deleted(&key, uid, ResourceVersion::default())
            {
                self.notifier.change(&key, change);
            }
        }
    }

    fn on_short_watch(&mut self) {
        self.metrics.short_watches.inc();
    }
}

struct PodSink {
    notifier: Notifier,
    metrics: FeedMetrics,
}

impl PodSink {
    fn count(&self) {
        self.metrics
            .objects
            .set(self.notifier.store.size().1.try_into().unwrap_or(i64::MAX));
    }

    fn remove(&self, uid: Uid, resource_version: &str) {
        if let Some((key, change)) = self.notifier.store.pod_deleted(uid, resource_version) {
            self.notifier.change(&key, change);
        }
    }
}

impl EventHandler<PodObject> for PodSink {
    fn on_init(&mut self) {
        self.metrics.lists.inc();
        self.notifier.store.restarted(FeedName::Pods);
        self.notifier.sync();
    }

    fn on_apply(&mut self, object: PodObject) {
        self.metrics.events.inc();
        for (key, change) in self.notifier.store.pod_applied(object) {
            self.notifier.change(&key, change);
        }
        self.count();
    }

    fn on_delete(&mut self, object: PodObject) {
        self.metrics.events.inc();
        self.remove(object.metadata.uid, &object.metadata.resource_version);
        self.count();
    }

    fn on_init_done(&mut self, _resource_version: &str) {
        for key in self.notifier.store.pods_listed() {
            self.notifier.change(&key, Change::PodChanged);
        }
        self.count();
        self.notifier.sync();
    }

    fn on_error(&mut self, error: &Error) {
        self.metrics.failures.inc();
        self.notifier.failed(FeedName::Pods, error);
    }

    fn on_activity(&mut self) {
        self.notifier.alive(FeedName::Pods);
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        self.metrics.malformed.inc();
        match object.uid {
            Some(uid) if object.deleted => self.remove(uid, ""),
            Some(uid) => self.notifier.store.pod_kept(uid),
            None => {}
        }
    }

    fn on_short_watch(&mut self) {
        self.metrics.short_watches.inc();
    }
}

#[cfg(test)]
#[path = "informer_tests.rs"]
mod tests;
