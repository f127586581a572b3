//! The messages of conditions (F6).

use std::fmt::{self, Display};

use fedrs_api::{ConditionReason, FieldError};
use jiff::Timestamp;

use super::{
    cluster::ClusterDetail,
    text::{Time, join, pods, replicas},
};

pub(in crate::check) const ACCEPTED: &str = "the spec and its preferences are valid";
pub(in crate::check) const INVALID: &str = "the spec or its preferences are invalid";
pub(in crate::check) const JOINING: &str = "members that were just added have not answered yet";
pub(in crate::check) const PLACED: &str = "all clusters are at their desired replicas";
pub(in crate::check) const RESCHEDULING: &str = "replicas are being scheduled to their clusters";
pub(in crate::check) const PAUSED: &str = "spec.paused is true: the members are not changed";

/// The errors of an invalid spec.
pub(in crate::check) fn invalid(errors: &[FieldError]) -> String {
    join(errors, "; ")
}

/// `2 of 6 replicas are available`.
pub(in crate::check) fn available(available: u64, desired: u64) -> String {
    format!("{available} of {} are available", replicas(desired))
}

/// Members whose local workload belongs to another owner, with their messages.
pub(in crate::check) fn name_conflicts(conflicts: &[(&str, &str)]) -> String {
    let parts = conflicts
        .iter()
        .map(|(cluster, message)| format!("{cluster}: {message}"));
    join(parts, "; ")
}

/// Other sets whose selectors overlap.
pub(in crate::check) fn selector_overlap(others: &[String]) -> String {
    format!(
        "the selector overlaps with the selectors of {}: each set could adopt the others' pods",
        others.join(", ")
    )
}

/// Clusters with replicas that can't be removed.
pub(in crate::check) fn move_blocked(surplus: &[(&str, u64)]) -> String {
    let parts = surplus
        .iter()
        .map(|(cluster, count)| format!("{} in {cluster}", replicas(*count)));
    format!(
        "cannot remove {}: replacements are not ready",
        join(parts, ", ")
    )
}

/// Clusters with scheduled pods of which none has become ready.
pub(in crate::check) fn not_becoming_ready(unready: &[(&str, u64, Timestamp)]) -> String {
    let parts = unready.iter().map(|(cluster, count, since)| {
        let since = Time(*since);
        format!(
            "{} in {cluster} not ready, without progress since {since}",
            pods(*count)
        )
    });
    join(parts, "; ")
}

/// Clusters whose local set another writer keeps changing: how often, and its field manager.
pub(in crate::check) fn contended(contentions: &[(&str, u32, Option<&str>)]) -> String {
    let parts = contentions.iter().map(|(cluster, times, manager)| {
        let manager = manager.unwrap_or("another writer");
        format!("the ReplicaSet in {cluster} was changed {times} times by {manager}, and restored each time")
    });
    join(parts, "; ")
}

/// Clusters with pods of other templates.
pub(in crate::check) fn template_outdated(outdated: &[(&str, u64)]) -> String {
    let parts = outdated
        .iter()
        .map(|(cluster, count)| format!("{count} in {cluster}"));
    format!(
        "pods were created from another template, or adopted: {}; they stay until they are deleted",
        join(parts, ", ")
    )
}

/// Replicas that are not placed, and why.
#[derive(Clone, Debug, Default)]
pub(in crate::check) struct NotPlaced<'a> {
    pub(in crate::check) unplaced: u64,
    pub(in crate::check) replicas: u64,
    /// Whether the placement selects any member.
    pub(in crate::check) has_match: bool,
    /// Members that take no replicas, because they are drained.
    pub(in crate::check) draining: Vec<&'a str>,
    /// Members that take no replicas, because they are cordoned.
    pub(in crate::check) cordoned: Vec<&'a str>,
    /// Names in the preferences that are no members, with the closest name of one.
    pub(in crate::check) unknown: Vec<(&'a str, Option<&'a str>)>,
}

impl NotPlaced<'_> {
    pub(in crate::check) fn reason(&self) -> ConditionReason {
        if self.has_match {
            ConditionReason::InsufficientCapacity
        } else {
            ConditionReason::NoMatchingCluster
        }
    }
}

impl Display for NotPlaced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replicas = replicas(self.replicas);
        write!(f, "{} of {replicas} have no cluster", self.unplaced)?;
        if self.has_match {
            f.write_str(": preferences and capacities allow no more")?;
        } else {
            f.write_str(": the placement selects no member cluster")?;
        }
        for (cause, names) in [("draining", &self.draining), ("cordoned", &self.cordoned)] {
            if !names.is_empty() {
                write!(f, "; excluded ({cause}): {}", names.join(", "))?;
            }
        }
        for (name, closest) in &self.unknown {
            write!(f, "; no member cluster is named {name:?}")?;
            if let Some(closest) = closest {
                write!(f, "; did you mean {closest:?}?")?;
            }
        }
        Ok(())
    }
}

/// What the controller waits for (condition Reconciling).
#[derive(Clone, Copy, Debug)]
pub(in crate::check) enum Waiting<'a> {
    /// A cluster in this state.
    Cluster(&'a str, ClusterDetail<'a>),
    /// The next write of a cluster, which earlier ones hold back.
    NextWrite(&'a str, Timestamp),
    /// A cluster that rejects the local workload.
    Rejection(&'a str),
    /// Replicas that are not available.
    Availability(&'a str, u64),
    /// Replicas that have to leave a cluster.
    Replacements(&'a str, u64),
    /// Capacity for replicas.
    Capacity(u64),
}

impl Display for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cluster(cluster, detail) => write!(f, "{cluster}: {detail}"),
            Self::NextWrite(cluster, time) => write!(f, "{cluster}: next write at {}", Time(time)),
            Self::Rejection(cluster) => write!(f, "{cluster}: rejects the ReplicaSet"),
            Self::Availability(cluster, count) => {
                let count = replicas(count);
                write!(f, "{cluster}: waiting for {count} to become available")
            }
            Self::Replacements(cluster, count) => {
                let count = replicas(count);
                write!(f, "{cluster}: waiting for replacements of {count}")
            }
            Self::Capacity(count) => write!(f, "waiting for capacity for {}", replicas(count)),
        }
    }
}

/// All that the controller waits for.
pub(in crate::check) fn waiting(parts: &[Waiting<'_>]) -> String {
    join(parts, "; ")
}
