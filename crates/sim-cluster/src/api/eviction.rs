//! The subresource `eviction`: a pod is deleted if its disruption budget allows it.
//!
//! As in Kubernetes, these are several writes: the budget's status counts the eviction, the pod gets a condition, and is deleted.

use serde_json::{Value, json};

use super::delete::Deleted;
use super::options::{DeleteOptions, WriteOptions};
use super::request::Target;
use super::state::Api;
use crate::object::{self, Condition, Object, name, text};
use crate::resources::kinds;
use crate::selectors::object as selector;
use crate::status::{Status, StatusCause};

impl Api {
    /// Evicts a pod.
    ///
    /// # Errors
    /// 404; 429 if its budget allows no disruption now, or has not been observed since its last change; 500 if several budgets match.
    pub fn evict(
        &self,
        namespace: &str,
        pod: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let found = self.get(&kinds::PODS, namespace, pod)?;
        if counts(&found)
            && let Some(budget) = self.budget_of(namespace, &found)?
            && (is_ready(&found) || !allows_unready(&budget))
        {
            self.count_disruption(namespace, name(&budget), pod, options.dry_run)?;
        }
        if !options.dry_run {
            self.mark_disrupted(namespace, &found)?;
        }
        self.delete(&kinds::PODS, namespace, pod, options)
    }

    /// The budget that matches the pod.
    fn budget_of(&self, namespace: &str, pod: &Value) -> Result<Option<Object>, Status> {
        let labels = object::map(pod, "/metadata/labels");
        let all = self.list(&kinds::POD_DISRUPTION_BUDGETS, Some(namespace));
        let mut matching = all
            .into_iter()
            .filter(|budget| selector::matches(&budget["spec"]["selector"], labels));
        let first = matching.next();
        if matching.next().is_some() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(500, "", message));
        }
        Ok(first)
    }

    /// Takes one of the disruptions that the budget allows.
    fn count_disruption(
        &self,
        namespace: &str,
        budget: &str,
        pod: &str,
        dry_run: bool,
    ) -> Result<(), Status> {
        let target = Target {
            kind: &kinds::POD_DISRUPTION_BUDGETS,
            subresource: Some("status"),
            namespace,
            name: budget,
        };
        let now = self.clock().now_time();
        let options = WriteOptions {
            dry_run,
            ..WriteOptions::default()
        };
        self.modify_written(target, &options, |budget| {
            let observed = object::integer(budget, "/status/observedGeneration");
            let is_observed = observed >= Some(object::generation(budget));
            let allowed = object::integer(budget, "/status/disruptionsAllowed").unwrap_or(0);
            if !is_observed || allowed == 0 {
                return Err(over_budget(budget, is_observed));
            }
            budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
            budget["status"]["disruptedPods"][pod] = json!(now);
            Ok(())
        })?;
        Ok(())
    }

    fn mark_disrupted(&self, namespace: &str, pod: &Value) -> Result<(), Status> {
        let condition = Condition {
            kind: "DisruptionTarget",
            status: "True",
            reason: "EvictionByEvictionAPI",
            message: "Eviction API: evicting",
        };
        let now = self.clock().now();
        let part = Some("status");
        self.modify(&kinds::PODS, part, namespace, name(pod), |pod| {
            object::set_condition(pod, condition, now);
        })?;
        Ok(())
    }
}

/// Whether budgets count it: it runs, and is not being deleted.
fn counts(pod: &Value) -> bool {
    let phase = text(pod, "/status/phase");
    !matches!(phase, "Succeeded" | "Failed" | "Pending") && !object::is_terminating(pod)
}

fn is_ready(pod: &Value) -> bool {
    object::condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Whether pods that are not ready may be evicted whatever the budget allows: by its policy.
fn allows_unready(budget: &Value) -> bool {
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let is_healthy =
        number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy");
    is_healthy || budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
}

fn over_budget(budget: &Value, is_observed: bool) -> Status {
    let name = name(budget);
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let message = if is_observed {
        let (desired, current) = (number("desiredHealthy"), number("currentHealthy"));
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    } else {
        format!("The disruption budget {name} is still being processed by the server.")
    };
    let status = Status::new(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    status.with_cause(StatusCause::new("DisruptionBudget", "", message))
}
