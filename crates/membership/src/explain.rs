//! Explain: how many replicas of a set each cluster has, and why; of a FederatedDeployment also how far its rollout is.
//!
//! The status lists the clusters with replicas. Why each of the other members has none follows from the placement and the
//! MemberClusters.

use std::{collections::BTreeMap, fmt};

use federated_scheduler::{Cluster, Preference, Request, plan};
use federation_controller::preferences::Preferences;
use fedrs_api::{
    ClusterInternalState, ClusterStatus, FederatedReplicaSetStatus, MemberCluster,
    MemberConditionType, NamespaceScope, ObjectKey, RolloutStatus, SetKind, conditions, names,
    pluralize, selector,
};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::Time};
use kube::{Api, ResourceExt};
use serde::Serialize;

use crate::{
    Error, FederatedSet, SetRef, cluster_client::ClusterClient, federated_set,
    member_cluster::selects_namespaces,
};

/// Where the replicas of a set run, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The kind of the set.
    pub kind: SetKind,
    /// The namespace of the set.
    pub namespace: String,
    /// The name of the set.
    pub name: String,
    /// `spec.replicas`.
    pub desired_replicas: i32,
    /// How current the status is.
    pub observation: Observation,
    /// Since when the set is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// How far the rollout of a FederatedDeployment is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutUse>,
    /// The status, with an entry for each member, without the controller's internal state.
    #[serde(flatten)]
    pub status: FederatedReplicaSetStatus,
}

/// How far a rollout is, and what of its budget is in use: the status without what is lent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutUse {
    /// The step that is updated or waited for; none for the implied last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The revision of the spec that has failed, and is undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_revision: Option<String>,
    /// Pods that may be unavailable.
    pub max_unavailable: i32,
    /// Of these: in use.
    pub unavailable: i32,
    /// Pods that may exist beyond the desired replicas.
    pub max_surge: i32,
    /// Of these: in use.
    pub surge: i32,
}

impl From<RolloutStatus> for RolloutUse {
    fn from(status: RolloutStatus) -> Self {
        Self {
            step: status.step,
            failed_revision: status.failed_revision,
            max_unavailable: status.max_unavailable,
            unavailable: status.unavailable,
            max_surge: status.max_surge,
            surge: status.surge,
        }
    }
}

/// How current the status of a set is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Observation {
    /// No controller has written a status yet.
    Missing,
    /// The status is that of an older spec.
    Outdated,
    /// The status is that of the current spec.
    Current,
}

/// Explains the set that the user names.
pub async fn explain(host: &ClusterClient, set: &SetRef) -> Result<Explanation, Error> {
    let namespace = &set.namespace;
    let set = federated_set::find(host, set).await?.read()?;
    let members = match host.list::<MemberCluster>("").await {
        // A user who may not list members still sees the status.
        Err(error) if error.code() == Some(403) => Vec::new(),
        members => members?,
    };
    let labels = if members.iter().any(selects_namespaces) {
        let namespaces: Api<Namespace> = Api::all(host.client());
        let operation = format!("get namespace {namespace}");
        let found = host.call(operation, namespaces.get_opt(namespace)).await;
        found.ok().flatten().map(|found| found.labels().clone())
    } else {
        None
    };
    Ok(Explanation::of(set, &members, labels.as_ref()))
}

impl Explanation {
    /// Explains `set` with the MemberClusters of its host, and the labels of its namespace if they are known.
    #[must_use]
    pub fn of(
        set: FederatedSet,
        members: &[MemberCluster],
        labels: Option<&BTreeMap<String, String>>,
    ) -> Self {
        let others = without_entry(&set, members, labels);
        let mut status = set.status;
        let observation = match status.observed_generation {
            // The default of the CRD, before the first status.
            None | Some(-1) => Observation::Missing,
            observed if observed < set.metadata.generation => Observation::Outdated,
            Some(_) => Observation::Current,
        };
        status.observed_preferences_hash = None;
        for cluster in &mut status.clusters {
            cluster.internal = ClusterInternalState::default();
        }
        status.clusters.extend(others);
        status.clusters.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            kind: set.kind,
            rollout: status.rollout.take().map(|rollout| (*rollout).into()),
            namespace: set.metadata.namespace.unwrap_or_default(),
            name: set.metadata.name.unwrap_or_default(),
            desired_replicas: set.replicas,
            observation,
            deletion_timestamp: set.metadata.deletion_timestamp,
            status,
        }
    }
}

