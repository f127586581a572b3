//! What happens to discovery in a run, and how the run of it ends.

use http::Method;
use tokio::time::{Duration, Instant};

use super::{
    discovery::{ENDPOINT_SETS, endpoint_set, unlisted_after_restore},
    faults::STARTING,
    runner::{Runner, Timer},
};
use crate::{
    checks::{
        Invariant,
        endpoints::{Answers, Hindrance},
    },
    plan::{Disk, Fault},
    sim_federation::HOST,
    trace::Topic,
};

/// The longest pause of a watch after a rejected request.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// When faults have ended, and a restored cluster seems to be as before, it is listed after half an hour; then watches take some
/// minutes until they show everything at once.
const CURRENT_WITHIN: Duration = Duration::from_secs(1800 + 600);
/// For how long answers are watched when all is known at once.
const WATCHED_FOR: Duration = Duration::from_secs(600);
/// How often it is asked what hinders discovery.
const LOOK: Duration = Duration::from_secs(10);

impl Runner {
    /// Creates an EndpointSet for each set, and starts discovery.
    pub(super) async fn begin_discovery(&mut self) {
        self.start_discovery();
        for set in self.sets.clone() {
            let object = endpoint_set(&set.name, set.kind);
            self.request(HOST, Method::POST, ENDPOINT_SETS, &object)
                .await;
        }
    }

    /// Starts discovery, if the run has it and it does not run.
    pub(super) fn start_discovery(&mut self) {
        self.timers
            .retain(|timer| !matches!(timer, Timer::StartDiscovery));
        let Some(discovery) = self.discovery.as_mut().filter(|one| !one.runs()) else {
            return;
        };
        self.recorder.trace(Topic::Process, "discovery starts");
        self.recorder.observe_answers(Answers::process_starts);
        discovery.start(&self.federation);
    }

    /// Ends discovery. It starts again after a while.
    pub(super) async fn restart_discovery(&mut self, disk: Disk, down: Duration) {
        let Some(discovery) = self.discovery.as_mut().filter(|one| one.runs()) else {
            self.recorder
                .trace(Topic::Step, "(has no effect: it does not run)");
            return;
        };
        discovery.end(disk).await;
        self.recorder.observe_answers(Answers::process_ends);
        self.timers.set(down, Timer::StartDiscovery);
        self.count("restarts of discovery");
    }

    /// A fault that lasts begins or ends, as discovery notices it.
    pub(super) fn switch_for_discovery(&mut self, cluster: &str, fault: Fault, on: bool) {
        if fault == Fault::NoKubeconfig
            && let Some(discovery) = &mut self.discovery
        {
            discovery.set_kubeconfig(cluster, !on, &self.federation);
        }
        let hindrance = match fault {
            Fault::Unreachable
            | Fault::Hanging
            | Fault::NoPower
            | Fault::NoKubeconfig
            | Fault::ReadsRejected
            | Fault::Mutations => Hindrance::Outage,
            Fault::WatchesSilent | Fault::PodsSilent => Hindrance::Watches,
            Fault::ReplicaSetsSilent | Fault::NodesSilent | Fault::NoControllerManager => return,
        };
        // An API server that starts rejects the first requests.
        let rest = if fault == Fault::NoPower {
            LONGEST_PAUSE * STARTING
        } else {
            Duration::ZERO
        };
        let reason = fault.to_string();
        self.recorder.observe_answers(|answers| {
            if on {
                answers.begin(cluster, hindrance, &reason);
            } else {
                answers.end(cluster, &reason, rest);
            }
        });
    }

    /// A cluster is restored: what discovery knows of it may be of before.
    pub(super) fn restore_for_discovery(&self, cluster: &str) {
        self.recorder.observe_answers(|answers| {
            for reason in unlisted_after_restore(cluster) {
                answers.begin(cluster, Hindrance::Outage, &reason);
            }
        });
    }

    /// Faults of the host and of these members have ended: soon all changes of them are answered at once, and stay so.
    pub(super) async fn settle_discovery(&mut self, core: &[String]) {
        let deadline = Instant::now() + CURRENT_WITHIN;
        loop {
            let hindered = self.recorder.hinders_discovery(core);
            if hindered.is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                let seconds = CURRENT_WITHIN.as_secs();
                let text = format!(
                    "not within {seconds} s: discovery knows all of {}",
                    hindered.join(", ")
                );
                self.fail(Invariant::Reached, text);
                return;
            }
            self.wait_until(Instant::now() + LOOK).await;
        }
        self.recorder
            .trace(Topic::Phase, "discovery knows all changes at once");
        self.wait_until(Instant::now() + WATCHED_FOR).await;
    }
}
