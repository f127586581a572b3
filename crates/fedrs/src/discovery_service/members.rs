//! The members of the service: the endpoints of one whose kubeconfig is removed stay, as those of a member that can't be reached.

use std::path::PathBuf;

use discovery::Discovery;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::member_directory::{self, Members};

impl Members for Discovery {
    fn add(&mut self, name: &str) {
        self.add_member(name);
    }

    fn set(&mut self, name: &str, client: &Client) {
        self.set_member(name, client);
    }

    fn end(&mut self, name: &str) {
        tracing::info!(cluster = name, "its endpoints stay, and are stale");
        self.end_member(name);
    }

    fn complete(&mut self) {
        self.members_known();
    }
}

/// Keeps the members of `discovery` those in `directory`, until `cancel`.
pub(super) async fn follow(
    directory: PathBuf,
    mut discovery: Discovery,
    cancel: CancellationToken,
) {
    member_directory::follow(directory, &mut discovery, cancel).await;
    discovery.stop().await;
}