impl Explanation {
    /// Two lines about the rollout: the revisions, and the budget in use.
    fn write_rollout(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(revision), Some(rollout)) = (&self.status.update_revision, &self.rollout) else {
            return Ok(());
        };
        write!(f, "\nRevision {revision}")?;
        let current = self.status.current_revision.as_ref();
        if let Some(current) = current.filter(|current| *current != revision) {
            write!(f, ", after {current}")?;
            if let Some(step) = &rollout.step {
                write!(f, ", at step {step}")?;
            }
        }
        if let Some(failed) = &rollout.failed_revision {
            write!(f, "; {failed} has failed, and is undone")?;
        }
        let updated = self.status.updated_replicas;
        write!(f, ": {} updated", pluralize(updated, "pod"))?;
        let RolloutUse {
            max_unavailable,
            unavailable,
            max_surge,
            surge,
            ..
        } = rollout;
        write!(
            f,
            "\nBudget in use: {unavailable} of {max_unavailable} unavailable pods, {surge} of {max_surge} surplus pods"
        )
    }
}

/// Entries for the `members` that the status of `set` does not list, because they have no replicas.
fn without_entry(
    set: &FederatedSet,
    members: &[MemberCluster],
    labels: Option<&BTreeMap<String, String>>,
) -> Vec<ClusterStatus> {
    let Ok(valid) = set.valid.as_ref().map(|valid| &valid.frs) else {
        return Vec::new();
    };
    let excluded = |member: &MemberCluster| excluded(member, &valid.key.namespace, labels);
    let listed = set.status.clusters.iter();
    let listed: BTreeMap<_, _> = listed.map(|cluster| (&*cluster.name, cluster)).collect();
    let members: Vec<_> = members
        .iter()
        .filter(|member| member.spec.federation == valid.federation)
        .map(|member| (member.name_any(), member))
        .collect();
    let preferences = Preferences::of(&valid.placement);
    let count = |number: i32| u64::try_from(number).unwrap_or(0);
    let clusters: Vec<_> = members
        .iter()
        .map(|(name, member)| {
            let entry = listed.get(&**name);
            let current = entry.map_or(0, |entry| count(entry.desired_replicas));
            let excluded = excluded(member).is_some();
            let preference = preferences.of_cluster(name);
            Cluster {
                name,
                preference: preference.map(|preference| {
                    if excluded && entry.is_none() {
                        Preference::default()
                    } else {
                        preference
                    }
                }),
                current,
                capacity: match entry.and_then(|entry| entry.capacity) {
                    Some(capacity) => Some(count(capacity)),
                    None => excluded.then_some(current),
                },
            }
        })
        .collect();
    let layout = plan(&Request {
        key: &valid.key.to_string(),
        replicas: valid.replicas.into(),
        rebalance: valid.placement.rebalance,
        clusters: &clusters,
    });
    let shares = members.iter().zip(layout.shares);
    let others = shares.filter(|((name, _), _)| !listed.contains_key(&**name));
    others
        .map(|((name, member), share)| ClusterStatus {
            name: name.clone(),
            message: excluded(member).unwrap_or_else(|| share.reasons.to_string()),
            ..ClusterStatus::default()
        })
        .collect()
}

/// Why `member` gets no replicas, whatever the placement.
fn excluded(
    member: &MemberCluster,
    namespace: &str,
    labels: Option<&BTreeMap<String, String>>,
) -> Option<String> {
    if namespace.starts_with(names::KUBERNETES_NAMESPACES) || namespace == names::SYSTEM_NAMESPACE {
        return Some("the namespace is a system namespace: nothing is changed in it".to_owned());
    }
    let takes = |scope: &NamespaceScope| match (&scope.names, &scope.selector, labels) {
        (Some(names), _, _) => names.iter().any(|name| name == namespace),
        (None, Some(selector), Some(labels)) => selector::matches(selector, labels),
        _ => true,
    };
    if !member.spec.namespaces.as_ref().is_none_or(takes) {
        return Some("the cluster does not take the namespace".to_owned());
    }
    if member.spec.drain {
        return Some("draining: no replicas".to_owned());
    }
    if member.spec.unschedulable {
        return Some("cordoned: no more replicas".to_owned());
    }
    let status = member.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    match conditions::find(conditions, MemberConditionType::Ready) {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(format!("not ready: {}", ready.reason)),
        None => Some("not ready: NotProbed".to_owned()),
    }
}

