//! Several controllers, told apart ([`Need::Process`](super::Need), [`Need::Audit`](super::Need)).

use std::time::Duration;

use fedrs_api::names;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Clusters, Stage, audit, real::Real, rights::USERS};

impl Stage {
    pub(super) fn real(&self) -> &Real {
        match &self.clusters {
            Clusters::Real(it) => it,
            Clusters::Embedded(_) => panic!("the kind offers it"),
        }
    }

    fn real_mut(&mut self) -> &mut Real {
        match &mut self.clusters {
            Clusters::Real(it) => it,
            Clusters::Embedded(_) => panic!("the kind offers it"),
        }
    }

    /// Starts one more controller, which stands by. Returns its number: the first one has 0.
    pub async fn start_rival(&mut self) -> usize {
        let real = self.real_mut();
        real.add_controller().await;
        let number = real.controllers.len() - 1;
        real.controllers[number].start();
        number
    }

    /// Controller `number` stops where it is, as on a machine that hangs, or goes on.
    pub fn freeze(&mut self, number: usize, is_frozen: bool) {
        let real = self.real();
        let program = real.controllers[number].program.as_ref();
        program.expect("it runs").freeze(is_frozen);
    }

    /// Controller `number` ends without a word.
    pub fn kill(&mut self, number: usize) {
        let real = self.real_mut();
        real.controllers[number].program = None;
    }

    /// The last lines of what controller `number` said.
    pub fn controller_log(&self, number: usize) -> String {
        let real = self.real();
        real.controllers[number].log()
    }

    /// Who leads by the Lease: the holder's identity.
    pub async fn leader(&self) -> Option<String> {
        let lease = self
            .on_host("GET", &lease_path(), &Value::Null)
            .await
            .ok()?;
        let holder = lease.pointer("/spec/holderIdentity")?.as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// How long it takes until another than `before` leads.
    pub async fn takeover(&self, before: &str) -> Duration {
        let began = Instant::now();
        let deadline = began + Duration::from_secs(60);
        loop {
            if self.leader().await.is_some_and(|it| it != before) {
                return began.elapsed();
            }
            assert!(Instant::now() < deadline, "nobody took over");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What controller `number` asked of the host and all members since `since`, in the order of time.
    pub async fn asked(&self, number: usize, since: Timestamp) -> Vec<audit::Asked> {
        let real = self.real();
        let credentials = real.controllers[number].credentials();
        let fleet = real.shared.fleet().await;
        let clusters = std::iter::once(&fleet.host).chain(&fleet.members);
        let mut asked: Vec<_> = clusters
            .flat_map(|it| audit::read(it.folder(), USERS).expect("a log can be read"))
            .filter(|it| it.at >= since && credentials.contains(&it.credential))
            .collect();
        asked.sort_by_key(|it| it.at);
        asked
    }
}

/// The Lease of the federation without a name.
pub(super) fn lease_path() -> String {
    format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}",
        names::SYSTEM_NAMESPACE,
        names::CONTROLLER
    )
}
