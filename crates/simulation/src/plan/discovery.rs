//! The plan of a federation with discovery: that of the seed with other faults, from a stream of their own.

use federation_controller::config::Config;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use super::{Action, Disk, Fault, Plan, Step, generate::generate};
use crate::sim_federation::HOST;

/// The seeds of what happens to discovery are a stream of their own.
const STREAM: u64 = 0x6469_7363;
/// The most seconds for which clients may leave a pod.
const LONGEST_DRAIN: u32 = 30;

/// The plan of `seed` with discovery, and controllers with this configuration. Some of its sets are FederatedDeployments.
///
/// No member lies: then nothing could be said of its endpoints.
#[must_use]
pub fn generate_discovery(seed: u64, config: &Config) -> Plan {
    let mut plan = generate(seed, config, true);
    plan.discovery = true;
    plan.trial = None;
    let lies = |step: &Step| match &step.action {
        Action::Switch { fault, .. } => *fault == Fault::Mutations,
        _ => false,
    };
    plan.steps.retain(|step| !lies(step));
    let mut random = StdRng::seed_from_u64(seed ^ (STREAM << 32));
    for set in &mut plan.sets {
        set.spec["drainSeconds"] = random.random_range(0..=LONGEST_DRAIN).into();
    }
    let members = plan.members.iter().map(|member| member.name.clone());
    let mut generator = Generator {
        clusters: members.chain([HOST.to_owned()]).collect(),
        random,
        end_ms: plan.end_ms,
        steps: &mut plan.steps,
    };
    for _ in 0..generator.random.random_range(1..=8) {
        generator.draw();
    }
    plan.steps.sort_by_key(|step| step.at_ms);
    plan
}

struct Generator<'a> {
    random: StdRng,
    /// The members, and the host.
    clusters: Vec<String>,
    end_ms: u64,
    steps: &'a mut Vec<Step>,
}

impl Generator<'_> {
    /// What happens to discovery, or to what it watches.
    fn draw(&mut self) {
        let at_ms = self.random.random_range(0..self.end_ms);
        let cluster = self.clusters.choose(&mut self.random);
        let cluster = cluster.expect("there is a host").clone();
        match self.random.random_range(0..6) {
            0..3 => {
                let disks = [Disk::Written, Disk::Kept, Disk::Kept, Disk::Lost];
                let disk = *disks.choose(&mut self.random).unwrap_or(&Disk::Kept);
                let downs = [1, 1_000, 20_000, 200_000];
                let down_ms = *downs.choose(&mut self.random).unwrap_or(&1);
                self.push(at_ms, Action::RestartDiscovery { disk, down_ms });
            }
            3 => {
                let fault = if cluster == HOST {
                    Fault::WatchesSilent
                } else {
                    Fault::PodsSilent
                };
                self.switch(at_ms, &cluster, fault);
            }
            4 => self.switch(at_ms, &cluster, Fault::ReadsRejected),
            _ => {
                if self.random.random_bool(0.6) {
                    let cluster = cluster.clone();
                    self.push(at_ms, Action::Compact { cluster });
                }
                self.push(at_ms, Action::CutWatches { cluster });
            }
        }
    }

    fn push(&mut self, at_ms: u64, action: Action) {
        self.steps.push(Step { at_ms, action });
    }

    fn switch(&mut self, at_ms: u64, cluster: &str, fault: Fault) {
        let longest = *[10_000, 60_000, 300_000]
            .choose(&mut self.random)
            .unwrap_or(&10_000);
        let duration = self.random.random_range(longest / 10..=longest);
        for (at_ms, on) in [(at_ms, true), (at_ms + duration, false)] {
            let cluster = cluster.to_owned();
            self.push(at_ms, Action::Switch { cluster, fault, on });
        }
    }
}
