//! What the controller would do with one set. Pure.

use std::{collections::BTreeMap, fmt};

use federation_controller::forecast::{Forecast, Question};
use fedrs_api::{
    ClusterReason, ClusterState, ClusterStatus, ConditionType, ObjectKey, SetKind, conditions,
    pluralize,
};
use serde::Serialize;

use super::warnings;

/// What the controller would do with one set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetPlan {
    /// The kind of the set.
    pub kind: SetKind,
    /// The namespace of the set.
    pub namespace: String,
    /// The name of the set.
    pub name: String,
    /// `spec.replicas`, as planned.
    pub replicas: u32,
    /// Replicas that move from one cluster to another.
    pub moved_replicas: u64,
    /// Replicas that no cluster could run.
    pub unplaced_replicas: i32,
    /// Why no cluster could run them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced_message: Option<String>,
    /// How many times replicas start before the next ones can, or before others are removed.
    pub steps: u32,
    /// The most replicas above `replicas` while they move.
    pub max_surge: u64,
    /// What would change, cluster by cluster.
    pub moves: Vec<Move>,
    /// The clusters, by name.
    pub clusters: Vec<ClusterPlan>,
    /// What the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Replicas that change their cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The cluster that they leave; none if they are new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The cluster that gets them; none if they are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How many.
    pub replicas: u32,
}

/// One cluster of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPlan {
    /// Its name.
    pub name: String,
    /// Desired replicas now.
    pub desired_replicas: i32,
    /// Desired replicas as planned.
    pub planned_replicas: i32,
    /// Replicas that the cluster can run, if it has shown a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i32>,
    /// Whether the controller would place replicas in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ClusterState>,
    /// The most significant reason for its replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ClusterReason>,
    /// Why it would have them, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl SetPlan {
    /// What `forecast` says about `question`.
    pub(super) fn new(question: &Question<'_>, forecast: &Forecast, observed: bool) -> Self {
        let clusters = clusters(&question.status.clusters, &forecast.status.clusters);
        let moves = moves(&clusters);
        let is_move = |step: &&Move| step.from.is_some() && step.to.is_some();
        let moved = moves.iter().filter(is_move);
        let moved = moved.map(|step| u64::from(step.replicas)).sum();
        let placed = conditions::find(&forecast.status.conditions, ConditionType::Placed);
        let unplaced = forecast.status.unplaced_replicas;
        let key = &question.frs.key;
        Self {
            kind: key.kind,
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            replicas: question.frs.replicas,
            moved_replicas: moved,
            unplaced_replicas: unplaced,
            unplaced_message: placed
                .filter(|_| unplaced > 0)
                .map(|placed| placed.message.clone()),
            steps: forecast.steps,
            max_surge: forecast.surge,
            warnings: warnings::of_set(question, forecast, observed),
            moves,
            clusters,
        }
    }

    /// The key of the set.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of_kind(self.kind, &*self.namespace, &*self.name)
    }

    /// Whether any cluster would have other replicas than now.
    #[must_use]
    pub fn changes(&self) -> bool {
        !self.moves.is_empty()
    }
}

impl ClusterPlan {
    /// Whether it would get more replicas and has shown no limit.
    #[must_use]
    pub fn grows_without_limit(&self) -> bool {
        self.planned_replicas > self.desired_replicas && self.capacity.is_none()
    }
}

/// The clusters of both statuses, by name.
fn clusters(now: &[ClusterStatus], planned: &[ClusterStatus]) -> Vec<ClusterPlan> {
    let mut all: BTreeMap<&str, (Option<&ClusterStatus>, Option<&ClusterStatus>)> = BTreeMap::new();
    for cluster in now {
        all.entry(&cluster.name).or_default().0 = Some(cluster);
    }
    for cluster in planned {
        all.entry(&cluster.name).or_default().1 = Some(cluster);
    }
    let plan =
        |(name, (now, planned)): (&str, (Option<&ClusterStatus>, Option<&ClusterStatus>))| {
            let desired = |cluster: &ClusterStatus| cluster.desired_replicas;
            ClusterPlan {
                name: name.to_owned(),
                desired_replicas: now.map_or(0, desired),
                planned_replicas: planned.map_or(0, desired),
                capacity: planned.and_then(|cluster| cluster.capacity),
                state: planned.and_then(|cluster| cluster.state),
                reason: planned.and_then(|cluster| cluster.reason),
                message: planned.map_or_else(
                    || "no longer a member".to_owned(),
                    |cluster| cluster.message.clone(),
                ),
            }
        };
    all.into_iter().map(plan).collect()
}

