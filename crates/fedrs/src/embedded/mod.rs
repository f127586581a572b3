//! Embedded clusters for `fedrs demo` and `fedrs sim`: a host and its members in this process, which clients reach with
//! the kubeconfigs in a directory.

mod clusters;
mod directory;

pub(crate) use self::{
    clusters::{EmbeddedClusters, MemberSize},
    directory::KubeconfigDirectory,
};

/// The names of the first member clusters.
pub(crate) const MEMBER_NAMES: [&str; 3] = ["eu-west", "us-east", "ap-south"];
/// How long the clusters may take to stop. They persist nothing, so the process exits after that in any case.
pub(crate) const STOP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);
