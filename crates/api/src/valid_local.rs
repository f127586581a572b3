//! Validation of a LocalReplicaSet beyond the schema: turns it into a type that can't be invalid.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;

use crate::{
    FieldError, PodTemplate, ValidTemplate, annotations, dns,
    drain::check_drain,
    field::Errors,
    local_replica_set::{
        AntiaffinityConstraint, LocalReplicaSet, LocalReplicaSetSpec, MAX_ANTIAFFINITY, UpdateMode,
    },
    local_strategy::ValidLocalStrategy,
    selector,
    valid::{check_migration_policy, check_object, check_pods, non_negative, positive},
    valid_deployment::deadline_of,
};

/// A valid LocalReplicaSet: the only form that the controller works with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValidLocalReplicaSet {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid of the object; empty if it has not been created.
    pub uid: String,
    /// The generation of the spec; 0 if the object has not been created.
    pub generation: i64,
    /// The number of pods (L7).
    pub replicas: u32,
    /// Seconds a pod must be ready before it counts as available.
    pub min_ready_seconds: u32,
    /// The label selector of the pods, normalized. Not empty, and matches the labels of the template.
    pub selector: LabelSelector,
    /// The selector as a string, for the scale subresource: `app=web`.
    pub selector_text: String,
    /// The template of the pods. Its spec is an object with containers.
    pub template: ValidTemplate,
    /// The account whose quota the pods use; empty for none.
    pub account_id: String,
    /// The segment of nodes that the pods run in.
    pub node_segment_id: String,
    /// The most pods on nodes with one value of a label; one entry for each label.
    pub antiaffinity: Vec<ValidAntiaffinity>,
    /// Budget (L14) and speed (L15).
    pub strategy: ValidLocalStrategy,
    /// Which changes of pods are allowed.
    pub changes: AllowedChanges,
    /// After how long a pod that is not available has failed; `None` for never. Above `min_ready_seconds`.
    pub progress_deadline: Option<Duration>,
    /// How many old revisions are kept.
    pub revision_history_limit: u32,
    /// After how long a pod that does not shut down is deleted by force (L17).
    pub removal_timeout: Duration,
    /// After how long an eviction that is not finished no longer delays updates (L19).
    pub eviction_timeout: Duration,
    /// How long a node must not be ready before its pods are evicted (L18).
    pub node_timeout: Duration,
    /// How long a ready pod is out of endpoints before it is removed or its containers restart. At most an hour.
    pub drain: Duration,
    /// The name of its MigrationPolicy; `None` for the one whose selector selects it (M1).
    pub migration_policy: Option<String>,
    /// Its own labels.
    pub labels: BTreeMap<String, String>,
}

/// The most pods on nodes that have the same value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidAntiaffinity {
    /// The key of the label.
    pub key: String,
    /// Pods, at least 1.
    pub max_pods: u32,
}

/// Which changes of pods are allowed (L8, C4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedChanges {
    /// All of them.
    All,
    /// No update begins, since the user paused it. Scaling, repair and evictions go on.
    NoUpdatesWhilePaused,
    /// No update begins, by the mode of the set. Scaling, repair and evictions go on.
    NoUpdatesByMode,
    /// None.
    None,
}

