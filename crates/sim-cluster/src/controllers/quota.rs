//! Resource quotas: `objects of a namespace -> status.hard, status.used`.
//!
//! Admission raises `used` when an object is created. This controller counts again when a quota changes and when an object is
//! created, terminates or is removed, so that `used` falls a moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::builtin::admission::{Usage, quota_matches, usage_from, usage_of, usage_to_value};
use crate::quantity::Quantity;
use crate::resources::{Kind, kinds};
use crate::status::Status;
use crate::store::Change;

use super::context::{Context, ignore_not_found};
use super::controller::Controller;
use super::pod::Pod;
use super::queue::Queue;
use crate::object::{is_terminating, name, namespace};

const MANAGER: &str = "kube-controller-manager";
/// Changes within this time are counted together: the deletion of a thousand pods takes one count, not a thousand.
const GATHER: Duration = Duration::from_millis(20);

/// The controller's queue, by namespace and name.
#[derive(Debug)]
pub(crate) struct Quotas {
    queue: Queue<(String, String)>,
    /// The names of the quotas, by namespace.
    quotas: BTreeMap<String, BTreeSet<String>>,
}

impl Quotas {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            queue: Queue::new(context.settings.sync_latency),
            quotas: BTreeMap::new(),
        }
    }

    fn observe_quota(&mut self, change: &Change) {
        let key = (change.namespace.clone(), change.name.clone());
        if change.new.is_some() {
            self.quotas
                .entry(key.0.clone())
                .or_default()
                .insert(key.1.clone());
            self.queue.add(key);
        } else {
            if let Some(quotas) = self.quotas.get_mut(&key.0) {
                quotas.remove(&key.1);
            }
            self.queue.remove(&key);
        }
    }
}

/// The usage of all resources that the quota limits; zero for one that no object uses.
fn count(context: &Context, quota: &Value) -> (Usage, Usage) {
    let hard = usage_from(&quota["spec"]["hard"]);
    let mut used: Usage = hard
        .keys()
        .map(|resource| (resource.clone(), Quantity::ZERO))
        .collect();
    for kind in limited_kinds(context, &hard) {
        for object in context.api.list(&kind, Some(namespace(quota))) {
            if !quota_matches(quota, &kind.plural, &object) {
                continue;
            }
            for (resource, amount) in usage_of(&kind.group, &kind.plural, &object) {
                if let Some(sum) = used.get_mut(&resource) {
                    *sum = sum.plus(amount);
                }
            }
        }
    }
    (hard, used)
}

/// The kinds whose objects can use one of these resources.
fn limited_kinds(context: &Context, hard: &Usage) -> Vec<Kind> {
    let by_count = |kind: &Kind| {
        hard.contains_key(&format!("count/{}", kind.group_resource()))
            || hard.contains_key(&kind.plural)
    };
    // Only pods use resources other than numbers of objects.
    let of_pods = hard.keys().any(|resource| !resource.starts_with("count/"));
    let mut seen = BTreeSet::new();
    let kinds = context
        .api
        .kinds()
        .into_iter()
        .filter(|kind| kind.namespaced);
    let limited = kinds.filter(|kind| by_count(kind) || (of_pods && *kind == *kinds::PODS));
    limited
        .filter(|kind| seen.insert(kind.storage.clone()))
        .collect()
}

fn recount(context: &Context, (within, quota): &(String, String)) -> Result<(), Status> {
    let Ok(quota) = context.api.get(&kinds::RESOURCE_QUOTAS, within, quota) else {
        return Ok(());
    };
    if is_terminating(&quota) {
        return Ok(());
    }
    let (hard, used) = count(context, &quota);
    let same = |field: &str, amounts: &Usage| {
        quota["status"]
            .get(field)
            .is_some_and(|present| usage_from(present) == *amounts)
    };
    if same("hard", &hard) && same("used", &used) {
        return Ok(());
    }
    tracing::trace!(quota = name(&quota), "counted anew");
    ignore_not_found(context.edit(
        MANAGER,
        (&kinds::RESOURCE_QUOTAS, Some("status")),
        &quota,
        |quota| {
            quota["status"] = json!({"hard": usage_to_value(&hard), "used": usage_to_value(&used)});
        },
    ))
}

impl Controller for Quotas {
    type Key = (String, String);
    type Failure = Status;

    fn queue(&mut self) -> &mut Queue<(String, String)> {
        &mut self.queue
    }

    fn observe(&mut self, change: &Change, _world: &Context) {
        if change.kind == *kinds::RESOURCE_QUOTAS {
            self.observe_quota(change);
        }
        let Some(quotas) = self.quotas.get(&change.namespace) else {
            return;
        };
        let ended = |object: Option<&crate::object::Object>| {
            object.is_some_and(|object| Pod(object).is_terminal())
        };
        let counts = change.old.is_none()
            || change.new.is_none()
            || (change.kind == *kinds::PODS
                && ended(change.new.as_ref())
                && !ended(change.old.as_ref()));
        if counts {
            for quota in quotas {
                self.queue.add_at(
                    (change.namespace.clone(), quota.clone()),
                    Instant::now() + GATHER,
                );
            }
        }
    }

    fn sync(&mut self, context: &mut Context, quota: &(String, String)) -> Result<(), Status> {
        recount(context, quota)
    }
}
