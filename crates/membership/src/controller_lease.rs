//! Whether a controller runs on the host, according to its Lease.

use fedrs_api::names;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, ResourceExt, api::ListParams};

use crate::cluster_client::{ClusterClient, RequestError};

/// The state of the controllers in a namespace, according to their Leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerState {
    /// This process holds a Lease.
    Running(String),
    /// No process holds the Lease.
    Stopped,
    /// There is no Lease, or the user may not list Leases: no controller has run yet, or it runs without leader election.
    Unknown,
}

/// Reads the Leases in `namespace`.
pub(crate) async fn controller_state(
    host: &ClusterClient,
    namespace: &str,
) -> Result<ControllerState, RequestError> {
    let leases: Api<Lease> = Api::namespaced(host.client(), namespace);
    let all = ListParams::default();
    let operation = format!("list leases in namespace {namespace}");
    match host.call(operation, leases.list(&all)).await {
        Err(error) if error.code() == Some(403) => Ok(ControllerState::Unknown),
        leases => Ok(state_at(&leases?.items, Timestamp::now())),
    }
}

fn state_at(leases: &[Lease], now: Timestamp) -> ControllerState {
    let mut leases = leases
        .iter()
        .filter(|lease| is_controller_name(&lease.name_any()))
        .peekable();
    if leases.peek().is_none() {
        return ControllerState::Unknown;
    }
    let mut specs = leases.filter_map(|lease| lease.spec.as_ref());
    let holder = specs.find_map(|spec| holder(spec, now));
    holder.map_or(ControllerState::Stopped, ControllerState::Running)
}

/// Whether it is the name of a federation's Lease.
fn is_controller_name(name: &str) -> bool {
    let federation = name.strip_prefix(names::CONTROLLER);
    federation.is_some_and(|federation| federation.is_empty() || federation.starts_with('-'))
}

/// The process that holds a Lease at `now`.
fn holder(lease: &LeaseSpec, now: Timestamp) -> Option<String> {
    let holder = lease.holder_identity.as_ref();
    let holder = holder.filter(|holder| !holder.is_empty())?;
    let renewed = lease.renew_time.as_ref()?.0;
    let duration = SignedDuration::from_secs(lease.lease_duration_seconds?.into());
    let is_held = now.duration_since(renewed) < duration;
    is_held.then(|| holder.clone())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
    use rstest::rstest;

    use super::*;

    fn lease(name: &str, holder: &str) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                renew_time: Some(MicroTime(Timestamp::from_second(100).unwrap())),
                lease_duration_seconds: Some(15),
                ..LeaseSpec::default()
            }),
        }
    }

    #[rstest]
    #[case("fedrs-controller", "pod-1", 100, ControllerState::Running("pod-1".to_owned()))]
    #[case("fedrs-controller", "pod-1", 114, ControllerState::Running("pod-1".to_owned()))]
    #[case("fedrs-controller-blue", "pod-1", 114, ControllerState::Running("pod-1".to_owned()))]
    #[case("fedrs-controller", "pod-1", 115, ControllerState::Stopped)]
    #[case("fedrs-controller", "", 100, ControllerState::Stopped)]
    #[case("another", "pod-1", 100, ControllerState::Unknown)]
    #[case("fedrs-controllers", "pod-1", 100, ControllerState::Unknown)]
    fn a_controller_runs_while_its_lease_is_held(
        #[case] name: &str,
        #[case] holder: &str,
        #[case] now: i64,
        #[case] expected: ControllerState,
    ) {
        let now = Timestamp::from_second(now).unwrap();
        assert_eq!(state_at(&[lease(name, holder)], now), expected);
    }
}
