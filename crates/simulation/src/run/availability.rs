//! AvailabilitySets in a run, and how the run of them ends: their statuses are true, all of the budget is lent, and nothing is left of
//! them when they are deleted.

use http::Method;
use serde_json::{Value, json};
use sim_cluster::{Object, kinds};
use tokio::time::Duration;

use super::{actions::PODS, runner::Runner};
use crate::{
    checks::{Invariant, Observed},
    is_ready,
    plan::{Action, AvailabilityWork, Plan, Selected},
    ready_pods::reports_ready,
    sim_federation::{HOST, NAMESPACE},
    trace::Topic,
};

/// The collection of AvailabilitySets.
const SETS: &str = "/apis/fedrs.dev/v1alpha1/namespaces/default/availabilitysets";
/// When nothing else changes, a status is true, and nothing is left, by this time: a look each 10 s, some of which write.
const TRUE_WITHIN: Duration = Duration::from_secs(60);
/// From so many pods on, the budget has to be a twentieth of them.
const MANY: u64 = 20;
/// With fewer pods a set can't be available.
const FEWEST: u64 = 3;

impl Runner {
    /// Carries out a step of a plan.
    pub(super) async fn availability_work(&mut self, work: &AvailabilityWork) {
        let path = |set: &str| format!("{SETS}/{set}");
        match work {
            AvailabilityWork::Create { set, spec } => {
                let mut object = json!({
                    "apiVersion": "fedrs.dev/v1alpha1",
                    "kind": "AvailabilitySet",
                    "metadata": { "name": set, "namespace": NAMESPACE },
                    "spec": spec,
                });
                object["spec"]["selector"] = json!({ "matchLabels": { "app": set } });
                if self.request(HOST, Method::POST, SETS, &object).await {
                    self.count("AvailabilitySets");
                }
            }
            AvailabilityWork::Edit { set, spec } => {
                let patch = json!({ "spec": spec });
                self.patch(HOST, &path(set), &patch).await;
            }
            AvailabilityWork::Delete { set } => {
                self.request(HOST, Method::DELETE, &path(set), &Value::Null)
                    .await;
            }
            AvailabilityWork::Evict { pod } => self.evict(pod).await,
        }
    }

    /// Users delete AvailabilitySets by which no rollout could ever end: those that can't be available, and all of them if members stay
    /// broken, whose pods use the budgets up.
    pub(super) async fn end_blocking_availability_sets(&mut self, are_all_well: bool) {
        for object in availability_sets(self) {
            let set = crate::name_of(&object);
            if are_all_well && is_satisfiable(&object, replicas(self, &set)) {
                continue;
            }
            let work = AvailabilityWork::Delete { set };
            self.recorder.trace(Topic::Step, work.to_string());
            self.availability_work(&work).await;
        }
    }

    /// Somebody evicts a pod. What the API server grants is checked, if it is limited.
    async fn evict(&mut self, pod: &Selected) {
        let Some(path) = self.pod(pod) else { return };
        let Selected { member, set, .. } = pod;
        let name = path.trim_start_matches(PODS).trim_start_matches('/');
        let api = self.federation.member(member).api();
        let pod = api.get(&kinds::PODS, NAMESPACE, name);
        // Others may be evicted whatever the budget is.
        let is_limited = pod.is_ok_and(|pod| is_ready(&pod, set))
            && (self.recorder).observe(|observed| observed.limits_evictions(set, member));
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "name": name, "namespace": NAMESPACE },
        });
        let path = format!("{path}/eviction");
        if !self.request(member, Method::POST, &path, &eviction).await {
            return;
        }
        self.count("granted evictions");
        if is_limited {
            self.count("granted evictions within loans");
            let wrong = (self.recorder).observe(|observed| observed.evicted(set, member));
            if let Some(text) = wrong {
                self.fail(Invariant::Budget, text);
            }
        }
    }

    /// Everything is as it should be: AvailabilitySets say so, lend what they can, and leave nothing behind when they are deleted.
    pub(super) async fn settle_availability(&mut self, members: &[String], plan: &Plan) {
        let is_work = |action: &Action| matches!(action, Action::Availability(_));
        if !plan.steps.iter().any(|step| is_work(&step.action)) {
            return;
        }
        let is_true = |runner: &Self| {
            let mut sets = availability_sets(runner).into_iter();
            sets.find_map(|set| wrong_status(runner, members, &set))
        };
        if !self.reach(TRUE_WITHIN, is_true).await {
            return;
        }
        self.recorder
            .trace(Topic::Phase, "the statuses of AvailabilitySets are true");
        for set in availability_sets(self) {
            let set = crate::name_of(&set);
            let work = AvailabilityWork::Delete { set };
            self.recorder.trace(Topic::Step, work.to_string());
            self.availability_work(&work).await;
        }
        let is_gone = |runner: &Self| {
            let set = availability_sets(runner).into_iter().next();
            let set = set.map(|set| format!("AvailabilitySet {} is left", crate::name_of(&set)));
            // Those of an AvailabilitySet that a restored host does not have any more stay.
            let is_known = |member: &&String| {
                let is_unreliable = |observed: &mut Observed| observed.was_unreliable(member);
                !runner.recorder.observe(is_unreliable)
            };
            let lent = members.iter().filter(is_known).find_map(|member| {
                let budget = budgets(runner, member).into_iter().next()?;
                let name = crate::name_of(&budget);
                Some(format!("{name} is left in {member}"))
            });
            set.or(lent)
        };
        self.reach(TRUE_WITHIN, is_gone).await;
    }
}

