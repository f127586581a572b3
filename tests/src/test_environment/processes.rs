//! Faults of the processes of real control planes ([`Capability::ClusterProcesses`](super::Capability)).

use control_plane::{ControlPlane, Program};
use tokio::sync::MappedMutexGuard;

use super::TestEnvironment;
use crate::ReadyWatcher;

/// A member, locked.
type Locked<'a> = MappedMutexGuard<'a, ControlPlane>;

impl TestEnvironment {
    /// Watches from now on how many replicas of each set run, in members that may lose their power.
    pub async fn watch_all(&self) -> ReadyWatcher {
        ReadyWatcher::of_clients(&self.members, &self.namespace, None).await
    }

    /// Cuts the power of a member: all its processes end, and its pods with them.
    pub async fn lose_power(&self, member: &str, watcher: &ReadyWatcher) {
        watcher.set_dead(member, true);
        self.cluster(member).await.end();
    }

    /// Starts only the store and the API server of a member without power: its nodes stay dead.
    pub async fn start_api_server(&self, member: &str) {
        let parts = [Program::Etcd, Program::ApiServer];
        let started = self.cluster(member).await.start_again(&parts).await;
        started.expect("the API server starts again");
    }

    /// Starts all processes of a member that do not run.
    pub async fn restore_power(&self, member: &str, watcher: &ReadyWatcher) {
        let started = self.cluster(member).await.repair().await;
        started.expect("the member starts again");
        watcher.set_dead(member, false);
    }

    /// Kills a component of a member.
    pub async fn kill_component(&self, member: &str, component: Program) {
        self.cluster(member).await.kill(component);
    }

    /// Starts a component of a member that was killed.
    pub async fn start_component(&self, member: &str, component: Program) {
        let started = self.cluster(member).await.start_again(&[component]).await;
        started.expect("the component starts again");
    }

    /// Compacts the history of the host and restarts its API server.
    pub async fn compact_host(&self) {
        let mut control_planes = self.real().shared.control_planes().await;
        let compacted = control_planes.host.compact().await;
        compacted.expect("the API server restarts");
    }

    /// Backs up a member's data, for [`restore_member`](Self::restore_member).
    pub async fn back_up_member(&self, member: &str) {
        let copied = self.cluster(member).await.back_up();
        copied.expect("the data can be copied");
    }

    /// Restores a member from its backup.
    pub async fn restore_member(&self, member: &str) {
        let restored = self.cluster(member).await.restore().await;
        restored.expect("the member starts again");
    }

    /// Backs up the host's data, for [`restore_host`](Self::restore_host).
    pub async fn back_up_host(&self) {
        let control_planes = self.real().shared.control_planes().await;
        let copied = control_planes.host.back_up();
        copied.expect("the data can be copied");
    }

    /// Restores the host from its backup.
    pub async fn restore_host(&self) {
        let mut control_planes = self.real().shared.control_planes().await;
        let restored = control_planes.host.restore().await;
        restored.expect("the host starts again");
    }

    async fn cluster(&self, member: &str) -> Locked<'_> {
        let control_planes = self.real().shared.control_planes().await;
        MappedMutexGuard::map(control_planes, |control_planes| {
            control_planes.member(member).expect("it is a member")
        })
    }
}
