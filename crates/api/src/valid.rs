//! Validation beyond the schema: turns a FederatedReplicaSet into a type that can't be invalid (F2, F4).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    DeletionPolicy, FederatedReplicaSet, FieldError, JsonText, MAX_ENTRIES, ObjectKey, Placement,
    PodTemplate, TemplateMetadata, ValidRescheduling, annotations, dns, field::Errors, labels,
    placement::MAX_CLUSTERS, preferences, selector,
};

/// A valid FederatedReplicaSet: the only form that the controller works with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValidFrs {
    /// Namespace and name.
    pub key: ObjectKey,
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

impl ValidFrs {
    /// Validates `frs`. Returns every error, not only the first.
    pub fn check(frs: &FederatedReplicaSet) -> Result<Self, Vec<FieldError>> {
        let spec = &frs.spec;
        let mut errors = Errors::default();
        errors.require(
            dns::is_label(&frs.name_any()),
            "metadata.name",
            IS_NO_DNS_LABEL,
        );
        if !spec.federation.is_empty() {
            errors.require(
                dns::is_label(&spec.federation),
                "spec.federation",
                IS_NO_DNS_LABEL,
            );
        }
        check_entries(frs, &mut errors);
        let replicas = non_negative(spec.replicas, "spec.replicas", &mut errors);
        let min_ready_seconds =
            non_negative(spec.min_ready_seconds, "spec.minReadySeconds", &mut errors);
        check_template(&spec.template, &mut errors);
        match selector::check(&spec.selector, SELECTOR) {
            Err(invalid) => errors.extend(invalid),
            Ok(()) => errors.require(
                selector::matches(&spec.selector, &spec.template.metadata.labels),
                SELECTOR,
                "does not match spec.template.metadata.labels",
            ),
        }
        let placement = placement_of(frs).unwrap_or_else(|invalid| {
            errors.extend(invalid);
            Placement::default()
        });
        let rescheduling = spec.rescheduling.as_ref();
        let rescheduling =
            rescheduling.map(|rescheduling| rescheduling.check(RESCHEDULING, &mut errors));
        errors.or(Self {
            key: ObjectKey::new(frs.namespace().unwrap_or_default(), frs.name_any()),
            uid: frs.uid().unwrap_or_default(),
            generation: frs.metadata.generation.unwrap_or_default(),
            labels: frs.labels().clone(),
            replicas,
            min_ready_seconds,
            selector: selector::normalized(&spec.selector),
            selector_text: selector::to_text(&spec.selector),
            template: ValidTemplate {
                metadata: spec.template.metadata.clone(),
                spec: JsonText::of(&spec.template.spec),
            },
            placement,
            rescheduling: rescheduling.unwrap_or_default(),
            preferences_hash: preferences_hash(&frs.metadata),
            federation: spec.federation.clone(),
            deletion_policy: spec.deletion_policy,
            paused: spec.paused,
        })
    }
}

const IS_NO_DNS_LABEL: &str =
    "must be a DNS label: lower-case letters, digits and '-', at most 63 characters";
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

/// The placement of the object (F2).
fn placement_of(frs: &FederatedReplicaSet) -> Result<Placement, Vec<FieldError>> {
    let annotation = format!("metadata.annotations[{}]", annotations::PREFERENCES);
    let placement = match (
        &frs.spec.placement,
        frs.annotations().get(annotations::PREFERENCES),
    ) {
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

/// Checks how many entries maps and lists have.
fn check_entries(frs: &FederatedReplicaSet, errors: &mut Errors) {
    let (spec, template) = (&frs.spec, &frs.spec.template.metadata);
    let expressions = spec.selector.match_expressions.iter().flatten();
    let values = expressions.map(|expression| 1 + expression.values.iter().flatten().count());
    let labels = spec.selector.match_labels.iter().flatten().count();
    for (field, entries) in [
        ("metadata.labels", frs.labels().len()),
        ("metadata.finalizers", frs.finalizers().len()),
        (SELECTOR, labels + values.sum::<usize>()),
        ("spec.template.metadata.labels", template.labels.len()),
        (
            "spec.template.metadata.annotations",
            template.annotations.len(),
        ),
    ] {
        let message = format!("must have at most {MAX_ENTRIES} entries");
        errors.require(entries <= MAX_ENTRIES, field, &message);
    }
}

fn check_template(template: &PodTemplate, errors: &mut Errors) {
    for (key, value) in &template.metadata.labels {
        let field = format!("spec.template.metadata.labels[{key}]");
        errors.require(dns::is_label_key(key), &field, "is not a valid label key");
        errors.require(
            dns::is_label_value(value),
            &field,
            "is not a valid label value",
        );
        let ours = [
            labels::REPLICA_SET,
            labels::FEDERATION,
            labels::MEMBER_CLUSTER,
        ]
        .contains(&key.as_str());
        errors.require(!ours, &field, "is reserved: fedrs sets this label");
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

/// A number that must not be negative; 0 and an error if it is.
fn non_negative(number: i32, field: &str, errors: &mut Errors) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| {
        errors.add(field, format!("must not be negative, but is {number}"));
        0
    })
}
