//! The controllers of a run: one that works, or several that take part in the election.

use std::{collections::BTreeMap, sync::Arc};

use federation_controller::{
    election::{ElectionMetrics, Elector, Fence, LeaderElectorConfig},
    members::MemberEvent,
    watchdog::Watchdog,
};
use fedrs_api::names;
use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;
use sim_cluster::AuditEvent;
use tokio::{
    sync::mpsc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    recorder::Recorder,
    slots::{Process, Slots},
};
use crate::{
    connect::member_file,
    crash::{DelayedRequest, Lifetime, WriteObserver},
    sim_federation::{ControllerParts, SimFederation},
    suspension::Suspension,
};

/// More changes of kubeconfigs than there are in a run.
const EVENTS: usize = 4096;

/// All processes.
pub(super) struct Processes {
    /// Whether they take part in an election.
    elect: bool,
    /// Whether one ran already.
    ran: bool,
    slots: Slots<Files>,
    /// The members with a kubeconfig in a file, and the cluster of each.
    files: BTreeMap<String, String>,
    recorder: Recorder,
}

/// The directory of kubeconfigs, as the controller of one process follows it.
#[derive(Clone)]
struct Files(Arc<Mutex<Directory>>);

struct Directory {
    /// The members with a file, and the cluster of each.
    members: BTreeMap<String, String>,
    follower: Option<mpsc::Sender<MemberEvent>>,
}

impl Files {
    /// The files that exist, and all later changes. Another follower takes the place of the one before.
    fn follow(&self) -> mpsc::Receiver<MemberEvent> {
        let mut directory = self.0.lock();
        let (sender, receiver) = mpsc::channel(EVENTS);
        let files = directory
            .members
            .iter()
            .map(|(name, cluster)| member_file(name, cluster));
        for event in files.chain([MemberEvent::Complete]) {
            sender.try_send(event).expect("there is room");
        }
        directory.follower = Some(sender);
        receiver
    }

    fn set(&self, member: &str, cluster: Option<&str>) {
        let mut directory = self.0.lock();
        let name = member.to_owned();
        let event = if let Some(cluster) = cluster {
            directory.members.insert(name, cluster.to_owned());
            member_file(member, cluster)
        } else {
            directory.members.remove(member);
            MemberEvent::Gone { name }
        };
        if let Some(follower) = &directory.follower {
            // It may have ended.
            let _ = follower.try_send(event);
        }
    }
}

/// Says which process writes.
struct Writer {
    process: String,
    recorder: Recorder,
}

impl WriteObserver for Writer {
    fn handled(&self, cluster: &str, event: &AuditEvent) {
        self.recorder.handled(&self.process, cluster, event);
    }

    fn delay(&self, cluster: &str, name: &str) -> Option<Duration> {
        self.recorder.delay(cluster, name)
    }

    fn in_flight(&self, cluster: &str, request: &DelayedRequest) {
        self.recorder.in_flight(cluster, request);
    }

    fn was_restored_since(&self, cluster: &str, time: Instant) -> bool {
        self.recorder
            .observe(|observed| observed.was_restored_since(cluster, time))
    }

    fn answered(&self, cluster: &str, method: &Method, uri: &Uri, code: Option<StatusCode>) {
        self.recorder.answered(cluster, method, uri, code);
    }

    fn listed(&self, cluster: &str, uri: &Uri) {
        self.recorder
            .observe(|observed| observed.put_list(cluster, uri.path()));
    }
}

impl Processes {
    /// One process without an election if `candidates` is 0; none runs yet.
    pub(super) fn new(candidates: u32, files: Vec<String>, recorder: Recorder) -> Self {
        let files = files.into_iter().map(|name| (name.clone(), name));
        Self {
            elect: candidates > 0,
            ran: false,
            slots: Slots::new(candidates.max(1) as usize),
            files: files.collect(),
            recorder,
        }
    }

    /// How many there are, running or not.
    pub(super) fn count(&self) -> usize {
        self.slots.count()
    }

    /// The name of a process.
    pub(super) fn name(number: usize) -> String {
        Slots::<Files>::name(number)
    }

    /// Whether it runs.
    pub(super) fn runs(&self, number: usize) -> bool {
        self.slots.runs(number)
    }

    /// Starts a process that does not run.
    pub(super) fn start(&mut self, number: usize, federation: &SimFederation) {
        let process = Self::name(number);
        let lifetime = Lifetime::observed(Arc::new(Writer {
            process: process.clone(),
            recorder: self.recorder.clone(),
        }));
        let parts = federation.parts(&lifetime);
        let files = Files(Arc::new(Mutex::new(Directory {
            members: self.files.clone(),
            follower: None,
        })));
        let (cancel, suspension) = (CancellationToken::new(), Suspension::default());
        let task = if self.elect {
            let elector = elector(&parts, process, number as u64);
            let followed = files.clone();
            let election = elector.run(cancel.clone(), move |term| {
                work(parts.clone(), followed.clone(), term.fence, term.end)
            });
            tokio::spawn(suspension.clone().around(election))
        } else {
            let fence = if std::mem::replace(&mut self.ran, true) {
                Fence::unelected()
            } else {
                Fence::open()
            };
            tokio::spawn(work(parts, files.clone(), fence, cancel.clone()))
        };
        let process = Process {
            lifetime,
            cancel,
            task,
            suspension,
            parts: files,
        };
        self.slots.put(number, process);
    }

    /// Waits until a process crashes. Returns its number.
    pub(super) async fn crashed(&self) -> usize {
        self.slots.crashed().await
    }

    /// Ends a process without a chance to write anything.
    pub(super) async fn kill(&mut self, number: usize) {
        self.slots.kill(number).await;
    }

    /// Makes a process crash at a later write of its own.
    pub(super) fn crash_at(&self, number: usize, write: u64, after: bool) {
        self.slots.crash_at(number, write, after);
    }

    /// Takes back the crashes that have not happened yet.
    pub(super) fn crash_no_more(&self) {
        self.slots.crash_no_more();
    }

    /// Suspends or resumes the election of a process. While suspended, it does not notice the end of its term.
    pub(super) fn suspend(&self, number: usize, on: bool) {
        self.slots.suspend(number, on);
    }

    /// Adds the file of a member, which is this cluster, or removes it.
    pub(super) fn set_kubeconfig(&mut self, member: &str, cluster: Option<&str>) {
        if let Some(cluster) = cluster {
            self.files.insert(member.to_owned(), cluster.to_owned());
        } else {
            self.files.remove(member);
        }
        for process in self.slots.running() {
            process.parts.set(member, cluster);
        }
    }
}

fn elector(parts: &ControllerParts, identity: String, seed: u64) -> Elector {
    Elector::new(LeaderElectorConfig {
        host: parts.host.clone(),
        namespace: names::SYSTEM_NAMESPACE.to_owned(),
        lease: names::CONTROLLER.to_owned(),
        component: federation_controller::COMPONENT,
        identity,
        timing: parts.config.leader_election,
        clock: parts.clock.clone(),
        seed,
        metrics: ElectionMetrics::default(),
        watchdog: Watchdog::default(),
    })
}

/// Runs a controller until `cancel`.
async fn work(parts: ControllerParts, files: Files, fence: Fence, cancel: CancellationToken) {
    let controller = parts.controller(files.follow(), fence);
    if let Some(running) = controller.start(cancel).await {
        running.joined().await;
    }
}
