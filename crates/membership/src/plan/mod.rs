//! Plan: what the controller would do with the replicas of federated sets. Reads the host, and changes nothing.
//!
//! ```text
//! federated sets, MemberClusters --> federation_controller::forecast --> SetPlan for each set --> Plan
//! ```

mod read;
mod request;
mod rollout_plan;
mod set_plan;
mod summary;
mod warnings;

use federation_controller::forecast::{End, forecast};
use jiff::Timestamp;
use serde::Serialize;

use self::read::{PlannedSet, Read};
pub use self::{
    read::SkippedSet,
    request::{PlanRequest, Sets},
    rollout_plan::{LoanPlan, RolloutClusterPlan, RolloutPlan, SpeedPlan, StepPlan, plan_rollout},
    set_plan::{ClusterPlan, Move, SetPlan},
    summary::Summary,
};
use crate::{Error, cluster_client::ClusterClient};

/// What the controller would do with sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The sums over all sets.
    pub summary: Summary,
    /// The sets, by namespace, name and kind.
    pub sets: Vec<SetPlan>,
    /// Sets that the controller leaves as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedSet>,
    /// What the user should know about the members.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Plans as `request` says, at `now`. Reads sets and MemberClusters, and where members select namespaces by
/// labels, those of the namespaces if the user may.
pub async fn plan(
    host: &ClusterClient,
    request: &PlanRequest,
    now: Timestamp,
) -> Result<Plan, Error> {
    let read = Read::of_host(host, request).await?;
    let mut warnings = warnings::of_members(&read.members, &request.what_if);
    let mut is_disconnected = false;
    let plan_of = |set: &PlannedSet| {
        let question = read.question(set, request, now);
        let forecast = forecast(&question);
        is_disconnected |= forecast.end == End::Disconnected;
        SetPlan::new(&question, &forecast, set.observed)
    };
    let sets: Vec<_> = read.planned.iter().map(plan_of).collect();
    warnings.extend(is_disconnected.then(warnings::disconnected));
    Ok(Plan {
        summary: Summary::of(&sets),
        sets,
        skipped: read.skipped,
        warnings,
    })
}
