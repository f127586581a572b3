//! The PodDisruptionBudget of a set: what is known of it, and its writes (L20).

use std::{collections::BTreeMap, sync::Arc};

use controller_base::calls::{self, CallError};
use fedrs_api::ValidLocalReplicaSet;
use reflector::{Collection, ReflectorSettings};
use replica_set_controller::{
    BudgetChange, CompleteTemplate, Disruptions, ObservedBudget, ObservedPod, Request, Verb,
    budget_name, budget_path, budget_request,
};
use serde::de::IgnoredAny;
use tokio::time::timeout;

use crate::{backoff::Backoff, entry::ValidSet, execute::Executor, store::Snapshot};

/// The pods that are read in one request.
const PAGE_SIZE: u32 = 500;

/// What a process remembers of the PodDisruptionBudget of a set.
#[derive(Debug, Default)]
pub(crate) struct BudgetMemory {
    /// The uid and the generation since whose observation all pods were read.
    pods_read: Option<(String, i64)>,
    /// Whether the last write was not answered: a read has to show what became of it.
    pub(crate) is_unanswered: bool,
    /// Why the last write failed.
    pub(crate) failure: Option<String>,
    pub(crate) backoff: Backoff,
}

impl BudgetMemory {
    fn fail(&mut self, error: &CallError) {
        self.backoff.fail();
        self.failure = Some(error.to_string());
    }

    fn succeed(&mut self) {
        let pods_read = self.pods_read.take();
        *self = Self {
            pods_read,
            ..Self::default()
        };
    }
}

/// The PodDisruptionBudgets of a set's pods.
pub(crate) struct Budgets<'a> {
    ours: Option<&'a ObservedBudget>,
    pub(crate) other: Option<&'a str>,
}

impl<'a> Budgets<'a> {
    pub(crate) fn of(snapshot: &'a Snapshot, valid: &ValidSet) -> Self {
        let set = &valid.set;
        let budgets = snapshot.budgets.iter().map(|budget| &**budget);
        let (ours, others): (Vec<_>, Vec<_>) = budgets.partition(|budget| budget.is_of(set));
        let mut others = others.into_iter();
        let other = others.find(|budget| {
            budget.excludes_that_of(set) && matches_pods(budget, &valid.template, snapshot)
        });
        Self {
            ours: ours.first().copied(),
            other: other.map(ObservedBudget::name),
        }
    }

    /// The input of a step.
    pub(crate) fn disruptions(
        &self,
        set: &ValidLocalReplicaSet,
        memory: &BudgetMemory,
    ) -> Disruptions<'a> {
        let ours = self.ours.map(|budget| budget.facts(set));
        let read = memory.pods_read.as_ref();
        Disruptions {
            ours,
            other: self.other,
            are_pods_read: ours.is_some_and(|ours| {
                read.is_some_and(|(uid, generation)| {
                    (&**uid, *generation) == (ours.uid, ours.generation)
                })
            }),
        }
    }
}

/// Whether it matches pods that the set has or will create.
fn matches_pods(budget: &ObservedBudget, template: &CompleteTemplate, snapshot: &Snapshot) -> bool {
    let uid = &snapshot.entry.uid;
    let pods = snapshot.pods.values();
    let mut labels = pods
        .filter(|pod| pod.is_controlled_by(uid))
        .filter_map(|pod| pod.labels());
    budget.matches(&template.template.metadata.labels)
        || labels.any(|labels| budget.matches(labels))
}

impl Executor {
    /// Reads the PodDisruptionBudget of a set after a write that has failed. Returns whether it was read.
    pub(crate) async fn refresh_budget(
        &self,
        set: &ValidLocalReplicaSet,
        memory: &mut BudgetMemory,
    ) -> bool {
        let path = budget_path(set);
        let call = calls::get::<ObservedBudget>(&self.client, &path);
        match self.call(call).await {
            Ok(budget) => self.show(|state| state.apply_budget(budget)),
            Err(error) if error.code() == Some(404) => {
                self.show(|state| state.remove_budget(&set.namespace, &budget_name(&set.name)))
            }
            Err(error) => {
                tracing::warn!(path, %error, "failed to read a PodDisruptionBudget");
                return false;
            }
        };
        memory.is_unanswered = false;
        true
    }

