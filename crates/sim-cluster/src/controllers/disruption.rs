//! Disruption budgets: `matching pods -> how many may be evicted now`. The API decides about each eviction.
//!
//! With `maxUnavailable` or a percentage, the expected pods are those that the controllers of the matching ones should have: all of them are
//! missed if a controller can't create them. Pods without a controller are not expected.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::Object;
use crate::resources::kinds;
use crate::status::Status;
use crate::store::Change;

use super::context::{Context, ignore_not_found};
use super::controller::Controller;
use super::pod::Pod;
use super::queue::Queue;
use crate::object::{self, Condition, at, integer, set_condition};
use crate::selectors::object as selector;

const MANAGER: &str = "kube-controller-manager";
/// How long an evicted pod counts as disrupted while its deletion is not observed.
const DELETION_TIMEOUT: Duration = Duration::from_secs(120);

/// The controller's queue, by namespace and name.
#[derive(Debug)]
pub(crate) struct DisruptionBudgets {
    queue: Queue<(String, String)>,
    /// The selectors of the budgets, by namespace and name.
    budgets: BTreeMap<String, BTreeMap<String, Value>>,
}

/// The numbers of a budget's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BudgetStatus {
    expected: i64,
    healthy: i64,
    desired: i64,
    allowed: i64,
}

impl DisruptionBudgets {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
            budgets: BTreeMap::new(),
        }
    }
}