/// The counts of a set in one sentence.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let desired = pluralize(self.desired_replicas, "replica");
        let (kind, namespace) = (self.kind, &*self.namespace);
        let key = ObjectKey::of_kind(kind, namespace, &*self.name);
        write!(f, "{key}: {desired} desired")?;
        let status = &self.status;
        if self.observation != Observation::Missing {
            write!(f, ", {} placed", status.placed_replicas)?;
            if status.unplaced_replicas > 0 {
                write!(f, ", {} unplaced", status.unplaced_replicas)?;
            }
            let (ready, available) = (status.ready_replicas, status.available_replicas);
            write!(f, ", {ready} ready, {available} available")?;
        }
        self.write_rollout(f)?;
        let kind = kind.as_str();
        match self.observation {
            Observation::Missing => {
                write!(f, "\nThe controller has not observed the {kind} yet.")
            }
            Observation::Outdated => {
                f.write_str("\nThe controller has not observed the latest spec yet.")
            }
            Observation::Current => Ok(()),
        }?;
        match &self.deletion_timestamp {
            Some(time) => write!(
                f,
                "\nThe {kind} has been terminating since {:.0}; its events name the members that the deletion waits for.",
                time.0
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use fedrs_api::FederatedReplicaSet;
    use serde_json::{Value, json};

    use super::*;

    fn member(name: &str, spec: &Value, ready: &str, reason: &str) -> MemberCluster {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": reason, "message": "",
            "lastTransitionTime": "2026-11-01T00:00:00Z",
        });
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "MemberCluster",
            "metadata": { "name": name },
            "spec": spec,
            "status": { "conditions": [condition] },
        });
        serde_json::from_value(object).expect("a MemberCluster")
    }

    #[test]
    fn f19_why_a_member_without_an_entry_has_no_replicas() {
        let set = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "namespace": "shop", "generation": 1 },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{}] } },
                "placement": { "clusters": { "a": { "minReplicas": 2 }, "idle": { "weight": 0 }, "cordoned": { "weight": 1 },
                    "draining": { "weight": 1 }, "dead": { "weight": 1 }, "blog": { "weight": 1 }, "labels": { "weight": 1 } } },
            },
            "status": {
                "observedGeneration": 1,
                "clusters": [{ "name": "a", "desiredReplicas": 2, "replicas": 2, "message": "minimum 2" }],
            },
        });
        let set: FederatedReplicaSet = serde_json::from_value(set).expect("a set");
        let labels = json!({ "namespaces": { "selector": { "matchLabels": { "team": "blog" } } } });
        let members = [
            member("a", &json!({}), "True", "Healthy"),
            member(
                "blog",
                &json!({ "namespaces": { "names": ["blog"] } }),
                "True",
                "Healthy",
            ),
            member(
                "cordoned",
                &json!({ "unschedulable": true }),
                "True",
                "Healthy",
            ),
            member("dead", &json!({}), "False", "Unreachable"),
            member("draining", &json!({ "drain": true }), "True", "Healthy"),
            member("idle", &json!({}), "True", "Healthy"),
            member("labels", &labels, "True", "Healthy"),
            member("other", &json!({}), "True", "Healthy"),
            member(
                "others",
                &json!({ "federation": "blue" }),
                "True",
                "Healthy",
            ),
        ];
        let mut of_system = set.clone();
        of_system.metadata.namespace = Some("kube-system".to_owned());
        let explanation = Explanation::of(FederatedSet::of_frs(of_system), &members[7..8], None);
        let other = explanation
            .status
            .clusters
            .iter()
            .find(|cluster| cluster.name == "other");
        let message = other.map(|other| &*other.message);
        assert_eq!(
            message,
            Some("the namespace is a system namespace: nothing is changed in it")
        );
        let set = FederatedSet::of_frs(set);
        let explanation = Explanation::of(set, &members, Some(&BTreeMap::new()));
        let clusters = explanation.status.clusters.iter();
        let shown: Vec<_> = clusters
            .map(|cluster| format!("{}: {}", cluster.name, cluster.message))
            .collect();
        insta::assert_snapshot!(shown.join("\n"));
    }
}