/// Pairs the clusters that lose replicas with those that get some, both by name.
fn moves(clusters: &[ClusterPlan]) -> Vec<Move> {
    let change = |cluster: &ClusterPlan| {
        i64::from(cluster.planned_replicas) - i64::from(cluster.desired_replicas)
    };
    let side = |sign: i64| {
        let changed = clusters
            .iter()
            .filter(move |cluster| change(cluster) * sign > 0);
        changed.map(move |cluster| (cluster, change(cluster).unsigned_abs()))
    };
    let (mut losing, mut gaining) = (side(-1), side(1));
    let (mut from, mut to) = (losing.next(), gaining.next());
    let mut moves = Vec::new();
    while from.is_some() || to.is_some() {
        let count = |end: Option<(&ClusterPlan, u64)>| end.map_or(u64::MAX, |(_, count)| count);
        let name = |end: Option<(&ClusterPlan, u64)>| end.map(|(cluster, _)| cluster.name.clone());
        let replicas = count(from).min(count(to));
        moves.push(Move {
            from: name(from),
            to: name(to),
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
        });
        let rest = |end: Option<(_, u64)>| {
            let (cluster, count) = end?;
            (count > replicas).then(|| (cluster, count - replicas))
        };
        (from, to) = (
            rest(from).or_else(|| losing.next()),
            rest(to).or_else(|| gaining.next()),
        );
    }
    moves
}

/// The plan in one line: `shop/web: 30 replicas, of which 10 move in 2 steps and 3 are unplaced`.
impl fmt::Display for SetPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replicas = pluralize(self.replicas, "replica");
        write!(f, "{}: {replicas} desired", self.key())?;
        if !self.changes() {
            f.write_str(", nothing changes")?;
        }
        if self.moved_replicas > 0 {
            let verb = if self.moved_replicas == 1 {
                "moves"
            } else {
                "move"
            };
            write!(f, ", {} {verb}", self.moved_replicas)?;
        }
        let total = |side: fn(&Move) -> bool| -> u64 {
            let moves = self.moves.iter().filter(|step| side(step));
            moves.map(|step| u64::from(step.replicas)).sum()
        };
        let (added, removed) = (
            total(|step| step.from.is_none()),
            total(|step| step.to.is_none()),
        );
        for (count, what) in [(added, "added"), (removed, "removed")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.unplaced_replicas > 0 {
            write!(f, ", {} unplaced", self.unplaced_replicas)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_leave_and_enter_clusters_in_order() {
        let clusters = |numbers: &[(&str, i32, i32)]| -> Vec<ClusterPlan> {
            let cluster = |(name, now, planned): &(&str, i32, i32)| ClusterPlan {
                name: (*name).to_owned(),
                desired_replicas: *now,
                planned_replicas: *planned,
                capacity: None,
                state: None,
                reason: None,
                message: String::new(),
            };
            numbers.iter().map(cluster).collect()
        };
        let text = |numbers: &[(&str, i32, i32)]| -> Vec<String> {
            let moves = moves(&clusters(numbers)).into_iter();
            let end = |name: Option<String>| name.unwrap_or_default();
            let moves =
                moves.map(|step| format!("{}>{} {}", end(step.from), end(step.to), step.replicas));
            moves.collect()
        };
        assert_eq!(text(&[("a", 3, 3), ("b", 0, 0)]), Vec::<String>::new());
        assert_eq!(
            text(&[("a", 9, 0), ("b", 3, 8), ("c", 0, 4)]),
            ["a>b 5", "a>c 4"]
        );
        assert_eq!(
            text(&[("a", 1, 2), ("b", 5, 1), ("c", 2, 0)]),
            ["b>a 1", "b> 3", "c> 2"]
        );
        assert_eq!(text(&[("a", 0, 2), ("b", 1, 3)]), [">a 2", ">b 2"]);
        assert_eq!(text(&[("a", 0, i32::MAX), ("b", -1, i32::MAX)]).len(), 2);
    }
}