/// The status of `budget` with these pods, if as many are `expected`.
fn budget_status(budget: &Value, pods: &[Pod<'_>], expected: i64, now: Timestamp) -> BudgetStatus {
    let healthy = pods.iter().filter(|pod| {
        pod.is_ready() && !pod.is_terminating() && !is_disrupted(budget, pod.name(), now)
    });
    let healthy = number(healthy.count());
    let desired = if let Some(most) = at(budget, "/spec/maxUnavailable") {
        (expected - share(most, expected)).max(0)
    } else {
        at(budget, "/spec/minAvailable").map_or(0, |least| share(least, expected))
    };
    let allowed = if expected == 0 {
        0
    } else {
        (healthy - desired).max(0)
    };
    BudgetStatus {
        expected,
        healthy,
        desired,
        allowed,
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How many pods there should be; `None` if a controller does not exist, or does not say.
fn expected(api: &Api, budget: &Value, pods: &[Pod<'_>]) -> Option<i64> {
    if at(budget, "/spec/minAvailable").is_some_and(Value::is_i64) {
        return Some(number(pods.len()));
    }
    let owners = pods.iter().filter_map(|pod| object::controller_of(pod.0));
    let owners: BTreeMap<_, _> = owners.map(|of| (object::text(of, "/uid"), of)).collect();
    let namespace = object::namespace(budget);
    let mut replicas = BTreeMap::new();
    for owner in owners.into_values() {
        let controller = scaled_controller(api, namespace, owner)?;
        let count = integer(&controller, "/spec/replicas").unwrap_or(1);
        replicas.insert(object::uid(&controller).to_owned(), count);
    }
    Some(replicas.values().sum())
}

/// The controller that says how many pods there should be: of a ReplicaSet that a Deployment controls, that is the Deployment.
fn scaled_controller(api: &Api, namespace: &str, owner: &Value) -> Option<Object> {
    let (version, kind) = (
        object::text(owner, "/apiVersion"),
        object::text(owner, "/kind"),
    );
    let kind = api.kind_of(version, kind)?;
    let controller = api
        .get(&kind, namespace, object::text(owner, "/name"))
        .ok()?;
    if object::uid(&controller) != object::text(owner, "/uid") {
        return None;
    }
    match object::controller_of(&controller).filter(|_| kind == *kinds::REPLICA_SETS) {
        Some(owner) => scaled_controller(api, namespace, owner),
        None => kind.has_subresource("scale").then_some(controller),
    }
}

/// A number, or a percentage of `total`, rounded up.
fn share(amount: &Value, total: i64) -> i64 {
    let percent = amount
        .as_str()
        .and_then(|text| text.strip_suffix('%'))
        .and_then(|text| text.parse::<i64>().ok());
    percent.map_or_else(
        || amount.as_i64().unwrap_or_default(),
        |percent| (total.saturating_mul(percent) + 99) / 100,
    )
}

/// Returns when an evicted pod that was not deleted counts again.
fn recount(
    context: &Context,
    (within, name): &(String, String),
) -> Result<Option<Timestamp>, Status> {
    let Ok(budget) = context
        .api
        .get(&kinds::POD_DISRUPTION_BUDGETS, within, name)
    else {
        return Ok(None);
    };
    let all = context.api.list(&kinds::PODS, Some(within));
    let matching = all.iter().map(|pod| Pod(pod));
    let pods: Vec<Pod<'_>> = matching
        .filter(|pod| {
            selector::matches(&budget["spec"]["selector"], pod.labels()) && !pod.is_terminal()
        })
        .collect();
    let now = context.now();
    let expected = expected(&context.api, &budget, &pods);
    let mut again = None;
    ignore_not_found(context.edit(
        MANAGER,
        (&kinds::POD_DISRUPTION_BUDGETS, Some("status")),
        &budget,
        |budget| {
            forget_disrupted(budget, &pods, now);
            again = counts_again(budget);
            let Some(expected) = expected else {
                budget["status"]["disruptionsAllowed"] = json!(0);
                set_disruption_allowed(budget, ("False", "SyncFailed"), now);
                return;
            };
            let counts = budget_status(budget, &pods, expected, now);
            let generation = integer(budget, "/metadata/generation").unwrap_or_default();
            let status = &mut budget["status"];
            for (field, number) in [
                ("expectedPods", counts.expected),
                ("currentHealthy", counts.healthy),
                ("desiredHealthy", counts.desired),
                ("disruptionsAllowed", counts.allowed),
                ("observedGeneration", generation),
            ] {
                status[field] = json!(number);
            }
            let allowed = if counts.allowed > 0 {
                ("True", "SufficientPods")
            } else {
                ("False", "InsufficientPods")
            };
            set_disruption_allowed(budget, allowed, now);
        },
    ))?;
    Ok(again)
}

fn set_disruption_allowed(
    budget: &mut Value,
    (status, reason): (&'static str, &'static str),
    now: Timestamp,
) {
    let condition = Condition {
        kind: "DisruptionAllowed",
        status,
        reason,
        message: "",
    };
    set_condition(budget, condition, now);
}

/// Whether the pod was evicted, and may not be deleted yet.
fn is_disrupted(budget: &Value, pod: &str, now: Timestamp) -> bool {
    let until = disrupted_until(&budget["status"]["disruptedPods"][pod]);
    until.is_some_and(|until| now < until)
}

/// Until when a pod that was evicted at this time counts as such.
fn disrupted_until(evicted_at: &Value) -> Option<Timestamp> {
    let at: Timestamp = evicted_at.as_str()?.parse().ok()?;
    Some(at + DELETION_TIMEOUT)
}

/// When the first of the evicted pods counts again.
fn counts_again(budget: &Value) -> Option<Timestamp> {
    let disrupted = object::map(budget, "/status/disruptedPods");
    let times = disrupted.into_iter().flat_map(|pods| pods.values());
    times.filter_map(disrupted_until).min()
}

/// Evicted pods are listed until their deletion is observed, or has failed.
fn forget_disrupted(budget: &mut Value, pods: &[Pod<'_>], now: Timestamp) {
    let is_listed = |budget: &Value, name: &str| {
        let is_alive = |pod: &Pod<'_>| pod.name() == name && !pod.is_terminating();
        pods.iter().any(is_alive) && is_disrupted(budget, name, now)
    };
    let names = object::map(budget, "/status/disruptedPods").into_iter();
    let gone: Vec<_> = names
        .flat_map(|names| names.keys())
        .filter(|name| !is_listed(budget, name))
        .cloned()
        .collect();
    let disrupted = budget
        .pointer_mut("/status/disruptedPods")
        .and_then(Value::as_object_mut);
    if let Some(disrupted) = disrupted {
        for name in gone {
            disrupted.remove(&name);
        }
    }
}

impl Controller for DisruptionBudgets {
    type Key = (String, String);
    type Failure = Status;

    fn queue(&mut self) -> &mut Queue<(String, String)> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, _world: &Context) {
        if change.kind == *kinds::POD_DISRUPTION_BUDGETS {
            let key = (change.namespace.clone(), change.name.clone());
            if let Some(budget) = &change.new {
                self.budgets
                    .entry(key.0.clone())
                    .or_default()
                    .insert(key.1.clone(), budget["spec"]["selector"].clone());
                self.queue.add(key);
            } else {
                self.budgets
                    .entry(key.0.clone())
                    .or_default()
                    .remove(&key.1);
                self.queue.remove(&key);
            }
        } else if change.kind == *kinds::PODS
            && let Some(budgets) = self.budgets.get(&change.namespace)
        {
            let facts = |pod: &Object| {
                let pod = Pod(pod);
                (
                    pod.labels().cloned(),
                    pod.is_ready(),
                    pod.is_terminating(),
                    pod.is_terminal(),
                )
            };
            if change.old.as_ref().map(facts) != change.new.as_ref().map(facts) {
                let pods = [&change.old, &change.new].into_iter().flatten();
                let labels: Vec<_> = pods.map(|pod| Pod(pod).labels()).collect();
                for (budget, selector) in budgets {
                    if labels
                        .iter()
                        .any(|labels| selector::matches(selector, *labels))
                    {
                        self.queue.add((change.namespace.clone(), budget.clone()));
                    }
                }
            }
        }
    }

    fn sync(&mut self, context: &mut Context, budget: &(String, String)) -> Result<(), Status> {
        if let Some(again) = recount(context, budget)? {
            self.queue.add_at(budget.clone(), context.instant(again));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::min_available(json!({"minAvailable": 2}), 4, 3, [4, 3, 2, 1])]
    #[case::min_percent_rounds_up(json!({"minAvailable": "50%"}), 5, 5, [5, 5, 3, 2])]
    #[case::max_unavailable(json!({"maxUnavailable": 1}), 3, 3, [3, 3, 2, 1])]
    #[case::max_percent_rounds_up(json!({"maxUnavailable": "5%"}), 39, 39, [39, 39, 37, 2])]
    #[case::used_up(json!({"maxUnavailable": 1}), 3, 2, [3, 2, 2, 0])]
    #[case::no_pods(json!({"minAvailable": 0}), 0, 0, [0, 0, 0, 0])]
    fn allowed_disruptions(
        #[case] spec: Value,
        #[case] expected: usize,
        #[case] ready: usize,
        #[case] numbers: [i64; 4],
    ) {
        let pod = |ready: bool| {
            let status = if ready { "True" } else { "False" };
            json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
        };
        let pods: Vec<Value> = (0..expected).map(|i| pod(i < ready)).collect();
        let pods: Vec<Pod<'_>> = pods.iter().map(Pod).collect();
        let counts = budget_status(
            &json!({"spec": spec}),
            &pods,
            number(expected),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(
            [
                counts.expected,
                counts.healthy,
                counts.desired,
                counts.allowed
            ],
            numbers
        );
    }
}