    /// Writes the PodDisruptionBudget of a set. Returns whether something has changed.
    pub(crate) async fn change_budget(
        &self,
        set: &ValidLocalReplicaSet,
        budgets: &Budgets<'_>,
        change: Option<BudgetChange>,
        memory: &mut BudgetMemory,
    ) -> bool {
        let Some(change) = change else {
            memory.succeed();
            return false;
        };
        if memory.backoff.waits() {
            return false;
        }
        let request = budget_request(set, budgets.ours, change);
        let Err(error) = self.write_budget(set, &request).await else {
            memory.succeed();
            return true;
        };
        let is_outdated = error.is_failed_test() || matches!(error.code(), Some(404 | 409));
        if !is_outdated || request.verb == Verb::Create {
            self.metrics.failed_requests.inc();
            tracing::warn!(path = request.path, %error, "failed to write a PodDisruptionBudget");
            memory.fail(&error);
        }
        memory.is_unanswered = true;
        self.refresh_budget(set, memory).await && is_outdated
    }

    async fn write_budget(
        &self,
        set: &ValidLocalReplicaSet,
        request: &Request,
    ) -> Result<(), CallError> {
        let Request { verb, path, body } = request;
        let budget: ObservedBudget = match verb {
            Verb::Create => self.call(calls::post(&self.client, path, body)).await?,
            Verb::Patch => {
                self.call(calls::json_patch(&self.client, path, body))
                    .await?
            }
            Verb::Delete => {
                let IgnoredAny = self.call(calls::delete(&self.client, path, body)).await?;
                self.show(|state| state.remove_budget(&set.namespace, &budget_name(&set.name)));
                return Ok(());
            }
        };
        self.show(|state| state.apply_budget(budget));
        Ok(())
    }

    /// Reads all pods that the selector of the set matches: evictions that were granted before are among them.
    pub(crate) async fn read_pods(
        &self,
        set: &ValidLocalReplicaSet,
        known: &BTreeMap<String, Arc<ObservedPod>>,
        disruptions: &Disruptions<'_>,
        memory: &mut BudgetMemory,
    ) -> bool {
        let Some(ours) = disruptions.ours else {
            return false;
        };
        let path = format!("/api/v1/namespaces/{}/pods", set.namespace);
        let collection = Collection::with_labels(path, &*set.selector_text);
        let settings = ReflectorSettings {
            page_size: PAGE_SIZE,
            page_timeout: self.call_timeout,
            ..ReflectorSettings::default()
        };
        let mut listed = BTreeMap::new();
        let list = reflector::list(self.client.clone(), collection, &settings, |pod| {
            if let Ok(pod) = pod {
                let pod: ObservedPod = pod;
                listed.insert(pod.uid().to_owned(), pod);
            }
        });
        match timeout(self.call_timeout, list).await {
            Ok(Ok(())) => {}
            failed => {
                tracing::warn!(set = set.name, ?failed, "failed to list pods");
                return false;
            }
        }
        let mut are_read = true;
        for (uid, pod) in known {
            let is_ours = pod.is_controlled_by(&set.uid);
            if is_ours && !listed.contains_key(uid) {
                // It is gone, or its labels have changed.
                are_read &= self.refresh(&set.namespace, pod.name(), uid).await;
            }
        }
        for pod in listed.into_values() {
            self.show(|state| state.apply_response(pod));
        }
        if are_read {
            memory.pods_read = Some((ours.uid.to_owned(), ours.generation));
        }
        are_read
    }
}
