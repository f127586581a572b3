//! Validation beyond the schema: turns a FederatedReplicaSet into a type that can't be invalid (F2, F4).

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    DeletionPolicy, FederatedReplicaSet, FieldError, JsonText, LocalKind, MAX_ENTRIES, ObjectKey,
    Placement, PodTemplate, Rescheduling, TemplateMetadata, ValidRescheduling, WorkloadKey,
    annotations, dns, drain::check_drain, field::Errors, labels, placement::MAX_CLUSTERS,
    preferences, selector,
};

/// A valid FederatedReplicaSet: the only form that the controller works with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValidFrs {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The kind of the workload that it has in each member.
    pub local: LocalKind,
    /// The uid of the object; empty if it has not been created.
    pub uid: String,
    /// The generation of the spec; 0 if the object has not been created.
    pub generation: i64,
    /// The labels of the object, which its local ReplicaSets get, too.
    pub labels: BTreeMap<String, String>,
    /// The number of replicas over all clusters, N.
    pub replicas: u32,
    /// Seconds a pod must be ready before it counts as available.
    pub min_ready_seconds: u32,
    /// The label selector of the pods, normalized. Not empty, and matches the labels of the template.
    pub selector: LabelSelector,
    /// The selector as a string, for the scale subresource: `app=web`.
    pub selector_text: String,
    /// The template of the pods. Its spec is an object with containers.
    pub template: ValidTemplate,
    /// How the replicas spread: the typed field, else the annotation, else evenly (F2).
    pub placement: Placement,
    /// When replicas are rescheduled, and how many at a time.
    pub rescheduling: ValidRescheduling,
    /// Hash of the annotation that the placement comes from; `None` without one. Detects a changed annotation, which does
    /// not change the generation.
    pub preferences_hash: Option<String>,
    /// How long ready pods stay after clients have been told to leave them, before they are removed; zero for no time.
    pub drain: Duration,
    /// The name of the MigrationPolicy of its LocalReplicaSets, in their own clusters (M1). Only if these are its local workloads.
    pub migration_policy: Option<String>,
    /// The federation that handles the object (F40); empty for the federation without a name.
    pub federation: String,
    /// What a deletion does to the local ReplicaSets (F5).
    pub deletion_policy: DeletionPolicy,
    /// Whether `spec.paused` stops changes in the members.
    pub paused: bool,
}

/// A valid template of pods.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidTemplate {
    /// Labels and annotations of the pods.
    pub metadata: TemplateMetadata,
    /// The spec of the pods: an object with containers.
    pub spec: JsonText,
}

/// What the two kinds of sets have in common: the fields of a FederatedReplicaSet.
pub(crate) struct SetFields<'a> {
    pub(crate) local: LocalKind,
    pub(crate) name: String,
    pub(crate) metadata: &'a ObjectMeta,
    pub(crate) replicas: i32,
    pub(crate) min_ready_seconds: i32,
    pub(crate) selector: &'a LabelSelector,
    pub(crate) template: &'a PodTemplate,
    pub(crate) placement: Option<&'a Placement>,
    pub(crate) rescheduling: Option<&'a Rescheduling>,
    pub(crate) drain_seconds: i32,
    pub(crate) federation: &'a str,
    pub(crate) deletion_policy: DeletionPolicy,
    /// Whether every change in the members stops.
    pub(crate) paused: bool,
}

impl<'a> From<&'a FederatedReplicaSet> for SetFields<'a> {
    fn from(frs: &'a FederatedReplicaSet) -> Self {
        let spec = &frs.spec;
        Self {
            local: LocalKind::ReplicaSet,
            name: frs.name_any(),
            metadata: &frs.metadata,
            replicas: spec.replicas,
            min_ready_seconds: spec.min_ready_seconds,
            selector: &spec.selector,
            template: &spec.template,
            placement: spec.placement.as_ref(),
            rescheduling: spec.rescheduling.as_ref(),
            drain_seconds: spec.drain_seconds,
            federation: &spec.federation,
            deletion_policy: spec.deletion_policy,
            paused: spec.paused,
        }
    }
}

impl ValidFrs {
    /// The key of its local workloads.
    #[must_use]
    pub fn workload_key(&self) -> WorkloadKey {
        self.key.workload(self.local)
    }

