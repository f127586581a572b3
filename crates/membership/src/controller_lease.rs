//! Whether a controller runs on the host: it does if its Lease is renewed while this process watches. The times in a Lease
//! come from the clock of the process that wrote it, and are not compared with this one's.

use std::time::Duration;

use fedrs_api::names;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, ResourceExt, api::ListParams};
use tokio::time::{Instant, sleep};

use crate::cluster_client::{ClusterClient, RequestError};

/// How often the Leases are read.
const POLL_PERIOD: Duration = Duration::from_secs(1);
/// The longest time for which a Lease is watched: its holder renews it several times within its duration.
const MAX_WATCH: Duration = Duration::from_secs(60);

/// The state of the controllers in a namespace, according to their Leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerState {
    /// This process renews a Lease.
    Running(String),
    /// No process holds the Lease, or its holder does not renew it.
    Stopped,
    /// There is no Lease, or the user may not list Leases: no controller has run yet, or it runs without leader election.
    Unknown,
}

/// The Leases in a namespace, as they were when the watch began.
pub(crate) struct LeaseWatch<'a> {
    host: &'a ClusterClient,
    namespace: &'a str,
    first: Vec<Lease>,
    began: Instant,
}

impl<'a> LeaseWatch<'a> {
    /// Begins to watch.
    pub(crate) async fn begin(
        host: &'a ClusterClient,
        namespace: &'a str,
    ) -> Result<Self, RequestError> {
        Ok(Self {
            host,
            namespace,
            first: leases(host, namespace).await?,
            began: Instant::now(),
        })
    }

    /// The process that held a Lease when the watch began.
    pub(crate) fn holder(&self) -> Option<&str> {
        let mut specs = self.first.iter().filter_map(|lease| lease.spec.as_ref());
        specs.find_map(holder)
    }

    /// Waits until it is known whether a controller runs: it renews its Lease, or has not done so for as long as it is valid.
    pub(crate) async fn state(&self) -> Result<ControllerState, RequestError> {
        loop {
            let latest = leases(self.host, self.namespace).await?;
            if let Some(state) = state_after(&self.first, &latest, self.began.elapsed()) {
                return Ok(state);
            }
            sleep(POLL_PERIOD).await;
        }
    }
}

/// The Leases of controllers in `namespace`; none if the user may not list them.
async fn leases(host: &ClusterClient, namespace: &str) -> Result<Vec<Lease>, RequestError> {
    let leases: Api<Lease> = Api::namespaced(host.client(), namespace);
    let all = ListParams::default();
    let operation = format!("list leases in namespace {namespace}");
    let mut leases = match host.call(operation, leases.list(&all)).await {
        Err(error) if error.code() == Some(403) => Vec::new(),
        leases => leases?.items,
    };
    leases.retain(|lease| is_controller_name(&lease.name_any()));
    Ok(leases)
}

/// The state that follows from Leases that were `first` and are `latest` after they were `watched` for so long; `None` if
/// that is not long enough.
fn state_after(first: &[Lease], latest: &[Lease], watched: Duration) -> Option<ControllerState> {
    if latest.is_empty() {
        return Some(ControllerState::Unknown);
    }
    let mut may_be_held = false;
    for lease in latest {
        let Some(spec) = &lease.spec else { continue };
        let Some(holder) = holder(spec) else { continue };
        let mut before = first.iter();
        let before = before.find(|before| before.metadata.name == lease.metadata.name);
        if before.is_none_or(|before| before.spec != lease.spec) {
            return Some(ControllerState::Running(holder.to_owned()));
        }
        let seconds = spec.lease_duration_seconds.unwrap_or(0);
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        may_be_held |= watched < duration.min(MAX_WATCH);
    }
    (!may_be_held).then_some(ControllerState::Stopped)
}

/// Whether it is the name of a federation's Lease.
fn is_controller_name(name: &str) -> bool {
    let federation = name.strip_prefix(names::CONTROLLER);
    federation.is_some_and(|federation| federation.is_empty() || federation.starts_with('-'))
}

fn holder(lease: &LeaseSpec) -> Option<&str> {
    let holder = lease.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
    use rstest::rstest;

    use super::*;

    /// A Lease for 15 s.
    fn lease(name: &str, holder: &str, renewed: i64) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
                lease_duration_seconds: Some(15),
                ..LeaseSpec::default()
            }),
        }
    }

    fn running(holder: &str) -> ControllerState {
        ControllerState::Running(holder.to_owned())
    }

    #[rstest]
    #[case("not renewed yet", "pod-1", 100, 14, None)]
    #[case("renewed", "pod-1", 102, 2, Some(running("pod-1")))]
    #[case(
        "renewed by a clock that was set back",
        "pod-1",
        40,
        2,
        Some(running("pod-1"))
    )]
    #[case("taken over", "pod-2", 115, 14, Some(running("pod-2")))]
    #[case(
        "not renewed for its duration",
        "pod-1",
        100,
        15,
        Some(ControllerState::Stopped)
    )]
    #[case("released", "", 100, 0, Some(ControllerState::Stopped))]
    fn a_controller_runs_while_it_renews_its_lease(
        #[case] what: &str,
        #[case] holder: &str,
        #[case] renewed: i64,
        #[case] watched: u64,
        #[case] expected: Option<ControllerState>,
    ) {
        let first = [lease("fedrs-controller", "pod-1", 100)];
        let latest = [lease("fedrs-controller", holder, renewed)];
        let state = state_after(&first, &latest, Duration::from_secs(watched));
        assert_eq!(state, expected, "{what}");
    }

    #[test]
    fn the_lease_of_another_federation_that_appears_is_a_running_controller() {
        let first = [lease("fedrs-controller", "", 100)];
        let latest = [
            first[0].clone(),
            lease("fedrs-controller-blue", "pod-1", 100),
        ];
        assert_eq!(
            state_after(&first, &latest, Duration::ZERO),
            Some(running("pod-1"))
        );
        let unknown = Some(ControllerState::Unknown);
        assert_eq!(state_after(&first, &[], Duration::ZERO), unknown);
    }

    #[rstest]
    #[case("fedrs-controller", true)]
    #[case("fedrs-controller-blue", true)]
    #[case("fedrs-controllers", false)]
    #[case("another", false)]
    fn leases_of_federations_are_known_by_their_names(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_controller_name(name), expected);
    }
}
