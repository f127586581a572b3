//! The PodDisruptionBudget as an API server has it, the disruption controller, and evictions.

use std::collections::BTreeSet;

use replica_set_controller::{BudgetChange, DisruptionBudget, Disruptions};

use super::cluster::{Cluster, Seen};

/// The PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelBudget {
    uid: String,
    /// Changes with each write.
    version: u64,
    generation: i64,
    observed: i64,
    pub(crate) min_available: usize,
    replicas: usize,
    healthy: usize,
    allowed: usize,
    /// The uids of pods that were evicted, and whose removal is not counted.
    disrupted: BTreeSet<String>,
}

/// What the controller sends.
#[derive(Clone, Debug)]
pub(crate) struct BudgetRequest {
    change: BudgetChange,
    replicas: usize,
    /// The uid and the version that were seen.
    of: Option<(String, u64)>,
}

/// The part of a cluster that evictions go through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evictions {
    pub(crate) budget: Option<ModelBudget>,
    /// The pods as the disruption controller sees them.
    counted: Vec<Seen>,
    /// Pods whose eviction was granted, and that are not deleted yet.
    granted: Vec<String>,
    uids: u64,
    versions: u64,
}

impl BudgetRequest {
    pub(crate) fn new(change: BudgetChange, replicas: usize, view: Option<&ModelBudget>) -> Self {
        let of = view.map(|budget| (budget.uid.clone(), budget.version));
        Self {
            change,
            replicas,
            of,
        }
    }
}

impl Evictions {
    /// Carries a request out, if its precondition holds.
    pub(crate) fn carry_out(&mut self, request: &BudgetRequest) {
        self.versions += 1;
        let version = self.versions;
        let is_same = |(uid, version): &(String, u64)| {
            let budget = self.budget.as_ref();
            budget.is_some_and(|budget| budget.uid == *uid && budget.version == *version)
        };
        match (&request.of, request.change.min_available()) {
            (None, Some(min_available)) if self.budget.is_none() => {
                self.uids += 1;
                self.budget = Some(ModelBudget {
                    uid: format!("budget-{}", self.uids),
                    version,
                    generation: 1,
                    observed: 0,
                    min_available,
                    replicas: request.replicas,
                    healthy: 0,
                    allowed: 0,
                    disrupted: BTreeSet::new(),
                });
            }
            (Some(of), None) if is_same(of) => self.budget = None,
            (Some(of), Some(min_available)) if is_same(of) => {
                let budget = self.budget.as_mut().expect("it is the same");
                budget.version = version;
                budget.generation += i64::from(budget.min_available != min_available);
                budget.min_available = min_available;
                budget.replicas = request.replicas;
            }
            _ => {}
        }
    }

    /// The disruption controller sees the pods as they are.
    pub(crate) fn watch(&mut self, cluster: &Cluster) {
        self.counted = cluster.seen();
    }

    /// The disruption controller counts the pods that it sees.
    pub(crate) fn count(&mut self) {
        self.versions += 1;
        let Some(budget) = &mut self.budget else {
            return;
        };
        let is_alive = |uid: &String| {
            let mut pods = self.counted.iter();
            pods.any(|seen| seen.pod.uid == *uid && !seen.pod.is_terminating())
        };
        budget.disrupted.retain(is_alive);
        let healthy = self.counted.iter().filter(|seen| {
            let is_disrupted = budget.disrupted.contains(&seen.pod.uid);
            seen.is_ready() && !is_disrupted
        });
        budget.healthy = healthy.count();
        budget.allowed = budget.healthy.saturating_sub(budget.min_available);
        budget.observed = budget.generation;
        budget.version = self.versions;
    }

    /// Somebody evicts a pod: it is granted or not. One that is not ready is deleted if it still is not.
    pub(crate) fn request(&mut self, cluster: &mut Cluster, index: usize) {
        let pods = cluster.seen();
        let Some(seen) = pods.get(index % pods.len().max(1)) else {
            return;
        };
        let uid = &seen.pod.uid;
        self.versions += 1;
        let Some(budget) = &mut self.budget else {
            return;
        };
        if !seen.is_ready() {
            cluster.evict(uid);
            return;
        }
        if budget.observed < budget.generation || budget.allowed == 0 {
            return;
        }
        budget.allowed -= 1;
        budget.version = self.versions;
        budget.disrupted.insert(uid.clone());
        self.granted.push(uid.clone());
    }

    /// What was granted is deleted.
    pub(crate) fn delete(&mut self, cluster: &mut Cluster) {
        for uid in std::mem::take(&mut self.granted) {
            cluster.evict(&uid);
        }
    }
}

impl ModelBudget {
    pub(crate) fn facts(&self) -> DisruptionBudget<'_> {
        DisruptionBudget {
            uid: &self.uid,
            generation: self.generation,
            min_available: self.min_available,
            replicas: self.replicas,
            is_intact: true,
            is_settled: (self.observed == 0 || self.observed == self.generation)
                && self.disrupted.is_empty(),
            healthy: self.healthy,
        }
    }
}

/// What the controller knows of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BudgetView {
    pub(crate) budget: Option<ModelBudget>,
    /// The generation since whose observation all pods were read.
    pub(crate) pods_read: Option<(String, i64)>,
}

impl BudgetView {
    pub(crate) fn disruptions(&self) -> Disruptions<'_> {
        let ours = self.budget.as_ref();
        Disruptions {
            ours: ours.map(ModelBudget::facts),
            other: None,
            are_pods_read: ours.is_some_and(|budget| {
                let read = self.pods_read.as_ref();
                read.is_some_and(|(uid, generation)| {
                    *uid == budget.uid && *generation == budget.generation
                })
            }),
        }
    }

    /// All pods were read just now.
    pub(crate) fn read(&mut self) {
        let ours = self.budget.as_ref();
        self.pods_read = ours.map(|budget| (budget.uid.clone(), budget.generation));
    }
}
