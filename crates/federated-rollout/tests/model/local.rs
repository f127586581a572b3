//! The controller of a LocalReplicaSet: it records what it begins in the status, and carries out what is recorded.

use super::{
    MIN_DELAY,
    cluster::{Begun, Cluster, Health, Pod},
};

impl Cluster {
    /// One step: carries out what was recorded, then scales, then begins evictions and updates within the budget. Returns the pods
    /// whose update began.
    pub(super) fn sync_local(&mut self, now: i64) -> u64 {
        let started = self.carry_out(now);
        let (replicas, revision) = (self.spec.replicas, self.spec.revision);
        let pods = self.pods.len() as u64;
        if pods > replicas {
            self.remove(pods - replicas, |_| true);
        }
        let missing = replicas.saturating_sub(pods);
        self.pods
            .extend((0..missing).map(|_| started_at(now, revision)));
        self.begin(false, now);
        let evicts = self
            .pods
            .iter()
            .any(|pod| pod.is_evicted && pod.begun.is_none());
        if !self.spec.paused && !evicts {
            self.begin(true, now);
        }
        started
    }

    fn carry_out(&mut self, now: i64) -> u64 {
        let revision = self.spec.revision;
        let mut started = 0;
        for pod in &mut self.pods {
            if let Some(begun) = pod.begun.filter(|begun| begun.is_recorded) {
                started += u64::from(begun.is_update);
                *pod = started_at(now, revision);
            }
        }
        let begun = (0..started).map(|_| now);
        self.updates.extend(begun);
        started
    }

    /// Begins updates, or evictions, within the budget; updates within the speed, too. A pod that is not available costs nothing.
    fn begin(&mut self, is_update: bool, now: i64) {
        let strategy = self.spec.strategy.unavailable;
        let begun = self.count(|pod| pod.begun.is_some_and(|begun| begun.is_update));
        let lately = self.updates.iter().filter(|at| **at + MIN_DELAY > now);
        let mut speed = strategy
            .max(1)
            .saturating_sub(begun + lately.count() as u64);
        let revision = self.spec.revision;
        for index in 0..self.pods.len() {
            let in_use = self.count(|pod| !pod.is_available());
            let pod = &mut self.pods[index];
            let is_due = if is_update {
                pod.revision != revision
            } else {
                pod.is_evicted
            };
            let has_room = !pod.is_available() || in_use < strategy;
            if !is_due || pod.begun.is_some() || !has_room || (is_update && speed == 0) {
                continue;
            }
            speed -= u64::from(is_update);
            pod.begun = Some(Begun {
                is_update,
                is_recorded: false,
            });
        }
    }
}

pub(super) fn started_at(now: i64, revision: usize) -> Pod {
    Pod {
        revision,
        health: Health::Starting,
        created: now,
        begun: None,
        is_evicted: false,
    }
}
