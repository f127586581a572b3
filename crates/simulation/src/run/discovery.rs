//! Discovery beside the controllers of a run: one process, its snapshots, and what it answers.
//!
//! ```text
//! host, members --watches, through all faults--> Discovery --each change, and regularly--> Recorder: is the answer true?
//!                                                   '--every 10 s--> snapshots --the next start--'
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use discovery::{Catalog, Discovery, Endpoint, Lookup, SetKey, SnapshotBytes};
use fedrs_api::{EndpointSource, SetKind};
use futures::{FutureExt, future::select_all};
use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sim_cluster::AuditEvent;
use tokio::{
    task::JoinHandle,
    time::{Duration, Instant, sleep_until},
};

use super::recorder::Recorder;
use crate::{
    checks::endpoints::{Answer, AnswerOfSet, SNAPSHOT_INTERVAL, Serves},
    crash::{DelayedRequest, Lifetime, WriteObserver},
    plan::Disk,
    set_kind,
    sim_federation::{HOST, NAMESPACE, SimFederation, client_until_crash},
};

/// How long answers wait for members that can't be listed.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often answers are compared, beside after each change.
const LOOK: Duration = Duration::from_secs(5);
/// EndpointSets.
pub(super) const ENDPOINT_SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/endpointsets";
/// What a list of all pods of a member asks for.
const PODS: &str = "/api/v1/pods";

/// The process, and what stays of it when it ends.
pub(super) struct DiscoveryProcess {
    seed: u64,
    sets: Vec<String>,
    /// The members with a kubeconfig.
    members: BTreeSet<String>,
    disk: Arc<Mutex<SnapshotBytes>>,
    recorder: Recorder,
    running: Option<Running>,
}

struct Running {
    discovery: Discovery,
    lifetime: Lifetime,
    follower: JoinHandle<()>,
}

/// Sees which collections are listed.
struct Reader(Recorder);

impl WriteObserver for Reader {
    fn handled(&self, _: &str, _: &AuditEvent) {}

    fn delay(&self, _: &str, _: &str) -> Option<Duration> {
        None
    }

    fn in_flight(&self, _: &str, _: &DelayedRequest) {}

    fn was_restored_since(&self, _: &str, _: Instant) -> bool {
        false
    }

    fn answered(&self, _: &str, _: &Method, _: &Uri, _: Option<StatusCode>) {}

    fn listed(&self, cluster: &str, uri: &Uri) {
        let reason = restored(uri.path());
        self.0
            .observe_answers(|answers| answers.end(cluster, &reason, Duration::ZERO));
    }
}

/// What is known of this collection may be of before a restoration.
fn restored(path: &str) -> String {
    format!("restored, {path} not listed")
}

/// Why what is known of a cluster that was just restored may be of before, until it is listed.
pub(super) fn unlisted_after_restore(cluster: &str) -> Vec<String> {
    if cluster != HOST {
        return vec![restored(PODS)];
    }
    let path = |kind| format!("/apis/fedrs.dev/v1alpha1/{}", set_kind::resource(kind));
    SetKind::ALL.map(|kind| restored(&path(kind))).into()
}

/// The EndpointSet of a set: the same pods under the same name.
pub(super) fn endpoint_set(name: &str, kind: SetKind) -> Value {
    json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "EndpointSet",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "source": EndpointSource::of_set(kind, name), "ports": [{ "name": "http", "port": 80 }] },
    })
}

impl DiscoveryProcess {
    /// A process that does not run yet, for these sets, and members with a kubeconfig.
    pub(super) fn new(
        seed: u64,
        sets: Vec<String>,
        members: BTreeSet<String>,
        recorder: Recorder,
    ) -> Self {
        Self {
            seed,
            sets,
            members,
            disk: Arc::default(),
            recorder,
            running: None,
        }
    }

    /// Whether it runs.
    pub(super) fn runs(&self) -> bool {
        self.running.is_some()
    }

