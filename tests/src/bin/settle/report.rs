//! The figures, for people and as JSON.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use anyhow::Context;
use serde::Serialize;

/// The figures. Times are in seconds since the creation of the first FederatedReplicaSet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// Of the sets.
    pub(super) kind: &'static str,
    pub(super) sets: usize,
    pub(super) members: usize,
    pub(super) https: bool,
    /// Until all FederatedReplicaSets exist.
    pub(super) created_seconds: f64,
    /// Until all local ReplicaSets exist.
    pub(super) local_sets_seconds: f64,
    /// Until all pods are ready.
    pub(super) ready_pods_seconds: f64,
    /// Until all statuses are ready.
    pub(super) ready_statuses_seconds: f64,
    /// Until the last write of the controller, events included.
    pub(super) last_write_seconds: f64,
    /// The controller's requests other than GET, by `cluster METHOD resource`.
    pub(super) writes: BTreeMap<String, u64>,
    pub(super) returned: Return,
    pub(super) memory: Memory,
    pub(super) restart: Restart,
}

/// A member that does not answer for a while, in seconds. The times of its return are since it answers again.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Return {
    /// From its last response until the others run all replicas.
    pub(super) replaced: f64,
    /// Until its MemberCluster shows that one of its nodes has reported: a kubelet does so every ten seconds.
    pub(super) nodes_reported: f64,
    /// How long it has to be healthy after that before replicas in other clusters are removed.
    pub(super) stabilization: f64,
    /// Until no more replicas are requested than there should be.
    pub(super) surplus_gone: f64,
    /// Until each member has its share.
    pub(super) balanced: f64,
}

/// The memory of the process.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
    /// The highest resident set size: clusters, controller and benchmark.
    pub(super) resident_bytes_max: u64,
    /// The heap of the controller when settled: what its end frees.
    pub(super) controller_heap_bytes: u64,
    /// The heap after the end of the controller: the clusters.
    pub(super) clusters_heap_bytes: u64,
}

/// The restarted controller.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restart {
    /// Until it has a current view of host and members.
    pub(super) ready_seconds: f64,
    pub(super) watched_seconds: u64,
    /// Its requests other than GET: there must be none.
    pub(super) writes: BTreeMap<String, u64>,
    /// Whether host and local ReplicaSets keep their resource versions.
    pub(super) unchanged: bool,
}

impl Restart {
    /// Whether it wrote nothing, by its requests and by the resource versions.
    pub(super) fn is_silent(&self) -> bool {
        self.writes.is_empty() && self.unchanged
    }
}

impl Report {
    /// Writes the figures to `path` as JSON.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)
                .with_context(|| format!("failed to create {}", directory.display()))?;
        }
        let json = serde_json::to_string_pretty(self).context("figures are plain data")?;
        fs::write(path, json + "\n").with_context(|| format!("failed to write {}", path.display()))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sets, members, all) = (self.sets, self.members, self.sets * self.members);
        let transport = if self.https {
            "over HTTPS"
        } else {
            "in process"
        };
        writeln!(
            f,
            "{sets} {}s over {members} members, {transport}",
            self.kind
        )?;
        writeln!(f, "{:8.2} s  all are created", self.created_seconds)?;
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let rate = all as f64 / self.local_sets_seconds;
        writeln!(
            f,
            "{:8.2} s  {all} local sets exist: {rate:.0} per second",
            self.local_sets_seconds
        )?;
        writeln!(f, "{:8.2} s  {all} pods are ready", self.ready_pods_seconds)?;
        writeln!(
            f,
            "{:8.2} s  all statuses are ready",
            self.ready_statuses_seconds
        )?;
        writeln!(
            f,
            "{:8.2} s  the last write, of {}:",
            self.last_write_seconds,
            self.writes.values().sum::<u64>()
        )?;
        list(f, &self.writes)?;
        let returned = &self.returned;
        let waits = returned.nodes_reported + returned.stabilization;
        writeln!(
            f,
            "{:8.2} s  a lost member is replaced; back: a node reports after {:.2} s, has to be healthy for {} s; surplus gone {:.2} s later, balanced {:.2} s later",
            returned.replaced,
            returned.nodes_reported,
            returned.stabilization,
            returned.surplus_gone - waits,
            returned.balanced - waits,
        )?;
        let memory = &self.memory;
        for (bytes, what) in [
            (memory.resident_bytes_max, "highest resident set size"),
            (
                memory.clusters_heap_bytes,
                "heap of the clusters when settled",
            ),
            (
                memory.controller_heap_bytes,
                "heap of the controller when settled",
            ),
        ] {
            writeln!(f, "{:8} KiB  {what}", bytes / 1024)?;
        }
        let restart = &self.restart;
        writeln!(
            f,
            "restarted: ready after {:.2} s, {} writes in {} s, versions {}",
            restart.ready_seconds,
            restart.writes.values().sum::<u64>(),
            restart.watched_seconds,
            if restart.unchanged {
                "unchanged"
            } else {
                "CHANGED"
            },
        )?;
        list(f, &restart.writes)
    }
}

fn list(f: &mut fmt::Formatter<'_>, writes: &BTreeMap<String, u64>) -> fmt::Result {
    for (kind, count) in writes {
        writeln!(f, "{count:12}  {kind}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_all_figures() {
        let writes =
            |count| BTreeMap::from([("host PATCH federatedreplicasets/status".to_owned(), count)]);
        let report = Report {
            kind: "FederatedReplicaSet",
            sets: 500,
            members: 3,
            https: true,
            created_seconds: 1.0,
            local_sets_seconds: 2.0,
            ready_pods_seconds: 3.5,
            ready_statuses_seconds: 4.25,
            last_write_seconds: 5.0,
            writes: writes(1000),
            returned: Return {
                replaced: 41.0,
                nodes_reported: 6.0,
                stabilization: 20.0,
                surplus_gone: 28.5,
                balanced: 28.75,
            },
            memory: Memory {
                resident_bytes_max: 300 << 20,
                controller_heap_bytes: 20 << 20,
                clusters_heap_bytes: 80 << 20,
            },
            restart: Restart {
                ready_seconds: 0.5,
                watched_seconds: 75,
                writes: writes(1),
                unchanged: false,
            },
        };
        insta::assert_snapshot!(report, @r"
        500 FederatedReplicaSets over 3 members, over HTTPS
            1.00 s  all are created
            2.00 s  1500 local sets exist: 750 per second
            3.50 s  1500 pods are ready
            4.25 s  all statuses are ready
            5.00 s  the last write, of 1000:
                1000  host PATCH federatedreplicasets/status
           41.00 s  a lost member is replaced; back: a node reports after 6.00 s, has to be healthy for 20 s; surplus gone 2.50 s later, balanced 2.75 s later
          307200 KiB  highest resident set size
           81920 KiB  heap of the clusters when settled
           20480 KiB  heap of the controller when settled
        restarted: ready after 0.50 s, 1 writes in 75 s, versions CHANGED
                   1  host PATCH federatedreplicasets/status
        ");
    }
}