    /// Validates `frs`. Returns every error, not only the first.
    pub fn check(frs: &FederatedReplicaSet) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        let valid = Self::of(&frs.into(), &mut errors);
        errors.or(valid)
    }

    /// Validates `set`, and adds every error to `errors`. What it returns is valid if there is none.
    pub(crate) fn of(set: &SetFields<'_>, errors: &mut Errors) -> Self {
        check_object(&set.name, set.metadata, errors);
        errors.require(
            set.federation.is_empty() || dns::is_label(set.federation),
            "spec.federation",
            dns::IS_NO_LABEL,
        );
        let replicas = non_negative(set.replicas, "spec.replicas", errors);
        let min_ready_seconds = non_negative(set.min_ready_seconds, "spec.minReadySeconds", errors);
        check_pods(set.selector, set.template, errors);
        check_own_labels(set.template, errors);
        let placement = placement_of(set).unwrap_or_else(|invalid| {
            errors.extend(invalid);
            Placement::default()
        });
        let rescheduling =
            (set.rescheduling).map(|rescheduling| rescheduling.check(RESCHEDULING, errors));
        let drain = check_drain(set.drain_seconds, errors);
        let metadata = set.metadata;
        Self {
            key: ObjectKey::of_kind(
                set.local.of_sets(),
                metadata.namespace.clone().unwrap_or_default(),
                &*set.name,
            ),
            local: set.local,
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            replicas,
            min_ready_seconds,
            selector: selector::normalized(set.selector),
            selector_text: selector::to_text(set.selector),
            template: ValidTemplate::of(set.template),
            placement,
            rescheduling: rescheduling.unwrap_or_default(),
            preferences_hash: preferences_hash(metadata),
            drain,
            migration_policy: None,
            federation: set.federation.to_owned(),
            deletion_policy: set.deletion_policy,
            paused: set.paused,
        }
    }
}

impl ValidTemplate {
    /// Validates the template of an earlier revision of a set with this valid selector. The fields of errors are those of the
    /// set.
    pub fn check(
        template: &PodTemplate,
        selector: &LabelSelector,
    ) -> Result<Self, Vec<FieldError>> {
        let mut errors = Errors::default();
        check_template(template, &mut errors);
        check_own_labels(template, &mut errors);
        check_labels(selector, template, &mut errors);
        errors.or(Self::of(template))
    }

    /// Valid if `template` is.
    pub(crate) fn of(template: &PodTemplate) -> Self {
        Self {
            metadata: template.metadata.clone(),
            spec: JsonText::of(&template.spec),
        }
    }
}

pub(crate) const MIGRATION_POLICY: &str = "spec.migrationPolicy";
const SELECTOR: &str = "spec.selector";
const PLACEMENT: &str = "spec.placement";
const RESCHEDULING: &str = "spec.rescheduling";

/// Hash of the preferences annotation, `None` without one. Works for invalid preferences, too: the status has to name the
/// annotation that was rejected (`observedPreferencesHash`).
#[must_use]
pub fn preferences_hash(metadata: &ObjectMeta) -> Option<String> {
    metadata
        .annotations
        .as_ref()?
        .get(annotations::PREFERENCES)
        .map(|text| format!("{:016x}", xxh3_64(text.as_bytes())))
}

/// The placement of the set (F2).
fn placement_of(set: &SetFields<'_>) -> Result<Placement, Vec<FieldError>> {
    let annotation = format!("metadata.annotations[{}]", annotations::PREFERENCES);
    let annotations = set.metadata.annotations.as_ref();
    let preferences = annotations.and_then(|all| all.get(annotations::PREFERENCES));
    let placement = match (set.placement, preferences) {
        (None, None) => Ok(Placement::even()),
        (Some(placement), None) => {
            check_placement(placement, PLACEMENT).map(|()| placement.clone())
        }
        (None, Some(text)) => {
            let placement = preferences::parse(text, &annotation)?;
            check_placement(&placement, &annotation).map(|()| placement)
        }
        (Some(_), Some(_)) => Err(vec![FieldError {
            field: PLACEMENT.to_owned(),
            message: format!("must not be set together with {annotation}: remove one of them"),
        }]),
    };
    placement.map(Placement::or_even)
}

fn check_placement(placement: &Placement, field: &str) -> Result<(), Vec<FieldError>> {
    let mut errors = Errors::default();
    errors.require(
        placement.clusters.len() <= MAX_CLUSTERS,
        &format!("{field}.clusters"),
        &format!("must have at most {MAX_CLUSTERS} entries"),
    );
    for (cluster, preference) in &placement.clusters {
        let field = format!("{field}.clusters[{cluster}]");
        errors.require(
            cluster == "*" || dns::is_label(cluster),
            &field,
            "must be '*' or the name of a cluster: a DNS label of at most 63 characters",
        );
        let counts = [
            ("minReplicas", Some(preference.min_replicas)),
            ("maxReplicas", preference.max_replicas),
            ("weight", Some(preference.weight)),
        ];
        for (name, count) in counts {
            if let Some(count) = count.filter(|count| *count < 0) {
                errors.add(
                    format!("{field}.{name}"),
                    format!("must not be negative, but is {count}"),
                );
            }
        }
        errors.extend(
            preferences::max_below_min(preference, &field)
                .into_iter()
                .collect(),
        );
    }
    errors.or(())
}