    /// Starts it from the snapshots that there are.
    pub(super) fn start(&mut self, federation: &SimFederation) {
        let lifetime = Lifetime::observed(Arc::new(Reader(self.recorder.clone())));
        let host = client_until_crash(federation.host(), &lifetime);
        // Another process has other pauses.
        self.seed = self.seed.wrapping_add(1);
        let loaded = self.disk.lock().load();
        let mut discovery = Discovery::start_seeded(loaded, &host, PATIENCE, self.seed);
        for member in &self.members {
            let client = client_until_crash(federation.member(member), &lifetime);
            discovery.set_member(member, &client);
        }
        discovery.members_known();
        let follower = Follower {
            catalog: Arc::clone(discovery.catalog()),
            sets: self.sets.clone(),
            disk: Arc::clone(&self.disk),
            recorder: self.recorder.clone(),
        };
        self.running = Some(Running {
            discovery,
            lifetime,
            follower: tokio::spawn(follower.run()),
        });
    }

    /// Ends it, if it runs.
    pub(super) async fn end(&mut self, disk: Disk) {
        if let Some(running) = self.running.take() {
            running.follower.abort();
            if disk == Disk::Written {
                self.disk.lock().update(running.discovery.catalog());
            }
            running.lifetime.end();
            running.discovery.stop().await;
        }
        if disk == Disk::Lost {
            *self.disk.lock() = SnapshotBytes::default();
        }
    }

    /// A member has a kubeconfig, or none any more.
    pub(super) fn set_kubeconfig(
        &mut self,
        member: &str,
        exists: bool,
        federation: &SimFederation,
    ) {
        if exists {
            self.members.insert(member.to_owned());
        } else {
            self.members.remove(member);
        }
        let Some(running) = &mut self.running else {
            return;
        };
        if exists {
            let client = client_until_crash(federation.member(member), &running.lifetime);
            running.discovery.set_member(member, &client);
        } else {
            running.discovery.end_member(member);
        }
    }
}

/// Looks at the answers of a process, and takes snapshots.
struct Follower {
    catalog: Arc<Catalog>,
    sets: Vec<String>,
    disk: Arc<Mutex<SnapshotBytes>>,
    recorder: Recorder,
}

impl Follower {
    async fn run(self) {
        let mut others = self.catalog.other_changes();
        let mut snapshot_at = Instant::now() + SNAPSHOT_INTERVAL;
        loop {
            others.mark_unchanged();
            let keys = self.sets.iter().map(|set| key(set));
            let mut changes: Vec<_> = keys.filter_map(|key| self.catalog.changes(&key)).collect();
            self.look();
            if snapshot_at <= Instant::now() {
                self.disk.lock().update(&self.catalog);
                snapshot_at = Instant::now() + SNAPSHOT_INTERVAL;
            }
            let of_sets = changes
                .iter_mut()
                .map(|set| set.changed().map(|_| ()).boxed());
            let all = of_sets.chain([others.changed().map(|_| ()).boxed()]);
            tokio::select! {
                biased;
                _ = select_all(all) => {}
                () = sleep_until(snapshot_at.min(Instant::now() + LOOK)) => {}
            }
        }
    }

    fn look(&self) {
        let members = self.catalog.members();
        let known = members
            .iter()
            .map(|member| (member.name.to_string(), member.pods.is_known));
        let known: BTreeMap<_, _> = known.collect();
        self.recorder
            .observe_answers(|answers| answers.put_known(known));
        for set in &self.sets {
            self.recorder
                .answers(set, &answer(self.catalog.lookup(&key(set))));
        }
    }
}

fn key(set: &str) -> SetKey {
    SetKey::new(NAMESPACE, set)
}

fn answer(lookup: Lookup) -> Answer {
    match lookup {
        Lookup::Found(found) => {
            let serves = |endpoint: &Endpoint| Serves {
                addresses: endpoint.addresses().collect(),
                is_terminating: endpoint.is_terminating(),
            };
            let endpoints = found.endpoints.iter().map(|endpoint| {
                let pod = (endpoint.cluster().to_owned(), endpoint.name().to_owned());
                (pod, serves(endpoint))
            });
            Answer::Endpoints(AnswerOfSet {
                version: found.version,
                endpoints: endpoints.collect(),
            })
        }
        Lookup::Waiting(waiting) => Answer::Waits(waiting.to_string()),
        Lookup::NotFound => Answer::Nothing("there is no such EndpointSet".to_owned()),
        Lookup::NoSource => Answer::Nothing("the source does not exist".to_owned()),
        Lookup::Invalid(errors) => Answer::Nothing(format!("it is invalid: {errors:?}")),
    }
}
