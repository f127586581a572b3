//! A member cluster with one Deployment and its controller, as Kubernetes has it, or a LocalReplicaSet: see `local`.

use super::local::started_at;
use federated_rollout::{Deployment, Loan, LocalSet, Strategy};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Starting,
    Available,
    Broken,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pod {
    pub(crate) revision: usize,
    pub(crate) health: Health,
    pub(crate) created: i64,
    /// What only a LocalReplicaSet does with it.
    pub(crate) begun: Option<Begun>,
    /// Whether somebody asks for its eviction.
    pub(crate) is_evicted: bool,
}

/// An update or an eviction that its controller has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) is_update: bool,
    /// Whether the status has it: before, it is not carried out.
    pub(crate) is_recorded: bool,
}

impl Pod {
    /// Whether it is available and stays so.
    pub(crate) fn is_available(&self) -> bool {
        self.health == Health::Available && self.begun.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Reachable,
    Unreachable,
    Lost,
}

#[derive(Clone, Copy, Debug, Default)]
struct Status {
    observed_generation: i64,
    pods: u64,
    updated: u64,
    available: u64,
    updated_available: u64,
    waiting_evictions: u64,
    /// The lowest replicas since its controller caught up: what a caller remembers.
    lowest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) replicas: u64,
    pub(super) revision: usize,
    pub(super) strategy: Strategy,
    /// Of a LocalReplicaSet.
    pub(super) paused: bool,
    generation: i64,
}

/// A write to the Deployment, which is carried out if the generation is still that one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecWrite {
    pub(crate) generation: i64,
    pub(crate) revision: Option<usize>,
    pub(crate) strategy: Option<Strategy>,
    /// Of a LocalReplicaSet.
    pub(crate) paused: Option<bool>,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Cluster {
    pub(crate) name: &'static str,
    /// Whether it has a LocalReplicaSet.
    pub(crate) is_local: bool,
    /// When its controller began updates.
    pub(super) updates: Vec<i64>,
    pub(crate) reach: Reach,
    pub(crate) cordoned: bool,
    pub(crate) waits_for_nodes: bool,
    pub(crate) pods: Vec<Pod>,
    pub(super) spec: Spec,
    /// The generation of the last write of a template.
    rolled: i64,
    /// The spec that the controller has last acted on.
    pub(super) synced: Spec,
    status: Status,
    /// Whether the present leader has seen its Deployment.
    pub(crate) is_known: bool,
    /// What was seen before the cluster became unreachable.
    seen: Option<(Spec, Status)>,
}

pub(crate) const REVISIONS: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];

impl Cluster {
    pub(crate) fn new(name: &'static str, replicas: u64, is_local: bool) -> Self {
        let spec = Spec {
            replicas,
            revision: 0,
            strategy: if is_local {
                Strategy::default()
            } else {
                Strategy::WITHOUT_LOAN
            },
            paused: is_local,
            generation: 1,
        };
        let pod = Pod {
            revision: 0,
            health: Health::Available,
            created: -1_000_000,
            begun: None,
            is_evicted: false,
        };
        let mut cluster = Self {
            name,
            is_local,
            updates: Vec::new(),
            reach: Reach::Reachable,
            cordoned: false,
            waits_for_nodes: false,
            pods: (0..replicas).map(|_| pod).collect(),
            spec,
            rolled: 1,
            synced: spec,
            status: Status::default(),
            is_known: true,
            seen: None,
        };
        cluster.report();
        cluster
    }

    pub(crate) fn replicas(&self) -> u64 {
        self.spec.replicas
    }

    pub(crate) fn revision(&self) -> usize {
        self.spec.revision
    }

    pub(crate) fn available(&self) -> u64 {
        self.count(Pod::is_available)
    }

    /// Its pods, without those that its controller has not removed yet though they are no longer requested: as in Kubernetes,
    /// a surge is about what is requested.
    pub(crate) fn wanted_pods(&self) -> u64 {
        let pods = self.pods.len() as u64;
        if self.synced.generation == self.spec.generation {
            pods
        } else {
            pods.min(self.spec.replicas + self.spec.strategy.surge)
        }
    }

