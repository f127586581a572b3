//! Checks the writes of the controller when they take effect, against what the API server has and had.
//!
//! ```text
//! changes of the cluster, in order --> Observed: pods, nodes, sets over time
//! a write of the controller, or an eviction that was granted --> checks --> Violation?
//! ```
//!
//! Nothing that the controller decides is believed, but for one thing: the record in the status of a set says which updates and
//! evictions have begun, and when. So it is checked when it is stored, and everything else is checked against it.

mod begin;
mod lag;
mod migrations;
mod observed;
mod ownership;
mod pod;
mod pod_change;
mod pods;
mod set;

pub(super) use observed::Observed;
pub(super) use pods::of_eviction;
pub(super) use set::{limit, record};

use crate::checks::Violation;
use sim_cluster::Change;

/// What is wrong with a change that the controller made. `observed` does not know it yet.
pub(super) fn of_write(observed: &Observed, change: &Change) -> Vec<Violation> {
    let found = match &*change.kind.plural {
        "pods" => {
            let proof = migrations::of_pod(observed, change);
            proof.or_else(|| pods::of_pod(observed, change))
        }
        "migrationrequests" => migrations::of_request(observed, change),
        "localreplicasets" => begin::of_status(observed, change),
        _ => None,
    };
    ownership::of_write(observed, change)
        .into_iter()
        .chain(found)
        .collect()
}
