//! Whether a controller runs on the host, by its Lease.

use fedrs_api::names;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, ResourceExt, api::ListParams};

use crate::cluster_client::{ClusterClient, RequestError};

/// What the Leases of controllers in a namespace say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// One of them is held, by this process.
    Runs(String),
    /// None is held any more.
    Stopped,
    /// There is none: no controller has run there, or one without leader election.
    Unknown,
}

/// Reads the Leases in `namespace`.
pub(crate) async fn leader(host: &ClusterClient, namespace: &str) -> Result<Leader, RequestError> {
    let leases: Api<Lease> = Api::namespaced(host.client(), namespace);
    let everything = ListParams::default();
    let doing = format!("list leases in namespace {namespace}");
    match host.call(doing, leases.list(&everything)).await {
        // Who may not look can't be told.
        Err(failure) if failure.code() == Some(403) => Ok(Leader::Unknown),
        answer => Ok(of_leases(&answer?.items, Timestamp::now())),
    }
}

fn of_leases(leases: &[Lease], now: Timestamp) -> Leader {
    let ours: Vec<&Lease> = leases.iter().filter(|it| is_ours(&it.name_any())).collect();
    if ours.is_empty() {
        return Leader::Unknown;
    }
    let mut specs = ours.into_iter().filter_map(|it| it.spec.as_ref());
    let holder = specs.find_map(|it| holder(it, now));
    holder.map_or(Leader::Stopped, Leader::Runs)
}

/// Whether it is a federation's Lease.
fn is_ours(name: &str) -> bool {
    let rest = name.strip_prefix(names::CONTROLLER);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Who holds a Lease at `now`.
fn holder(lease: &LeaseSpec, now: Timestamp) -> Option<String> {
    let holder = lease.holder_identity.as_ref().filter(|it| !it.is_empty())?;
    let renewed = lease.renew_time.as_ref()?.0;
    let duration = SignedDuration::from_secs(lease.lease_duration_seconds?.into());
    let held = now.duration_since(renewed) < duration;
    held.then(|| holder.clone())
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
    #[case("fedrs-controller", "pod-1", 100, Leader::Runs("pod-1".to_owned()))]
    #[case("fedrs-controller", "pod-1", 114, Leader::Runs("pod-1".to_owned()))]
    #[case("fedrs-controller-blue", "pod-1", 114, Leader::Runs("pod-1".to_owned()))]
    #[case("fedrs-controller", "pod-1", 115, Leader::Stopped)]
    #[case("fedrs-controller", "", 100, Leader::Stopped)]
    #[case("another", "pod-1", 100, Leader::Unknown)]
    #[case("fedrs-controllers", "pod-1", 100, Leader::Unknown)]
    fn a_controller_runs_while_its_lease_is_held(
        #[case] name: &str,
        #[case] holder: &str,
        #[case] now: i64,
        #[case] expected: Leader,
    ) {
        let now = Timestamp::from_second(now).unwrap();
        assert_eq!(of_leases(&[lease(name, holder)], now), expected);
    }
}
