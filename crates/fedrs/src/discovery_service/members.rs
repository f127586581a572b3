//! The members of the service: the endpoints of one whose kubeconfig is removed stay, as those of a member that can't be reached.

use discovery::Discovery;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::member_source::{self, MemberSource, Members};

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

/// Keeps the members of `discovery` those of `source`, until `cancel`.
pub(super) async fn follow(
    source: MemberSource,
    mut discovery: Discovery,
    cancel: CancellationToken,
) {
    member_source::follow(source, &mut discovery, cancel).await;
    discovery.stop().await;
}
