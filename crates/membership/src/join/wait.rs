//! Waits until the controller uses a member.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{error::JoinError, readiness::Readiness};
use crate::{
    cluster_client::ClusterClient,
    controller_lease::{ControllerState, controller_state},
    member_cluster,
    membership::Membership,
    progress::{Progress, Reporter, Warning},
};

/// How often the MemberCluster is polled.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// Waits until the member is ready, and reports what it waits for.
pub(super) async fn until_ready(
    host: &ClusterClient,
    membership: &Membership,
    timeout: Duration,
    reporter: &mut dyn Reporter,
) -> Result<(), JoinError> {
    let Membership {
        name, namespace, ..
    } = membership;
    let deadline = Instant::now() + timeout;
    let mut reported = None;
    loop {
        let readiness = Readiness::of(&member_cluster::get(host, name).await?);
        if let Readiness::Ready(member) = readiness {
            if controller_state(host, namespace).await? == ControllerState::Stopped {
                reporter.warn(Warning::ControllerStopped);
            }
            reporter.progress(Progress::MemberReady(member));
            return Ok(());
        }
        if reported.as_ref() != Some(&readiness) {
            reporter.progress(Progress::WaitingForMember(readiness.clone()));
            reported = Some(readiness.clone());
        }
        if Instant::now() >= deadline {
            let controller = controller_state(host, namespace).await?;
            return Err(JoinError::NotReady {
                name: name.clone(),
                timeout,
                hint: readiness.hint(name, namespace, &controller),
                readiness: Box::new(readiness),
            });
        }
        sleep(POLL_PERIOD).await;
    }
}
