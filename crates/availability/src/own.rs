//! What is ours in a member, and the requests that change it: each names the version that it replaces.

use fedrs_api::{
    AvailabilitySet, DisruptionLimit, Loan, LoanKind, ValidAvailabilitySet, annotations, labels,
    selector::{self, LabelSelector},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::observed::{Budget, LocalSet, Observed};

/// Pods that are not ready may be evicted at any time: they are unreachable anyway.
const POLICY: &str = "AlwaysAllow";

/// What limits the pods of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// The PodDisruptionBudget of the AvailabilitySet, if it exists.
    Budget(Option<&'a Budget>),
    /// A LocalReplicaSet.
    LocalSet(&'a LocalSet),
}

impl Target<'_> {
    /// Whether the loan is its.
    pub(crate) fn lends(self, loan: &Loan) -> bool {
        match self {
            Self::Budget(_) => loan.kind == LoanKind::PodDisruptionBudget,
            Self::LocalSet(set) => {
                loan.kind == LoanKind::LocalReplicaSet && loan.name == set.metadata.name
            }
        }
    }
}

/// The objects of one AvailabilitySet in members.
pub(crate) struct Own<'a> {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The id of the federation (F40).
    pub(crate) federation: &'a str,
}

/// A request to a member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// Creates an object in a collection.
    Create { path: String, body: Value },
    /// A JSON patch.
    Patch { path: String, body: Value },
    /// A merge patch.
    MergePatch { path: String, body: Value },
    /// Deletes an object.
    Delete { path: String, body: Value },
}

impl<'a> Own<'a> {
    pub(crate) fn of(set: &AvailabilitySet, federation: &'a str) -> Self {
        Self {
            namespace: set.namespace().unwrap_or_default(),
            name: set.name_any(),
            federation,
        }
    }

    /// The name of the PodDisruptionBudget.
    pub(crate) fn budget_name(&self) -> String {
        format!("avset-{}", self.name)
    }

    fn budgets(&self) -> String {
        let namespace = &self.namespace;
        format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
    }

    /// Whether the PodDisruptionBudget is that of the AvailabilitySet.
    pub(crate) fn has_budget(&self, budget: &Budget) -> bool {
        let label = |key| budget.metadata.labels.get(key).map(String::as_str);
        budget.metadata.name == self.budget_name()
            && label(labels::AVAILABILITY_SET) == Some(&self.name)
            && label(labels::FEDERATION) == Some(self.federation)
    }

    /// The limit of a LocalReplicaSet that this AvailabilitySet has written.
    pub(crate) fn limit_of(&self, set: &LocalSet) -> Option<DisruptionLimit> {
        let limit = set.limit_of(&self.name)?;
        (limit.federation == self.federation).then_some(limit)
    }

    /// Whether the AvailabilitySet of this name in another federation limits the LocalReplicaSet (F40).
    pub(crate) fn is_of_another(&self, set: &LocalSet) -> bool {
        let limit = set.limit_of(&self.name);
        limit.is_some_and(|limit| {
            !limit.federation.is_empty() && limit.federation != self.federation
        })
    }

    /// The number of the write that the controller of the LocalReplicaSet has seen.
    pub(crate) fn seen_revision(&self, set: &LocalSet) -> Option<i64> {
        set.seen_revision(&self.name)
    }

