//! The texts that users see, other than those of a check: events of outcomes, conditions of MemberClusters, readiness. Errors
//! have their texts in their own types. The snapshot test shows each text once.

use std::{fmt::Display, time::Duration};

use cluster_informer::{UnreadNamespace, WorkloadTotals};
use controller_base::short_list::short_list;
use fedrs_api::{plural, pluralize};
use jiff::Timestamp;
use reflector::printable;

// Readiness.

pub(crate) fn crds_missing(kind: &str) -> String {
    format!("the host has no CRD of {kind}: run `fedrs crds | kubectl apply -f -`; waiting")
}

pub(crate) fn failed_to_list(kind: &str, error: &str) -> String {
    format!("failed to list {kind} of the host: {error}")
}

/// The host's permissions are those of an earlier version, or incomplete.
pub(crate) fn may_not_list(kind: &str, error: &str) -> String {
    let failed = failed_to_list(kind, error);
    format!(
        "{failed}; `fedrs rbac host` prints the permissions that this version needs: apply them"
    )
}

// Events of a FederatedReplicaSet.

pub(crate) fn deletion_pending(members: &[String], until: Timestamp) -> String {
    format!(
        "the deletion waits for {}, which may still have the local workload, and continues without them at {until:.0}",
        names(members)
    )
}

pub(crate) fn left_behind(members: &[String], deadline: Duration) -> String {
    format!(
        "the local workload may be left in {}: no answer within {deadline:?}",
        names(members)
    )
}

fn names(members: &[String]) -> String {
    short_list(members.iter().cloned(), ", ").unwrap_or_default()
}

pub(crate) fn deletion_held(finalizers: &[&str]) -> String {
    let noun = plural(finalizers.len(), "finalizer");
    format!(
        "all members are cleaned up; the deletion waits for {noun} {}",
        printable(&finalizers.join(", "))
    )
}

// Why a local ReplicaSet is not created.

pub(crate) fn other_federation(federation: &str) -> String {
    format!("a workload of this name belongs to federation {federation}")
}

pub(crate) fn controlled_by(kind: &str, name: &str) -> String {
    format!("a workload of this name is controlled by {kind} {name}")
}

pub(crate) fn other_replicas(written: u32, shown: u32) -> String {
    format!("spec.replicas is {shown} after {written} was written")
}

pub(crate) fn rejected_unchanged(kind: &str) -> String {
    format!("the write was rejected without a cause, and the {kind} has not changed")
}

pub(crate) fn namespace_not_created(namespace: &str) -> String {
    format!(
        "namespace {namespace} does not exist, and namespaces.create of the controller's configuration is false"
    )
}

pub(crate) fn namespace_labels_unknown(namespace: &str, why: &impl Display) -> String {
    format!(
        "namespace {namespace} does not exist, and cannot be created before its labels on the host are known: {why}"
    )
}

// Whether a member takes a namespace.

pub(crate) fn host_namespace_unknown(namespace: &str) -> String {
    format!("the host does not show namespace {namespace} yet")
}

pub(crate) fn invalid_namespace_selector(error: &impl Display) -> String {
    format!("spec.namespaces.selector of the MemberCluster is invalid: {error}")
}

pub(crate) const NAMESPACE_LABELS_UNREAD: &str =
    "the cluster selects namespaces by label, and the labels of the namespace could not be read";

// Conditions of a MemberCluster.

/// Namespaces that the condition Synced names.
const UNREAD_NAMES: usize = 3;

pub(crate) const NO_KUBECONFIG: &str =
    "the cluster has neither a kubeconfig file in the --members directory nor spec.secretRef";
pub(crate) const API_SERVER_ANSWERS: &str = "the API server answers";
pub(crate) const NODES_UNCONFIRMED: &str =
    "the API server answers again, and no node has renewed its Lease since";
pub(crate) const NO_READY_NODES: &str = "the API server answers, and none of the nodes is ready";
pub(crate) const NOT_PROBED: &str = "the API server has not been probed yet";
pub(crate) const NOT_WATCHED: &str = "ReplicaSets and pods are no longer watched";
pub(crate) const SYNCED: &str = "ReplicaSets and pods are watched";
pub(crate) const KIND_NOT_INSTALLED: &str =
    "LocalReplicaSets are not installed: the cluster has no CustomResourceDefinition of them";
pub(crate) const NOT_SYNCED: &str = "ReplicaSets and pods are not listed yet";
pub(crate) const DRAINED: &str = "no replica is left";

pub(crate) fn stale(since: Timestamp) -> String {
    format!("the watch is down: the view is from {since:.0}")
}

/// `why` the view is not up to date, and in which namespaces if others are.
pub(crate) fn in_namespaces(why: &str, unread: &[UnreadNamespace]) -> String {
    let Some(first) = unread.first() else {
        return why.to_owned();
    };
    let names = unread.iter().take(UNREAD_NAMES);
    let names: Vec<_> = names.map(|namespace| &*namespace.name).collect();
    let more = match unread.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = plural(unread.len(), "namespace");
    let failure = first.failure.as_ref();
    let failure = failure.map_or_else(String::new, |failure| format!(" ({failure})"));
    format!(
        "{why}, in {noun} {}{more}{failure}; sets in other namespaces are not affected",
        names.join(", ")
    )
}

pub(crate) fn controller_disconnected(message: &str) -> String {
    format!("no member cluster answers: the controller changes nothing ({message})")
}

pub(crate) fn stabilizing(until: Timestamp, losses: u32) -> String {
    let why = match losses {
        0 => "it did not answer before this controller process started".to_owned(),
        losses => format!(
            "the cluster was lost {} within an hour",
            pluralize(losses, "time")
        ),
    };
    format!("the API server answers; replicas elsewhere stay until {until:.0}, because {why}")
}

pub(crate) fn lost_at(why: &str, time: Timestamp) -> String {
    format!("{why}; if this lasts, its replicas are rescheduled at {time:.0}")
}

pub(crate) fn drain_unknown(why: &str) -> String {
    format!("the remaining replicas are unknown: {why}")
}

pub(crate) fn draining(totals: &WorkloadTotals) -> String {
    let named: Vec<String> = totals.first.iter().map(ToString::to_string).collect();
    let more = (totals.workloads as usize).saturating_sub(named.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "{} of {} left: {}{more}",
        pluralize(totals.replicas, "replica"),
        pluralize(totals.workloads, "set"),
        named.join(", ")
    )
}

// Events of a MemberCluster.

pub(crate) const MEMBER_REMOVED: &str =
    "the cluster has no kubeconfig any more: it is lost after its grace period";

pub(crate) fn insecure_kubeconfig(warning: impl Display) -> String {
    format!("the kubeconfig is insecure: {warning}")
}

pub(crate) fn token_not_renewable(place: &str) -> String {
    format!(
        "the token of {place} can't be renewed: it is not a ServiceAccount token with an issue and expiry time"
    )
}

pub(crate) fn token_renewed(place: &str, expires: Timestamp) -> String {
    format!("renewed the token of {place}; it expires at {expires:.0}")
}

pub(crate) fn token_renewal_failed(place: &str, expires: Timestamp, error: &str) -> String {
    format!("failed to renew the token of {place}, which expires at {expires:.0}: {error}")
}

#[cfg(test)]
mod tests;
