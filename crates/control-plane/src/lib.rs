//! Real Kubernetes control planes on loopback, as child processes: etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler, and kwok for the nodes. And their faults.
//!
//! ```text
//! tests/control-plane/*/go.mod --Programs::build--> cache folder
//!                                                        |
//! FleetSpec --Fleet::start--> ControlPlane (host, members) --kubeconfigs--> DIR/host.yaml, DIR/members/NAME.yaml
//!                                   |         \--faults: kill, stop, restart, compact, lose a node, Proxy
//!                                   \--------> Ledger: what runs for whom; what a crashed run left is ended by the next
//! ```
//!
//! Clusters differ by loopback address, not by port. Knows nothing of fedrs. Linux only: processes are told apart by
//! `/proc`, and all of 127.0.0.0/8 is loopback there.

mod address;
mod cluster;
mod commands;
mod fleet;
mod ledger;
mod nodes;
mod pki;
mod places;
mod process;
mod programs;
mod proxy;
mod request;
mod tokens;

pub use address::Subnet;
pub use cluster::{ControlPlane, ControlPlaneSpec, Part};
pub use fleet::{Fleet, FleetSpec, MemberSpec, Run};
pub use ledger::{Ledger, RunState};
pub use nodes::NodeResources;
pub use programs::{Program, Programs};
pub use proxy::{Proxy, ProxyMode};
pub use request::request;
pub use tokens::{Account, Life};

/// What can go wrong with control planes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder.
    #[error("{path}: {error}")]
    File {
        /// Which one.
        path: String,
        /// What is wrong.
        error: std::io::Error,
    },
    /// A program could not be started, or ended at once.
    #[error("{program}: {message}")]
    Program {
        /// Its name.
        program: String,
        /// What it said.
        message: String,
    },
    /// A cluster did not become ready in time.
    #[error("cluster {cluster}: {message}")]
    Cluster {
        /// Its name.
        cluster: String,
        /// What was waited for, and what the processes said.
        message: String,
    },
    /// Certificates could not be made.
    #[error("certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// A request to a cluster failed.
    #[error("request: {0}")]
    Request(#[from] kube::Error),
    /// A kubeconfig that was written here can't be read.
    #[error("kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// Go is needed to build the programs, and isn't there.
    #[error(
        "Go is needed to build {missing}: install Go 1.26 or later (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder that has them"
    )]
    NoGo {
        /// The programs that are missing.
        missing: String,
    },
}

/// The result of what is done here.
pub type Result<T> = std::result::Result<T, Error>;

/// Names the file in an error.
fn at<T>(path: &std::path::Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::File {
        path: path.display().to_string(),
        error,
    })
}
