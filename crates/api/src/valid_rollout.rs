//! Validation of `spec.rollout`, and its form for `federated-rollout`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use federated_rollout::{Approval, OnFailure, Speed, Step};

use crate::{
    MAX_ENTRIES, dns,
    field::Errors,
    rollout::{
        FailurePolicy, MAX_NAMED_CLUSTERS, MAX_REVISION_LENGTH, MAX_STEP_CLUSTERS, MAX_STEPS,
        OTHERS, Rollout, RolloutApproval, RolloutSpeed, RolloutStep, StepApproval,
    },
    valid::{non_negative, positive},
};

/// A valid [`Rollout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidRollout {
    /// The most pods to start in a time, over all clusters (L15).
    pub speed: Option<Speed>,
    /// What happens when a rollout fails.
    pub on_failure: OnFailure,
    steps: Vec<RolloutStep>,
    approvals: Vec<RolloutApproval>,
}

impl Rollout {
    /// Validates all fields, and adds every error at its field below `path`. What it returns is valid if there is none.
    pub(crate) fn check(&self, path: &str, errors: &mut Errors) -> ValidRollout {
        check_steps(&self.steps, &format!("{path}.steps"), errors);
        check_approvals(&self.approvals, &format!("{path}.approvals"), errors);
        let speed = self.speed.as_ref();
        ValidRollout {
            speed: speed.map(|speed| speed.check(&format!("{path}.speed"), errors)),
            on_failure: match self.on_failure {
                FailurePolicy::Stop => OnFailure::Stop,
                FailurePolicy::Undo => OnFailure::Undo,
            },
            steps: self.steps.clone(),
            approvals: self.approvals.clone(),
        }
    }
}

impl RolloutSpeed {
    fn check(self, path: &str, errors: &mut Errors) -> Speed {
        let portion = positive(
            self.update_portion,
            &format!("{path}.updatePortion"),
            errors,
        );
        let field = format!("{path}.minDelaySeconds");
        let seconds = positive(self.min_delay_seconds, &field, errors);
        Speed {
            portion: portion.into(),
            min_delay: Duration::from_secs(seconds.into()),
        }
    }
}

fn check_steps(steps: &[RolloutStep], path: &str, errors: &mut Errors) {
    at_most(steps.len(), MAX_STEPS, path, errors);
    let named = steps.iter().map(|step| step.clusters.len()).sum::<usize>();
    let message = format!("must have at most {MAX_NAMED_CLUSTERS} clusters together");
    errors.require(named <= MAX_NAMED_CLUSTERS, path, &message);
    let mut names = BTreeMap::new();
    let mut clusters = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let field = format!("{path}.name");
        errors.require(dns::is_label(&step.name), &field, dns::IS_NO_LABEL);
        if let Some(first) = names.insert(&*step.name, index) {
            errors.add(
                field,
                format!("is the name of step {first}, too: must be unique"),
            );
        }
        check_step(step, &path, errors);
        let field = format!("{path}.clusters");
        for cluster in &step.clusters {
            if let Some(first) = clusters.insert(&**cluster, &*step.name) {
                let message = format!("must not have {cluster}, which is in step {first} already");
                errors.add(&field, message);
            }
            let is_last = index + 1 == steps.len();
            let message = "must not have * (all other clusters): only the last step may";
            errors.require(cluster != OTHERS || is_last, &field, message);
        }
    }
}

/// Checks the fields of one step by themselves.
fn check_step(step: &RolloutStep, path: &str, errors: &mut Errors) {
    let field = format!("{path}.clusters");
    errors.require(
        !step.clusters.is_empty(),
        &field,
        "must name at least one cluster",
    );
    at_most(step.clusters.len(), MAX_STEP_CLUSTERS, &field, errors);
    for cluster in &step.clusters {
        errors.require(
            cluster == OTHERS || dns::is_label(cluster),
            &format!("{field}[{cluster}]"),
            "must be '*' or the name of a cluster: a DNS label of at most 63 characters",
        );
    }
    non_negative(step.soak_seconds, &format!("{path}.soakSeconds"), errors);
    if let Some(clusters) = step.max_concurrent_clusters {
        positive(clusters, &format!("{path}.maxConcurrentClusters"), errors);
    }
}

/// Checks the form of approvals. One of a step or a revision that does not exist is no error: others than the user may write
/// approvals, and the user may remove a step.
fn check_approvals(approvals: &[RolloutApproval], path: &str, errors: &mut Errors) {
    at_most(approvals.len(), MAX_ENTRIES, path, errors);
    for (index, approval) in approvals.iter().enumerate() {
        errors.require(
            dns::is_label(&approval.step),
            &format!("{path}[{index}].step"),
            dns::IS_NO_LABEL,
        );
        errors.require(
            (1..=MAX_REVISION_LENGTH).contains(&approval.revision.len()),
            &format!("{path}[{index}].revision"),
            &format!("must have 1 to {MAX_REVISION_LENGTH} characters"),
        );
    }
}

fn at_most(entries: usize, most: usize, field: &str, errors: &mut Errors) {
    let message = format!("must have at most {most} entries");
    errors.require(entries <= most, field, &message);
}

impl Default for ValidRollout {
    /// All clusters at the same time, limited by the budget alone.
    fn default() -> Self {
        Self {
            speed: None,
            on_failure: OnFailure::Stop,
            steps: Vec::new(),
            approvals: Vec::new(),
        }
    }
}

impl ValidRollout {
    /// The members of each step, if `all` are the members of the federation: `*` stands for those that no step names. Names of
    /// clusters that do not exist stay.
    #[must_use]
    pub fn step_members<'a>(&'a self, all: &[&'a str]) -> Vec<Vec<&'a str>> {
        let named = self.steps.iter().flat_map(|step| &step.clusters);
        let named: BTreeSet<_> = named.map(String::as_str).collect();
        let members = self.steps.iter().map(|step| {
            let clusters = step.clusters.iter().map(String::as_str);
            let mut members: Vec<_> = clusters.filter(|cluster| *cluster != OTHERS).collect();
            if members.len() < step.clusters.len() {
                members.extend(all.iter().copied().filter(|member| !named.contains(member)));
            }
            members
        });
        members.collect()
    }

    /// The names of clusters that steps have, also of those that do not exist.
    pub fn named_clusters(&self) -> impl Iterator<Item = &str> {
        let named = self.steps.iter().flat_map(|step| &step.clusters);
        named.map(String::as_str).filter(|name| *name != OTHERS)
    }

    /// The steps as a rollout takes them, with the members that [`Self::step_members`] returned.
    #[must_use]
    pub fn steps<'a>(&'a self, members: &'a [Vec<&'a str>]) -> Vec<Step<'a>> {
        let steps = self.steps.iter().zip(members).map(|(step, members)| Step {
            name: &step.name,
            members,
            soak: Duration::from_secs(step.soak_seconds.unsigned_abs().into()),
            approval_before: step.approval == StepApproval::Before,
            max_concurrent: (step.max_concurrent_clusters)
                .and_then(|clusters| usize::try_from(clusters).ok()),
        });
        steps.collect()
    }

    /// The name of the step with this number; `None` of the implied last one.
    #[must_use]
    pub fn step_name(&self, step: usize) -> Option<&str> {
        self.steps.get(step).map(|step| &*step.name)
    }

    /// The approvals as a rollout takes them.
    #[must_use]
    pub fn approvals(&self) -> Vec<Approval<'_>> {
        let approvals = self.approvals.iter().map(|approval| Approval {
            step: &approval.step,
            revision: &approval.revision,
        });
        approvals.collect()
    }
}
