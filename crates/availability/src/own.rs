//! What is ours in a member, and the requests that change it: each names the version that it replaces.

use std::collections::BTreeMap;

use fedrs_api::{
    AvailabilitySet, DisruptionLimit, Loan, LoanKind, ValidAvailabilitySet, annotations, labels,
    selector::{self, LabelSelector},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    federated_set::FederatedSet,
    neighbours::Neighbours,
    observed::{Budget, LocalSet, Meta, Observed, Pod},
};

/// Pods that are not ready may be evicted at any time: they are unreachable anyway.
const POLICY: &str = "AlwaysAllow";
/// Of the names of PodDisruptionBudgets.
const BUDGET_PREFIX: &str = "avset-";
const LOCAL_SETS: &str = "localreplicasets";
/// Where FederatedDeployments are.
pub(crate) const FEDERATED_SETS: &str = "federateddeployments";

/// What limits the pods of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// A PodDisruptionBudget: `None` for that of the AvailabilitySet, if it does not exist.
    Budget(Option<&'a Budget>),
    /// A LocalReplicaSet.
    LocalSet(&'a LocalSet),
    /// A FederatedDeployment of the host.
    Rollout(&'a FederatedSet),
}

impl Target<'_> {
    /// Whether the loan is its.
    pub(crate) fn lends(self, loan: &Loan) -> bool {
        let (kind, name) = match self {
            Self::Budget(None) => return false,
            Self::Budget(Some(budget)) => (LoanKind::PodDisruptionBudget, &budget.metadata.name),
            Self::LocalSet(set) => (LoanKind::LocalReplicaSet, &set.metadata.name),
            Self::Rollout(set) => (LoanKind::FederatedDeployment, &set.metadata.name),
        };
        loan.kind == kind && loan.name == *name
    }
}

/// The objects of one AvailabilitySet in members.
pub(crate) struct Own<'a> {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The id of the federation (F40).
    pub(crate) federation: &'a str,
    /// All AvailabilitySets of the namespace and federation.
    pub(crate) neighbours: &'a Neighbours,
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
    pub(crate) fn of(
        set: &AvailabilitySet,
        federation: &'a str,
        neighbours: &'a Neighbours,
    ) -> Self {
        Self {
            namespace: set.namespace().unwrap_or_default(),
            name: set.name_any(),
            federation,
            neighbours,
        }
    }

    /// The name of the PodDisruptionBudget.
    pub(crate) fn budget_name(&self) -> String {
        [BUDGET_PREFIX, &self.name].concat()
    }

    fn budgets(&self) -> String {
        let namespace = &self.namespace;
        format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
    }

    /// The name of the AvailabilitySet whose PodDisruptionBudget it is; `None` if it is not of this federation.
    pub(crate) fn owner_of<'b>(&self, budget: &'b Budget) -> Option<&'b str> {
        let label = |key| budget.metadata.labels.get(key).map(String::as_str);
        let owner = label(labels::AVAILABILITY_SET)?;
        let is_ours = budget.metadata.name.strip_prefix(BUDGET_PREFIX) == Some(owner)
            && label(labels::FEDERATION) == Some(self.federation);
        is_ours.then_some(owner)
    }

    /// Whether the PodDisruptionBudget is that of the AvailabilitySet.
    pub(crate) fn has_budget(&self, budget: &Budget) -> bool {
        self.owner_of(budget) == Some(&*self.name)
    }

    /// The limit of an object that this AvailabilitySet has written.
    pub(crate) fn limit_on(&self, metadata: &Meta) -> Option<DisruptionLimit> {
        let limit = metadata.limit_of(&self.name)?;
        (limit.federation == self.federation).then_some(limit)
    }

    /// Whether the loan of this AvailabilitySet is on the PodDisruptionBudget.
    pub(crate) fn has_loan(&self, budget: &Budget) -> bool {
        self.owner_of(budget).is_some() && self.limit_on(&budget.metadata).is_some()
    }

    /// The loans on a PodDisruptionBudget, by the name of their set. Those of sets that do not exist do not count: nobody would remove them.
    pub(crate) fn loans_on(&self, budget: &Budget) -> BTreeMap<String, DisruptionLimit> {
        let mut loans = DisruptionLimit::all(Some(&budget.metadata.annotations));
        loans.retain(|name, _| self.neighbours.contains_key(name));
        loans
    }

    /// The PodDisruptionBudgets from which it has to remove its loan; and its own one, and those of sets that do not exist, unless others
    /// have loans on them.
    pub(crate) fn lent<'o>(&self, budgets: &'o [Budget]) -> impl Iterator<Item = &'o Budget> {
        budgets.iter().filter(|budget| {
            let owner = self.owner_of(budget);
            let is_left = || {
                let is_of_nobody = |owner| !self.neighbours.contains_key(owner);
                owner.is_some_and(|owner| owner == self.name || is_of_nobody(owner))
                    && self.loans_on(budget).is_empty()
            };
            self.has_loan(budget) || is_left()
        })
    }

    /// Whether all evictions are seen that AvailabilitySets had granted of these pods.
    pub(crate) fn all_settled(&self, budgets: &[Budget], pods: &[&Pod]) -> bool {
        let mut ours = budgets
            .iter()
            .filter(|budget| self.owner_of(budget).is_some());
        ours.all(|budget| budget.is_settled() || !budget.matches_any(pods))
    }

    /// Whether the AvailabilitySet of this name in another federation limits the LocalReplicaSet (F40).
    pub(crate) fn is_of_another(&self, set: &LocalSet) -> bool {
        let limit = set.metadata.limit_of(&self.name);
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
        let sets = observed
            .sets
            .iter()
            .filter(|set| self.limit_on(&set.metadata).is_some());
        let budgets = self
            .lent(&observed.budgets)
            .map(|budget| Target::Budget(Some(budget)));
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
        let limit = DisruptionLimit {
            max_unavailable: max_unavailable.try_into().unwrap_or(u32::MAX),
            revision,
            federation: self.federation.to_owned(),
            one_cluster_at_a_time: false,
        };
        match target {
            Target::Budget(None) => {
                let metadata = json!({
                    "name": self.budget_name(),
                    "namespace": self.namespace,
                    "labels": {
                        labels::AVAILABILITY_SET: self.name,
                        labels::FEDERATION: self.federation,
                    },
                    "annotations": { self.annotation(): limit.to_annotation() },
                });
                Request::Create {
                    path: self.budgets(),
                    body: json!({
                        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                        "metadata": metadata, "spec": spec(valid, max_unavailable),
                    }),
                }
            }
            Target::Budget(Some(budget)) => {
                let mut loans = self.loans_on(budget);
                loans.insert(self.name.clone(), limit);
                let owned = self.has_budget(budget).then_some(valid);
                self.change(budget, &loans, owned)
            }
            Target::LocalSet(set) => self.annotate(LOCAL_SETS, &set.metadata, Some(limit)),
            Target::Rollout(set) => {
                let limit = DisruptionLimit {
                    one_cluster_at_a_time: valid.is_one_cluster_at_a_time,
                    ..limit
                };
                self.annotate(FEDERATED_SETS, &set.metadata, Some(limit))
            }
        }
    }

    /// The request that leaves these loans on a PodDisruptionBudget, with the selector of its owner, if that writes it.
    fn change(
        &self,
        budget: &Budget,
        loans: &BTreeMap<String, DisruptionLimit>,
        owned: Option<&ValidAvailabilitySet>,
    ) -> Request {
        let meta = &budget.metadata;
        let mut operations = vec![
            json!({ "op": "test", "path": "/metadata/uid", "value": meta.uid }),
            json!({ "op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version }),
        ];
        if meta.annotations.is_empty() {
            operations.push(json!({ "op": "add", "path": "/metadata/annotations", "value": {} }));
        }
        let path = |name: &str| {
            let prefix = annotations::AVAILABILITY_PREFIX.replace('/', "~1");
            format!("/metadata/annotations/{prefix}{name}")
        };
        let before = DisruptionLimit::all(Some(&meta.annotations));
        let gone = before.keys().filter(|name| !loans.contains_key(*name));
        operations.extend(gone.map(|name| json!({ "op": "remove", "path": path(name) })));
        let new = loans.get(&self.name).into_iter();
        operations.extend(new.map(|limit| {
            let value = limit.to_annotation();
            json!({ "op": "add", "path": path(&self.name), "value": value })
        }));
        let least = loans.values().map(|limit| limit.max_unavailable).min();
        let least = least.unwrap_or_default().into();
        operations.push(match owned {
            Some(valid) => json!({ "op": "add", "path": "/spec", "value": spec(valid, least) }),
            None => json!({ "op": "add", "path": "/spec/maxUnavailable", "value": least }),
        });
        Request::Patch {
            path: format!("{}/{}", self.budgets(), meta.name),
            body: operations.into(),
        }
    }

    /// The request that removes what is ours; a PodDisruptionBudget with the last loan on it.
    pub(crate) fn remove(&self, target: Target<'_>) -> Option<Request> {
        match target {
            Target::Budget(budget) => {
                let budget = budget?;
                let mut loans = self.loans_on(budget);
                loans.remove(&self.name);
                if !loans.is_empty() {
                    return Some(self.change(budget, &loans, None));
                }
                let meta = &budget.metadata;
                let preconditions =
                    json!({ "uid": meta.uid, "resourceVersion": meta.resource_version });
                Some(Request::Delete {
                    path: format!("{}/{}", self.budgets(), meta.name),
                    body: json!({ "preconditions": preconditions }),
                })
            }
            Target::LocalSet(set) => Some(self.annotate(LOCAL_SETS, &set.metadata, None)),
            Target::Rollout(set) => Some(self.annotate(FEDERATED_SETS, &set.metadata, None)),
        }
    }

    /// The key of its annotations.
    fn annotation(&self) -> String {
        [annotations::AVAILABILITY_PREFIX, &self.name].concat()
    }

    fn annotate(&self, kind: &str, meta: &Meta, limit: Option<DisruptionLimit>) -> Request {
        let namespace = &self.namespace;
        let key = self.annotation();
        let value = limit.map(|limit| limit.to_annotation());
        Request::MergePatch {
            path: format!(
                "/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/{kind}/{}",
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

/// What the PodDisruptionBudget of a set says.
fn spec(valid: &ValidAvailabilitySet, max_unavailable: u64) -> Value {
    json!({
        "maxUnavailable": max_unavailable,
        "selector": enabled(&valid.selector),
        "unhealthyPodEvictionPolicy": POLICY,
    })
}

/// Whether the PodDisruptionBudget is as its owner writes it, but for the number.
pub(crate) fn is_intact(budget: &Budget, valid: &ValidAvailabilitySet) -> bool {
    let selects = budget.spec.selector.as_ref().map(selector::normalized);
    selects == Some(selector::normalized(&enabled(&valid.selector))) && limits(budget)
}

/// Whether the PodDisruptionBudget limits all pods that `selector` selects and that are not disabled.
pub(crate) fn covers(budget: &Budget, selector: &LabelSelector) -> bool {
    let selects = budget.spec.selector.as_ref();
    selects.is_some_and(|wide| selector::contains(wide, &enabled(selector))) && limits(budget)
}

fn limits(budget: &Budget) -> bool {
    budget.spec.min_available.is_null()
        && budget.spec.unhealthy_pod_eviction_policy.as_deref() == Some(POLICY)
}

/// Selects the pods that `selector` selects and that are not disabled.
fn enabled(selector: &LabelSelector) -> LabelSelector {
    let mut selector = selector.clone();
    (selector.match_expressions)
        .get_or_insert_default()
        .push(not_disabled());
    selector
}

/// Selects the pods that the PodDisruptionBudget of a set selects, and those that are disabled.
pub(crate) fn with_disabled(selector: &LabelSelector) -> LabelSelector {
    let mut selector = selector.clone();
    let expressions = selector.match_expressions.iter_mut();
    let not_disabled = not_disabled();
    expressions.for_each(|all| all.retain(|one| *one != not_disabled));
    selector
}

fn not_disabled() -> LabelSelectorRequirement {
    LabelSelectorRequirement {
        key: labels::ENABLED.to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec!["false".to_owned()]),
    }
}
