//! The options of the benchmark.

use std::path::{Path, PathBuf};

use clap::{Parser, builder::TypedValueParser as _};
use fedrs_api::SetKind;

/// Creates many FederatedReplicaSets at once: measures the time until all pods are ready, memory, and writes after a restart.
#[derive(Parser)]
#[command(bin_name = "settle")]
pub(super) struct SettleArgs {
    /// Sets created at once
    #[arg(long, default_value_t = 500)]
    pub(super) sets: usize,
    /// FederatedDeployments instead of FederatedReplicaSets
    #[arg(long)]
    pub(super) deployments: bool,
    /// Member clusters; each set has one replica in each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
    pub(super) members: usize,
    /// Connect to host and members over HTTPS on loopback, instead of in process
    #[arg(long)]
    pub(super) https: bool,
    /// How long to watch for writes of the restarted controller; delayed checks run within 60 s
    #[arg(long, value_name = "SECONDS", default_value_t = 75)]
    pub(super) watch_seconds: u64,
    /// File for the figures as JSON
    #[arg(long, value_name = "FILE", default_value_os_t = default_json())]
    pub(super) json: PathBuf,
}

impl SettleArgs {
    pub(super) fn set_kind(&self) -> SetKind {
        if self.deployments {
            SetKind::FederatedDeployment
        } else {
            SetKind::FederatedReplicaSet
        }
    }
}

/// In the workspace's `target` directory, whatever the working directory is.
fn default_json() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    workspace
        .expect("this package is a directory of the workspace")
        .join("target/settle.json")
}