impl ValidLocalReplicaSet {
    /// Validates `set`. Returns every error, not only the first.
    pub fn check(set: &LocalReplicaSet) -> Result<Self, Vec<FieldError>> {
        let spec = &set.spec;
        let mut errors = Errors::default();
        let name = set.name_any();
        check_object(&name, &set.metadata, &mut errors);
        let replicas = non_negative(spec.replicas, "spec.replicas", &mut errors);
        let min_ready_seconds =
            non_negative(spec.min_ready_seconds, "spec.minReadySeconds", &mut errors);
        check_pods(&spec.selector, &spec.template, &mut errors);
        check_evictions(&spec.template, &mut errors);
        check_ids(spec, &mut errors);
        let constraints = spec.constraints.iter();
        let antiaffinity: Vec<_> = constraints.flat_map(|all| &all.antiaffinity).collect();
        let antiaffinity = check_antiaffinity(&antiaffinity, &mut errors);
        check_migration_policy(spec.migration_policy.as_deref(), &mut errors);
        let drain = check_drain(spec.drain_seconds, &mut errors);
        let strategy = (spec.deployment_strategy).check("spec.deploymentStrategy", &mut errors);
        let progress_deadline = check_deadline(spec, &mut errors);
        let limit = spec.revision_history_limit;
        let revision_history_limit = non_negative(limit, "spec.revisionHistoryLimit", &mut errors);
        let node_timeout = non_negative(
            spec.node_timeout_seconds,
            "spec.nodeTimeoutSeconds",
            &mut errors,
        );
        let mut seconds = |number, field| {
            let seconds = positive(number, field, &mut errors);
            Duration::from_secs(seconds.into())
        };
        let removal_timeout = seconds(spec.removal_timeout_seconds, "spec.removalTimeoutSeconds");
        let eviction_timeout =
            seconds(spec.eviction_timeout_seconds, "spec.evictionTimeoutSeconds");
        errors.or(Self {
            namespace: set.namespace().unwrap_or_default(),
            name,
            uid: set.uid().unwrap_or_default(),
            generation: set.metadata.generation.unwrap_or_default(),
            replicas,
            min_ready_seconds,
            selector: selector::normalized(&spec.selector),
            selector_text: selector::to_text(&spec.selector),
            template: ValidTemplate::of(&spec.template),
            account_id: spec.account_id.clone(),
            node_segment_id: spec.node_segment_id.clone(),
            antiaffinity,
            strategy,
            changes: AllowedChanges::of(spec),
            progress_deadline,
            revision_history_limit,
            removal_timeout,
            eviction_timeout,
            node_timeout: Duration::from_secs(node_timeout.into()),
            drain,
            migration_policy: spec.migration_policy.clone(),
            labels: set.metadata.labels.clone().unwrap_or_default(),
        })
    }
}

impl AllowedChanges {
    fn of(spec: &LocalReplicaSetSpec) -> Self {
        match (spec.stopped, spec.update_mode, spec.paused) {
            (true, _, _) => Self::None,
            (false, UpdateMode::Never, _) => Self::NoUpdatesByMode,
            (false, UpdateMode::Rolling, true) => Self::NoUpdatesWhilePaused,
            (false, UpdateMode::Rolling, false) => Self::All,
        }
    }
}

/// A template that asks for evictions has them without an end: each successor asks for its own.
fn check_evictions(template: &PodTemplate, errors: &mut Errors) {
    let metadata = &template.metadata;
    for (list, entries) in [
        ("labels", &metadata.labels),
        ("annotations", &metadata.annotations),
    ] {
        let field = format!("spec.template.metadata.{list}[{}]", annotations::EVICT);
        let is_set = entries.contains_key(annotations::EVICT);
        errors.require(
            !is_set,
            &field,
            "must not be set: each new pod would be evicted",
        );
    }
}

fn check_ids(spec: &LocalReplicaSetSpec, errors: &mut Errors) {
    let ids = [
        ("spec.accountId", &spec.account_id, true),
        ("spec.nodeSegmentId", &spec.node_segment_id, false),
    ];
    for (field, id, may_be_empty) in ids {
        let is_set = may_be_empty || !id.is_empty();
        errors.require(is_set, field, "must not be empty");
        errors.require(dns::is_label_value(id), field, "is not a valid label value");
    }
}

fn check_antiaffinity(
    constraints: &[&AntiaffinityConstraint],
    errors: &mut Errors,
) -> Vec<ValidAntiaffinity> {
    const FIELD: &str = "spec.constraints.antiaffinity";
    let message = format!("must have at most {MAX_ANTIAFFINITY} entries");
    errors.require(constraints.len() <= MAX_ANTIAFFINITY, FIELD, &message);
    let mut keys = BTreeSet::new();
    let valid = constraints.iter().enumerate().map(|(index, constraint)| {
        let field = format!("{FIELD}[{index}].key");
        let key = &*constraint.key;
        errors.require(dns::is_label_key(key), &field, "is not a valid label key");
        let message = format!("must be unique, but {key} is the key of another entry");
        errors.require(keys.insert(key), &field, &message);
        let field = format!("{FIELD}[{index}].maxPods");
        ValidAntiaffinity {
            key: key.to_owned(),
            max_pods: positive(constraint.max_pods, &field, errors),
        }
    });
    valid.collect()
}

/// No pod is available before `minReadySeconds`: with a shorter deadline, each would fail.
fn check_deadline(spec: &LocalReplicaSetSpec, errors: &mut Errors) -> Option<Duration> {
    let (deadline, ready) = (spec.progress_deadline_seconds, spec.min_ready_seconds);
    if deadline <= ready {
        let message = format!("must be above spec.minReadySeconds ({ready}), but is {deadline}");
        errors.add("spec.progressDeadlineSeconds", message);
    }
    deadline_of(deadline)
}
