//! Real Kubernetes control planes on loopback, as child processes: etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler, and kwok for the nodes; with fault injection. For tests, like controller-runtime's envtest.
//!
//! ```text
//! tests/control-plane/*/go.mod --Programs::build--> cache directory
//!                                                        |
//! EnvironmentSpec --Environment::start--> ControlPlane (host, members) --> DIR/host.yaml, DIR/members/NAME.yaml
//!                            |                 \--faults: kill, pause, restart, compact, lose a node, Proxy
//!                            \--> RunRegistry: which processes run for whom; the next run ends those of a crashed one
//! ```
//!
//! Each cluster has a loopback address of its own and the usual ports. The crate knows nothing of fedrs. It needs Linux,
//! for `/proc`, and because all of 127.0.0.0/8 is loopback there.

mod address;
mod cluster;
mod commands;
mod environment;
mod nodes;
mod paths;
mod pki;
mod process;
mod programs;
mod proxy;
mod request;
mod runs;
mod stages;
mod tokens;

pub use address::Subnet;
pub use cluster::{ControlPlane, ControlPlaneSpec};
pub use environment::{Environment, EnvironmentSpec, Run};
pub use nodes::NodeResources;
pub use programs::{Program, Programs};
pub use proxy::{Proxy, ProxyMode};
pub use request::request;
pub use runs::{RunRegistry, RunState};
pub use tokens::{ServiceAccount, Validity};

/// An error of a control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing a file or directory failed.
    #[error("{path}: {error}")]
    File {
        /// The file or directory.
        path: String,
        /// The cause.
        error: std::io::Error,
    },
    /// A program did not start, or exited too early.
    #[error("{program}: {message}")]
    Program {
        /// The name of the program.
        program: String,
        /// The cause, with the end of its log.
        message: String,
    },
    /// A cluster did not become ready in time.
    #[error("cluster {cluster}: {message}")]
    Cluster {
        /// The name of the cluster.
        cluster: String,
        /// The state that it did not reach.
        message: String,
    },
    /// All loopback subnets are in use.
    #[error("all loopback subnets, 127.77.0.0/24 to 127.77.249.0/24, are in use")]
    NoSubnet,
    /// A subnet has too few addresses for the members.
    #[error("too many members: a loopback subnet has addresses for {most}")]
    TooManyMembers {
        /// The most members.
        most: u8,
    },
    /// Creating a key, a certificate or a token failed.
    #[error("failed to create a certificate: {0}")]
    Certificates(#[from] rcgen::Error),
    /// A request to a cluster failed.
    #[error("request failed: {0}")]
    Request(#[from] kube::Error),
    /// A kubeconfig that this crate wrote is invalid.
    #[error("invalid kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// Some programs are missing, and there is no Go to build them.
    #[error(
        "Go is needed to build {missing}: install Go 1.26 or later (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a directory that contains them"
    )]
    NoGo {
        /// The programs that are missing.
        missing: String,
    },
}

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds the path to an error.
fn with_path<T>(path: &std::path::Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::File {
        path: path.display().to_string(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn each_error_has_a_message() {
        let file = |path: &str, error: &str| Error::File {
            path: path.to_owned(),
            error: std::io::Error::other(error),
        };
        let program = |program: &str, message: &str| Error::Program {
            program: program.to_owned(),
            message: message.to_owned(),
        };
        let errors = [
            file("/clusters/host.yaml", "permission denied"),
            program("eu/etcd", "exited: exit status: 1"),
            Error::Cluster {
                cluster: "eu".to_owned(),
                message: "timed out waiting until all nodes are ready".to_owned(),
            },
            Error::NoSubnet,
            Error::TooManyMembers { most: 98 },
            Error::Certificates(rcgen::Error::KeyGenerationUnavailable),
            Error::Request(kube::Error::LinesCodecMaxLineLengthExceeded),
            Error::Kubeconfig(kube::config::KubeconfigError::CurrentContextNotSet),
            Error::NoGo {
                missing: "etcd, kwok".to_owned(),
            },
        ];
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(texts.join("\n"), @r"
        /clusters/host.yaml: permission denied
        eu/etcd: exited: exit status: 1
        cluster eu: timed out waiting until all nodes are ready
        all loopback subnets, 127.77.0.0/24 to 127.77.249.0/24, are in use
        too many members: a loopback subnet has addresses for 98
        failed to create a certificate: There is no support for generating keys for the given algorithm
        request failed: Error finding newline character
        invalid kubeconfig: failed to determine current context
        Go is needed to build etcd, kwok: install Go 1.26 or later (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a directory that contains them
        ");
    }
}