    pub(crate) fn view(&self, started_lately: bool) -> Deployment<'static> {
        let (spec, status) = self.seen.unwrap_or((self.spec, self.status));
        Deployment {
            replicas: spec.replicas,
            lowest_replicas: spec.replicas.min(status.lowest),
            highest_replicas: spec.replicas,
            revision: REVISIONS[spec.revision],
            strategy: spec.strategy,
            generation: spec.generation,
            observed_generation: status.observed_generation,
            pods: status.pods,
            updated: status.updated,
            available: status.available,
            updated_available: status.updated_available,
            uncertain: 0,
            pending: 0,
            started_lately,
            paused: spec.paused && !self.is_local,
            local: self.is_local.then_some(LocalSet {
                paused: spec.paused,
                waiting_evictions: status.waiting_evictions,
                evictable: 0,
            }),
        }
    }

    pub(crate) fn set_reach(&mut self, reach: Reach) {
        self.reach = reach;
        self.is_known |= reach == Reach::Reachable;
        self.seen = match reach {
            Reach::Reachable => None,
            _ => self.seen.or(Some((self.spec, self.status))),
        };
    }

    /// The most replicas that the host has recorded for it: until it is seen, those that a move takes away may still run.
    pub(crate) fn recorded(&self) -> u64 {
        if self.is_known {
            self.replicas()
        } else {
            self.replicas().max(self.pods.len() as u64)
        }
    }

    /// What the Deployment may use while it has this loan: until the loan is written with a template, what it had before, or less.
    pub(crate) fn in_effect(&self, loan: &Loan) -> Strategy {
        let before = if self.rolled <= loan.generation {
            self.spec.strategy
        } else {
            Strategy::default()
        };
        Strategy::new(
            loan.strategy.unavailable.max(before.unavailable),
            loan.strategy.surge.max(before.surge),
        )
    }

    /// Carries the write out if its precondition holds; whether it did.
    pub(crate) fn write(&mut self, write: SpecWrite) -> bool {
        if write.generation != self.spec.generation {
            return false;
        }
        let changed = Spec {
            revision: write.revision.unwrap_or(self.spec.revision),
            strategy: write.strategy.unwrap_or(self.spec.strategy),
            paused: write.paused.unwrap_or(self.spec.paused),
            ..self.spec
        };
        assert!(
            self.is_local || changed.strategy.pods() > 0,
            "the API server refuses 0 and 0"
        );
        // A write of nothing is a fence, and changes something else.
        let is_fence =
            write.revision.is_none() && write.strategy.is_none() && write.paused.is_none();
        let is_change = is_fence || changed != self.spec;
        self.spec = changed;
        self.spec.generation += i64::from(is_change);
        if write.revision.is_some() {
            self.rolled = self.spec.generation;
        }
        true
    }

    pub(crate) fn scale(&mut self, replicas: u64) {
        self.spec.generation += i64::from(replicas != self.spec.replicas);
        self.spec.replicas = replicas;
        self.status.lowest = self.status.lowest.min(replicas);
    }

    /// One sync of its controller: scales the new ReplicaSet up, or the old ones down (rolling.go). Returns the pods created.
    pub(crate) fn sync(&mut self, now: i64) -> u64 {
        self.synced = self.spec;
        if self.is_local {
            return self.sync_local(now);
        }
        if self.spec.paused {
            return self.scale_in_proportion(now);
        }
        let Spec {
            replicas,
            revision,
            strategy,
            ..
        } = self.spec;
        let new = self.count(|pod| pod.revision == revision);
        let total = self.pods.len() as u64;
        if new > replicas {
            self.remove(new - replicas, |pod| pod.revision == revision);
            return 0;
        }
        let room = (replicas + strategy.surge).saturating_sub(total);
        let created = room.min(replicas - new);
        if created > 0 {
            self.pods
                .extend((0..created).map(|_| started_at(now, revision)));
            return created;
        }
        let min_available = replicas.saturating_sub(strategy.unavailable);
        let new_unavailable =
            self.count(|pod| pod.revision == revision && pod.health != Health::Available);
        let limit = total.saturating_sub(min_available + new_unavailable);
        self.remove(limit, |pod| {
            pod.revision != revision && pod.health != Health::Available
        });
        if limit > 0 {
            let spare = self.available().saturating_sub(min_available);
            self.remove(spare, |pod| pod.revision != revision);
        }
        0
    }

    /// What a paused Deployment does (sync.go): it starts nothing of a template without pods, scales the pods of one template to the
    /// replicas, and those of several in proportion, with the surge. Returns the pods created.
    fn scale_in_proportion(&mut self, now: i64) -> u64 {
        let Spec {
            replicas, strategy, ..
        } = self.spec;
        let mut revisions: Vec<_> = self.pods.iter().map(|pod| pod.revision).collect();
        revisions.sort_unstable();
        let total = revisions.len() as u64;
        let is_mixed = revisions.first() != revisions.last();
        let goal = replicas + if is_mixed { strategy.surge } else { 0 };
        let middle = revisions.get(revisions.len() / 2);
        let middle = middle.copied().unwrap_or(self.spec.revision);
        let missing = goal.saturating_sub(total);
        self.pods
            .extend((0..missing).map(|_| started_at(now, middle)));
        for index in 0..total.saturating_sub(goal) {
            // Every other one, so that each revision loses its part.
            let place = usize::try_from(index).expect("it is small") * 7 % revisions.len();
            let revision = revisions.swap_remove(place);
            self.remove(1, |pod| pod.revision == revision);
        }
        missing
    }

    /// Its controller writes the status, about the spec that it has last acted on.
    pub(crate) fn report(&mut self) {
        let revision = self.synced.revision;
        for pod in &mut self.pods {
            if let Some(begun) = &mut pod.begun {
                begun.is_recorded = true;
            }
        }
        let caught_up = self.synced.generation == self.spec.generation;
        self.status = Status {
            lowest: if caught_up {
                self.spec.replicas
            } else {
                self.status.lowest
            },
            observed_generation: self.synced.generation,
            pods: self.pods.len() as u64,
            updated: self.count(|pod| pod.revision == revision),
            available: self.available(),
            updated_available: self.count(|pod| pod.revision == revision && pod.is_available()),
            waiting_evictions: self.count(|pod| pod.is_evicted && pod.is_available()),
        };
    }

    pub(super) fn count(&self, is_counted: impl Fn(&Pod) -> bool) -> u64 {
        self.pods.iter().filter(|pod| is_counted(pod)).count() as u64
    }

    /// Removes `count` pods of those, the unavailable ones first.
    pub(super) fn remove(&mut self, count: u64, is_candidate: impl Fn(&Pod) -> bool) {
        for _ in 0..count {
            let candidates = (0..self.pods.len()).filter(|&index| is_candidate(&self.pods[index]));
            let first = candidates.min_by_key(|&index| {
                (
                    self.pods[index].is_available(),
                    !self.pods[index].is_evicted,
                )
            });
            let Some(index) = first else { return };
            self.pods.remove(index);
        }
    }
}