    /// All that is ours in a member.
    pub(crate) fn all<'o>(&self, observed: &'o Observed) -> impl Iterator<Item = Target<'o>> {
        let budgets = observed
            .budgets
            .iter()
            .filter(|budget| self.has_budget(budget));
        let sets = observed
            .sets
            .iter()
            .filter(|set| self.limit_of(set).is_some());
        let budgets = budgets.map(|budget| Target::Budget(Some(budget)));
        budgets.chain(sets.map(Target::LocalSet))
    }

    /// The request that lets so many pods be unavailable.
    pub(crate) fn write(
        &self,
        target: Target<'_>,
        valid: &ValidAvailabilitySet,
        max_unavailable: u64,
        revision: i64,
    ) -> Request {
        let spec = json!({
            "maxUnavailable": max_unavailable,
            "selector": enabled(&valid.selector),
            "unhealthyPodEvictionPolicy": POLICY,
        });
        match target {
            Target::Budget(None) => {
                let metadata = json!({
                    "name": self.budget_name(),
                    "namespace": self.namespace,
                    "labels": {
                        labels::AVAILABILITY_SET: self.name,
                        labels::FEDERATION: self.federation,
                    },
                    "annotations": { annotations::LIMIT_REVISION: revision.to_string() },
                });
                Request::Create {
                    path: self.budgets(),
                    body: json!({
                        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                        "metadata": metadata, "spec": spec,
                    }),
                }
            }
            Target::Budget(Some(budget)) => {
                let meta = &budget.metadata;
                let key = annotations::LIMIT_REVISION;
                let (path, value) = if meta.annotations.is_empty() {
                    let all = json!({ key: revision.to_string() });
                    ("/metadata/annotations".to_owned(), all)
                } else {
                    let key = key.replace('/', "~1");
                    (
                        format!("/metadata/annotations/{key}"),
                        json!(revision.to_string()),
                    )
                };
                Request::Patch {
                    path: format!("{}/{}", self.budgets(), meta.name),
                    body: json!([
                        { "op": "test", "path": "/metadata/uid", "value": meta.uid },
                        { "op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version },
                        { "op": "add", "path": path, "value": value },
                        { "op": "add", "path": "/spec", "value": spec },
                    ]),
                }
            }
            Target::LocalSet(set) => {
                let limit = DisruptionLimit {
                    max_unavailable: max_unavailable.try_into().unwrap_or(u32::MAX),
                    revision,
                    federation: self.federation.to_owned(),
                };
                self.annotate(set, Some(limit))
            }
        }
    }

    /// The request that removes what is ours.
    pub(crate) fn remove(&self, target: Target<'_>) -> Option<Request> {
        match target {
            Target::Budget(budget) => {
                let meta = &budget?.metadata;
                let preconditions =
                    json!({ "uid": meta.uid, "resourceVersion": meta.resource_version });
                Some(Request::Delete {
                    path: format!("{}/{}", self.budgets(), meta.name),
                    body: json!({ "preconditions": preconditions }),
                })
            }
            Target::LocalSet(set) => Some(self.annotate(set, None)),
        }
    }

    fn annotate(&self, set: &LocalSet, limit: Option<DisruptionLimit>) -> Request {
        let meta = &set.metadata;
        let namespace = &self.namespace;
        let key = [annotations::AVAILABILITY_PREFIX, &self.name].concat();
        let value = limit.map(|limit| limit.to_annotation());
        Request::MergePatch {
            path: format!(
                "/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/localreplicasets/{}",
                meta.name
            ),
            body: json!({
                "metadata": {
                    "uid": meta.uid,
                    "resourceVersion": meta.resource_version,
                    "annotations": { key: value },
                },
            }),
        }
    }
}

/// Whether the PodDisruptionBudget is as it was written, but for the number.
pub(crate) fn is_intact(budget: &Budget, valid: &ValidAvailabilitySet) -> bool {
    let spec = &budget.spec;
    let selects = spec.selector.as_ref().map(selector::normalized);
    selects == Some(selector::normalized(&enabled(&valid.selector)))
        && spec.min_available.is_null()
        && spec.unhealthy_pod_eviction_policy.as_deref() == Some(POLICY)
}

/// Selects the pods that `selector` selects and that are not disabled.
fn enabled(selector: &LabelSelector) -> LabelSelector {
    let not_disabled = LabelSelectorRequirement {
        key: labels::ENABLED.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec!["false".to_owned()]),
    };
    let mut selector = selector.clone();
    (selector.match_expressions)
        .get_or_insert_default()
        .push(not_disabled);
    selector
}