/// What the status of an AvailabilitySet says, or lends, that is not so.
fn wrong_status(runner: &Runner, members: &[String], object: &Object) -> Option<String> {
    let set = crate::name_of(object);
    let status = &object["status"];
    let number = |field: &str| status[field].as_u64().unwrap_or(0);
    let pods: Vec<_> = members
        .iter()
        .flat_map(|member| pods(runner, member, &set))
        .collect();
    let count = pods.len() as u64;
    let unreachable = pods.iter().filter(|is_ready| !**is_ready).count() as u64;
    let shown = (number("pods"), number("unreachable"));
    if shown != (count, unreachable) {
        return Some(format!(
            "{set}: of {count} pods {unreachable} are unreachable: {status}"
        ));
    }
    let mut lent = Vec::new();
    for member in members {
        let name = format!("avset-{set}");
        let mut budgets = budgets(runner, member).into_iter();
        let budget = budgets.find(|budget| crate::name_of(budget) == name);
        let loan = budget.and_then(|budget| budget["spec"]["maxUnavailable"].as_u64());
        let shown = loan_of(status, member);
        if loan != shown {
            return Some(format!("{set}: {member} has {loan:?}: {status}"));
        }
        lent.extend(loan);
    }
    let budget = budget_of(object);
    let is_one = object["spec"]["oneClusterAtATime"] == true;
    lent.extend(lent_to_rollouts(status));
    let all: u64 = lent.iter().sum();
    let is_right = if !is_satisfiable(object, count) {
        all == 0
    } else if unreachable > 0 {
        all <= budget
    } else if is_one {
        (1..=budget).contains(&all) && lent.iter().filter(|loan| **loan > 0).count() == 1
    } else {
        // What a rollout had last stays with it until others wait.
        (budget.min(count)..=budget).contains(&all)
    };
    (!is_right).then(|| format!("{set}: {lent:?} are lent: {status}"))
}

fn budget_of(object: &Object) -> u64 {
    object["spec"]["budget"].as_u64().unwrap_or(0)
}

/// Whether a set of so many pods can be available (A1).
fn is_satisfiable(object: &Object, pods: u64) -> bool {
    pods >= FEWEST && (pods < MANY || budget_of(object) * MANY >= pods)
}

/// The replicas that users want of a set.
fn replicas(runner: &Runner, set: &str) -> u64 {
    let host = runner.federation.cluster(HOST).api();
    let kinds = ["FederatedDeployment", "FederatedReplicaSet"];
    let kinds = kinds
        .into_iter()
        .filter_map(|kind| host.kind_of("fedrs.dev/v1alpha1", kind));
    let mut objects = kinds.filter_map(|kind| host.get(&kind, NAMESPACE, set).ok());
    let object = objects.next();
    object
        .and_then(|object| object["spec"]["replicas"].as_u64())
        .unwrap_or(0)
}

/// What a status says is lent to a member.
fn loan_of(status: &Value, member: &str) -> Option<u64> {
    let clusters = status["clusters"].as_array()?;
    let cluster = clusters.iter().find(|cluster| cluster["name"] == member)?;
    cluster["loans"][0]["maxUnavailable"].as_u64()
}

/// What a status says is lent to rollouts.
fn lent_to_rollouts(status: &Value) -> impl Iterator<Item = u64> {
    let loans = status["rollouts"].as_array().into_iter().flatten();
    loans.filter_map(|loan| loan["maxUnavailable"].as_u64())
}

fn availability_sets(runner: &Runner) -> Vec<Object> {
    let host = runner.federation.cluster(HOST).api();
    let kind = host.kind_of("fedrs.dev/v1alpha1", "AvailabilitySet");
    kind.map(|kind| host.list(&kind, Some(NAMESPACE)))
        .unwrap_or_default()
}

/// The PodDisruptionBudgets of a member.
fn budgets(runner: &Runner, member: &str) -> Vec<Object> {
    let api = runner.federation.member(member).api();
    let kind = api.kind_of("policy/v1", "PodDisruptionBudget");
    kind.map(|kind| api.list(&kind, Some(NAMESPACE)))
        .unwrap_or_default()
}

/// Whether each pod of a set in a member that counts is ready.
fn pods(runner: &Runner, member: &str, set: &str) -> Vec<bool> {
    let pods = runner.federation.member(member).api();
    let pods = pods.list(&kinds::PODS, Some(NAMESPACE)).into_iter();
    let counts = |pod: &Object| {
        let has_ended = ["Succeeded", "Failed"]
            .iter()
            .any(|phase| pod["status"]["phase"] == *phase);
        pod["metadata"]["labels"]["app"] == set
            && pod["metadata"].get("deletionTimestamp").is_none()
            && !has_ended
    };
    // Those that no set has any more count, too.
    pods.filter(counts).map(|pod| reports_ready(&pod)).collect()
}