/// Checks the name of a set, and how many entries its metadata has.
pub(crate) fn check_object(name: &str, metadata: &ObjectMeta, errors: &mut Errors) {
    errors.require(dns::is_label(name), "metadata.name", dns::IS_NO_LABEL);
    let labels = metadata.labels.iter().flatten().count();
    require_few(labels, "metadata.labels", errors);
    let finalizers = metadata.finalizers.iter().flatten().count();
    require_few(finalizers, "metadata.finalizers", errors);
}

/// Checks the selector and the template of a set (C2, C5).
pub(crate) fn check_pods(selector: &LabelSelector, template: &PodTemplate, errors: &mut Errors) {
    let expressions = selector.match_expressions.iter().flatten();
    let values = expressions.map(|expression| 1 + expression.values.iter().flatten().count());
    let labels = selector.match_labels.iter().flatten().count();
    require_few(labels + values.sum::<usize>(), SELECTOR, errors);
    check_template(template, errors);
    match selector::check(selector, SELECTOR) {
        Err(invalid) => errors.extend(invalid),
        Ok(()) => check_labels(selector, template, errors),
    }
}

fn check_labels(selector: &LabelSelector, template: &PodTemplate, errors: &mut Errors) {
    errors.require(
        selector::matches(selector, &template.metadata.labels),
        SELECTOR,
        "does not match spec.template.metadata.labels",
    );
}

fn require_few(entries: usize, field: &str, errors: &mut Errors) {
    let message = format!("must have at most {MAX_ENTRIES} entries");
    errors.require(entries <= MAX_ENTRIES, field, &message);
}

/// The labels that fedrs sets on the pods of a federated set: its local workloads have them in their templates.
fn check_own_labels(template: &PodTemplate, errors: &mut Errors) {
    for key in [
        labels::REPLICA_SET,
        labels::FEDERATION,
        labels::MEMBER_CLUSTER,
    ] {
        let is_set = template.metadata.labels.contains_key(key);
        let field = format!("spec.template.metadata.labels[{key}]");
        errors.require(!is_set, &field, "is reserved: fedrs sets this label");
    }
}

fn check_template(template: &PodTemplate, errors: &mut Errors) {
    let metadata = &template.metadata;
    for (field, entries) in [
        ("spec.template.metadata.labels", metadata.labels.len()),
        (
            "spec.template.metadata.annotations",
            metadata.annotations.len(),
        ),
    ] {
        require_few(entries, field, errors);
    }
    for (key, value) in &template.metadata.labels {
        let field = format!("spec.template.metadata.labels[{key}]");
        errors.require(dns::is_label_key(key), &field, "is not a valid label key");
        errors.require(
            dns::is_label_value(value),
            &field,
            "is not a valid label value",
        );
    }
    for key in template.metadata.annotations.keys() {
        let field = format!("spec.template.metadata.annotations[{key}]");
        errors.require(
            dns::is_label_key(key),
            &field,
            "is not a valid annotation key",
        );
    }
    let Some(spec) = template.spec.as_object() else {
        return errors.add("spec.template.spec", "must be an object: the spec of a pod");
    };
    let containers = spec.get("containers").and_then(Value::as_array);
    errors.require(
        containers.is_some_and(|containers| !containers.is_empty()),
        "spec.template.spec.containers",
        "must be a list of at least one container",
    );
    errors.require(
        spec.get("restartPolicy")
            .is_none_or(|policy| policy == "Always"),
        "spec.template.spec.restartPolicy",
        "must be Always or absent: a replica set runs until it is deleted",
    );
}

/// `spec.migrationPolicy`: the name of a MigrationPolicy (M1).
pub(crate) fn check_migration_policy(name: Option<&str>, errors: &mut Errors) {
    let is_valid = name.is_none_or(dns::is_label);
    errors.require(is_valid, MIGRATION_POLICY, dns::IS_NO_LABEL);
}

/// A number that must not be negative; 0 and an error if it is.
pub(crate) fn non_negative(number: i32, field: &str, errors: &mut Errors) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| {
        errors.add(field, format!("must not be negative, but is {number}"));
        0
    })
}

/// A number that must be at least 1; 1 and an error if it is less.
pub(crate) fn positive(number: i32, field: &str, errors: &mut Errors) -> u32 {
    let valid = u32::try_from(number).ok().filter(|number| *number > 0);
    valid.unwrap_or_else(|| {
        errors.add(field, format!("must be at least 1, but is {number}"));
        1
    })
}
