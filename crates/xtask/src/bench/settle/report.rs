//! The figures, for people and as JSON.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use anyhow::Context;
use serde::Serialize;

/// What was measured. Times are in seconds since the first FederatedReplicaSet was sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) sets: usize,
    pub(super) members: usize,
    pub(super) https: bool,
    /// Until the host had answered all creations.
    pub(super) created_seconds: f64,
    /// Until every member had its local set of every FederatedReplicaSet.
    pub(super) local_sets_seconds: f64,
    /// Until all their pods were ready.
    pub(super) ready_pods_seconds: f64,
    /// Until every status said so.
    pub(super) told_seconds: f64,
    /// Until the controller's last write, events included.
    pub(super) last_write_seconds: f64,
    /// The controller's requests other than GET, by `cluster METHOD resource`.
    pub(super) writes: BTreeMap<String, u64>,
    pub(super) memory: Memory,
    pub(super) restart: Restart,
}

/// What the process held.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
    /// At most, from the start to the end: clusters, controller and benchmark, as the kernel counts it.
    pub(super) resident_bytes_max: u64,
    /// On the heap when all was settled, less what was left after the controller had ended.
    pub(super) controller_heap_bytes: u64,
    /// On the heap after the controller had ended: the clusters.
    pub(super) clusters_heap_bytes: u64,
}

/// What the restarted controller did.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restart {
    /// Until it knew host and members.
    pub(super) ready_seconds: f64,
    pub(super) watched_seconds: u64,
    /// Its requests other than GET: there must be none.
    pub(super) writes: BTreeMap<String, u64>,
    /// Whether host and local sets had the same versions afterwards.
    pub(super) unchanged: bool,
}

impl Restart {
    /// Whether it wrote nothing, by its requests and by what the clusters hold.
    pub(super) fn is_silent(&self) -> bool {
        self.writes.is_empty() && self.unchanged
    }
}

impl Report {
    /// Writes the figures to `path` as JSON.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("failed to create {}", folder.display()))?;
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
            "{sets} FederatedReplicaSets over {members} members, {transport}"
        )?;
        writeln!(f, "{:8.2} s  all are created", self.created_seconds)?;
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let rate = all as f64 / self.local_sets_seconds;
        writeln!(
            f,
            "{:8.2} s  {all} local sets exist: {rate:.0} a second",
            self.local_sets_seconds
        )?;
        writeln!(f, "{:8.2} s  {all} pods are ready", self.ready_pods_seconds)?;
        writeln!(f, "{:8.2} s  every status tells so", self.told_seconds)?;
        writeln!(
            f,
            "{:8.2} s  the last write, of {}:",
            self.last_write_seconds,
            self.writes.values().sum::<u64>()
        )?;
        list(f, &self.writes)?;
        let memory = &self.memory;
        for (bytes, what) in [
            (memory.resident_bytes_max, "resident at most, all together"),
            (
                memory.clusters_heap_bytes,
                "on the heap for the clusters, settled",
            ),
            (
                memory.controller_heap_bytes,
                "on the heap for the controller, settled: freed by its end",
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
