//! Whether a controller runs, by its Lease.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, ResourceExt, api::ListParams};

use crate::remote::{Failure, Remote};

/// Leases of controllers have this name, or it and the federation's.
const LEASE: &str = "fedrs-controller";

/// Who holds a Lease of a controller in `namespace`, if anybody does.
pub(super) async fn leader(host: &Remote, namespace: &str) -> Result<Option<String>, Failure> {
    let leases: Api<Lease> = Api::namespaced(host.client(), namespace);
    let everything = ListParams::default();
    let doing = format!("list leases in namespace {namespace}");
    let list = host.call(doing, leases.list(&everything)).await?;
    let mut ours = list.items.iter().filter(|it| {
        let rest = it.name_any();
        rest.strip_prefix(LEASE)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let now = Timestamp::now();
    Ok(ours.find_map(|it| holder(it.spec.as_ref()?, now)))
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
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("pod-1", 100, true)]
    #[case("pod-1", 114, true)]
    #[case("pod-1", 115, false)]
    #[case("", 100, false)]
    fn a_lease_is_held_until_it_expires(#[case] who: &str, #[case] now: i64, #[case] held: bool) {
        let lease = LeaseSpec {
            holder_identity: Some(who.to_owned()),
            renew_time: Some(MicroTime(Timestamp::from_second(100).unwrap())),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        };
        let now = Timestamp::from_second(now).unwrap();
        assert_eq!(holder(&lease, now).is_some(), held);
    }
}
