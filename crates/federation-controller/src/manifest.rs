//! The local workload as fedrs writes it: a ReplicaSet, Deployment or LocalReplicaSet of the federated set's own name and namespace.
//!
//! It borrows from the set, and its template stays a text. The order of the fields is that of their names: the hashes of the
//! texts are stored in members and statuses.

use std::collections::BTreeMap;

use cluster_informer::{DeploymentState, LocalSetState, LocalSpeed};
use federated_rollout::{Budget, Strategy};
use fedrs_api::{
    JsonText, LocalKind, RolloutSettings, SettingsHash, ValidFrs, ValidTemplate, annotations,
    labels,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// Labels or annotations.
type Texts<'a> = BTreeMap<&'a str, &'a str>;

/// The longest progress deadline, in seconds: API servers take it for none.
pub(crate) const NO_PROGRESS_DEADLINE: u32 = i32::MAX.unsigned_abs();

/// What a local workload is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The set. Its key has the kind.
    pub(crate) frs: &'a ValidFrs,
    /// What only Deployments and LocalReplicaSets have.
    pub(crate) deployment: DeploymentSettings,
    /// The federation that owns the workload (F40).
    pub(crate) federation: &'a str,
}

/// What a Deployment or a LocalReplicaSet has and a ReplicaSet has not, apart from the strategy, which is lent. The same in each member. The default
/// is that of API servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeploymentSettings {
    /// `progressDeadlineSeconds`, from 1 to [`NO_PROGRESS_DEADLINE`]. Must be above `minReadySeconds`.
    pub(crate) progress_deadline_seconds: u32,
    /// `revisionHistoryLimit`: how many ReplicaSets without replicas are kept, at most `i32::MAX`.
    pub(crate) revision_history_limit: u32,
    /// Whether a loan is written as the type `Recreate`.
    pub(crate) recreates: bool,
    /// The `minDelay` of the `deploySpeed` with which a loan is written into a LocalReplicaSet, in seconds.
    pub(crate) min_delay: Option<u32>,
}

impl From<&RolloutSettings> for DeploymentSettings {
    fn from(rollout: &RolloutSettings) -> Self {
        let speed = rollout.order.speed;
        // The API server wants it above `minReadySeconds`, which is a second more than the speed's.
        let least = speed.map_or(0, |speed| speed.min_delay.as_secs() + 2);
        let deadline = rollout.progress_deadline;
        let deadline = deadline.map(|limit| limit.as_secs().max(least));
        let deadline = deadline.and_then(|seconds| u32::try_from(seconds).ok());
        Self {
            progress_deadline_seconds: deadline.unwrap_or(NO_PROGRESS_DEADLINE),
            revision_history_limit: rollout.revision_history_limit,
            recreates: rollout.budget == Budget::Recreate,
            min_delay: speed.map(|speed| {
                let seconds = speed.min_delay.as_secs().max(1);
                u32::try_from(seconds).unwrap_or(NO_PROGRESS_DEADLINE)
            }),
        }
    }
}

impl Default for DeploymentSettings {
    fn default() -> Self {
        Self {
            progress_deadline_seconds: 600,
            revision_history_limit: 10,
            recreates: false,
            min_delay: None,
        }
    }
}

/// A local workload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Workload<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    pub(crate) spec: Spec<'a>,
}

#[derive(Debug, Serialize)]
struct Metadata<'a> {
    labels: Texts<'a>,
    name: &'a str,
    namespace: &'a str,
}

/// The spec of a local workload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    deployment_strategy: Option<LocalStrategy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drain_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migration_policy: Option<&'a str>,
    pub(crate) min_ready_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress_deadline_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision_history_limit: Option<u32>,
    selector: &'a LabelSelector,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<RollingUpdate>,
    pub(crate) template: Template<'a>,
}

/// The template of a local workload.
#[derive(Debug, Serialize)]
pub(crate) struct Template<'a> {
    metadata: TemplateMetadata<'a>,
    spec: &'a JsonText,
}

#[derive(Debug, Serialize)]
struct TemplateMetadata<'a> {
    annotations: BTreeMap<&'a str, String>,
    labels: Texts<'a>,
}

/// `strategy` of a Deployment. API servers would default what is absent, and round percentages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RollingUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    rolling_update: Option<MaxPods>,
    r#type: &'static str,
}

impl RollingUpdate {
    /// All pods end before the first new one is created.
    pub(crate) const RECREATE: Self = Self {
        rolling_update: None,
        r#type: "Recreate",
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct MaxPods {
    max_surge: u32,
    max_unavailable: u32,
}

impl From<Strategy> for RollingUpdate {
    /// What exceeds an API server's integers is as good as their maximum.
    fn from(strategy: Strategy) -> Self {
        let pods = |pods: u64| i32::try_from(pods).unwrap_or(i32::MAX).unsigned_abs();
        Self {
            rolling_update: Some(MaxPods {
                max_surge: pods(strategy.surge),
                max_unavailable: pods(strategy.unavailable),
            }),
            r#type: "RollingUpdate",
        }
    }
}

/// `deploymentStrategy` of a LocalReplicaSet, whose API server would default and round it as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocalStrategy {
    #[serde(skip_serializing_if = "Option::is_none")]
    deploy_speed: Option<DeploySpeed>,
    max_unavailable: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeploySpeed {
    min_delay: u32,
    update_portion: u32,
}

impl From<DeploySpeed> for LocalSpeed {
    fn from(speed: DeploySpeed) -> Self {
        let DeploySpeed {
            min_delay,
            update_portion,
        } = speed;
        Self {
            update_portion,
            min_delay,
        }
    }
}

impl LocalStrategy {
    /// The strategy of a loan. With a speed as many pods begin to be updated in any `min_delay` seconds: all loans together are
    /// within the portion (L15), but pods that are not available cost no budget.
    pub(crate) fn of(strategy: Strategy, min_delay: Option<u32>) -> Self {
        let pods = i32::try_from(strategy.unavailable).unwrap_or(i32::MAX);
        let max_unavailable = pods.unsigned_abs();
        Self {
            deploy_speed: min_delay.map(|min_delay| DeploySpeed {
                min_delay,
                update_portion: max_unavailable.max(1),
            }),
            max_unavailable,
        }
    }

    /// Whether a LocalReplicaSet has it, apart from what may be unavailable.
    pub(crate) fn has_speed(&self, speed: Option<LocalSpeed>) -> bool {
        self.deploy_speed.map(LocalSpeed::from) == speed
    }
}

impl DeploymentSettings {
    /// Whether the local workload, with replicas, template and strategy apart, is as it is written with these settings. A fence
    /// changes the deadline of a LocalReplicaSet by one. A Deployment may be paused only if the rollout has done that.
    pub(crate) fn are_in(self, frs: &ValidFrs, state: &DeploymentState, is_paused: bool) -> bool {
        let has_min_ready = u32::try_from(state.min_ready_seconds) == Ok(frs.min_ready_seconds);
        let Some(LocalSetState { settings, .. }) = state.local else {
            return has_min_ready && (is_paused || !state.paused);
        };
        let pods = state.strategy.max_unavailable;
        let strategy = LocalStrategy::of(Strategy::new(pods.into(), 0), self.min_delay);
        let deadline = i64::from(settings.progress_deadline_seconds);
        has_min_ready
            // Without a loan.
            && (pods > 0 || state.paused)
            && (deadline - i64::from(self.progress_deadline_seconds)).abs() <= 1
            && u32::try_from(settings.revision_history_limit) == Ok(self.revision_history_limit)
            && u32::try_from(settings.drain_seconds) == Ok(drain_seconds(frs))
            && settings.migration_policy == policy_hash(frs)
            && state.strategy.is_fixed
            && strategy.has_speed(settings.speed)
            && !settings.has_others
    }
}

impl<'a> Source<'a> {
    /// The template with the labels of the set and the federation, so that a member's other pods are never watched.
    pub(crate) fn template(&self) -> Template<'a> {
        let metadata = &self.frs.template.metadata;
        let hash = format!("{:08x}", template_hash(self.frs));
        let mut template = self.bare_template();
        (template.metadata.annotations).insert(annotations::TEMPLATE_HASH, hash);
        template.metadata.labels = with_own(&metadata.labels, self.frs, self.federation);
        template
    }

    /// The template as the user wrote it.
    pub(crate) fn bare_template(&self) -> Template<'a> {
        let ValidTemplate { metadata, spec } = &self.frs.template;
        let annotations = metadata.annotations.iter();
        let annotations = annotations.map(|(key, value)| (&**key, value.clone()));
        Template {
            metadata: TemplateMetadata {
                annotations: annotations.collect(),
                labels: texts(&metadata.labels).collect(),
            },
            spec,
        }
    }

    fn spec(&self, replicas: Option<u32>) -> Spec<'a> {
        let local = self.frs.local;
        let is_local = local == LocalKind::LocalReplicaSet;
        let deployment = Some(self.deployment).filter(|_| local != LocalKind::ReplicaSet);
        Spec {
            deployment_strategy: is_local
                .then(|| LocalStrategy::of(Strategy::default(), self.deployment.min_delay)),
            drain_seconds: is_local.then(|| drain_seconds(self.frs)),
            migration_policy: self.frs.migration_policy.as_deref(),
            min_ready_seconds: self.frs.min_ready_seconds,
            paused: is_local.then_some(true),
            progress_deadline_seconds: deployment
                .map(|settings| settings.progress_deadline_seconds),
            replicas,
            revision_history_limit: deployment.map(|settings| settings.revision_history_limit),
            selector: &self.frs.selector,
            strategy: (local == LocalKind::Deployment).then(|| Strategy::WITHOUT_LOAN.into()),
            template: self.template(),
        }
    }
}

impl<'a> Workload<'a> {
    /// The local workload in `member` with `replicas`. A Deployment has [`Strategy::WITHOUT_LOAN`], and a LocalReplicaSet is paused
    /// with a `maxUnavailable` of 0: more comes with a loan only.
    ///
    /// The pods carry the labels of the set and the federation; the selector is the user's own, so that pods left behind are
    /// adopted (F30).
    pub(crate) fn of(source: &Source<'a>, member: &'a str, replicas: u32) -> Self {
        let Source {
            frs, federation, ..
        } = *source;
        let mut labels = with_own(&frs.labels, frs, federation);
        labels.insert(labels::MEMBER_CLUSTER, member);
        Self {
            api_version: frs.local.api_version(),
            kind: frs.local.as_str(),
            metadata: Metadata {
                labels,
                name: &frs.key.name,
                namespace: &frs.key.namespace,
            },
            spec: source.spec(Some(replicas)),
        }
    }

    /// The labels of the object.
    pub(crate) fn labels(&self) -> &Texts<'a> {
        &self.metadata.labels
    }
}

/// `spec.drainSeconds` of the LocalReplicaSets of a set.
pub(crate) fn drain_seconds(frs: &ValidFrs) -> u32 {
    u32::try_from(frs.drain.as_secs()).unwrap_or(u32::MAX)
}

/// The hash of `spec.migrationPolicy`, as it is known of LocalReplicaSets.
fn policy_hash(frs: &ValidFrs) -> Option<u64> {
    let name = frs.migration_policy.as_ref();
    name.map(|name| xxh3_64(name.as_bytes()))
}

/// Hash of the labels of a local Deployment and of its settings: all but its replicas, strategy and template. Those of a
/// LocalReplicaSet include its speed, for how long its pods drain, and its MigrationPolicy. What is absent leaves the hash as it was before
/// there was such a setting: an upgrade writes nothing.
pub(crate) fn settings_hash(frs: &ValidFrs, settings: DeploymentSettings) -> SettingsHash {
    let DeploymentSettings {
        progress_deadline_seconds,
        revision_history_limit,
        min_delay,
        ..
    } = settings;
    let mut numbers = vec![
        u64::from(frs.min_ready_seconds),
        progress_deadline_seconds.into(),
        revision_history_limit.into(),
    ];
    if frs.local == LocalKind::LocalReplicaSet {
        numbers.extend(min_delay.map(u64::from));
        numbers.push(drain_seconds(frs).into());
        numbers.extend(policy_hash(frs));
    }
    SettingsHash(hash(&(&frs.labels, numbers)))
}

/// Hash of all of a local ReplicaSet that is the same in every member: without replicas.
pub(crate) fn spec_hash(frs: &ValidFrs, federation: &str) -> u64 {
    #[derive(Serialize)]
    struct Written<'a> {
        labels: &'a BTreeMap<String, String>,
        spec: Spec<'a>,
    }
    let source = Source {
        frs,
        deployment: DeploymentSettings::default(),
        federation,
    };
    hash(&Written {
        labels: &frs.labels,
        spec: source.spec(None),
    })
}

/// The labels that a local workload and its pods carry.
pub(crate) fn own_labels<'a>(
    frs: &'a ValidFrs,
    federation: &'a str,
) -> [(&'static str, &'a str); 2] {
    [
        (labels::REPLICA_SET, &frs.key.name),
        (labels::FEDERATION, federation),
    ]
}

/// `labels` and those of fedrs.
fn with_own<'a>(
    labels: &'a BTreeMap<String, String>,
    frs: &'a ValidFrs,
    federation: &'a str,
) -> Texts<'a> {
    texts(labels).chain(own_labels(frs, federation)).collect()
}

fn texts(texts: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    texts.iter().map(|(key, value)| (&**key, &**value))
}

/// Hash of the template as the user wrote it, never 0: identifies the pods that were created from it.
pub(crate) fn template_hash(frs: &ValidFrs) -> u32 {
    #[derive(Serialize)]
    struct Written<'a> {
        annotations: &'a BTreeMap<String, String>,
        labels: &'a BTreeMap<String, String>,
        spec: &'a JsonText,
    }
    let ValidTemplate { metadata, spec } = &frs.template;
    fedrs_api::template_hash(&Written {
        annotations: &metadata.annotations,
        labels: &metadata.labels,
        spec,
    })
}

fn hash(written: &impl Serialize) -> u64 {
    let text = serde_json::to_vec(written).expect("maps of texts are JSON");
    xxh3_64(&text)
}

#[cfg(test)]
mod settings_tests;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_written_values() {
        let containers =
            json!([{ "name": "web", "image": "web:1", "env": [{ "value": "ä\"", "name": "A" }] }]);
        let template = json!({
            "metadata": { "labels": { "z": "1", "app": "web" }, "annotations": { "zz": "\n", "b": "c" } },
            "spec": { "volumes": [], "containers": containers, "hostNetwork": false },
        });
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "FederatedReplicaSet",
            "metadata": { "name": "web", "namespace": "default", "labels": { "team": "x" } },
            "spec": {
                "minReadySeconds": 5,
                "selector": {
                    "matchLabels": { "app": "web" },
                    "matchExpressions": [{ "key": "z", "operator": "In", "values": ["1"] }],
                },
                "template": template,
            },
        });
        let frs = ValidFrs::check(&serde_json::from_value(object.clone()).unwrap()).unwrap();
        let hash_of = |value: &Value| xxh3_64(value.to_string().as_bytes());
        let metadata = &template["metadata"];
        let written = json!({ "labels": metadata["labels"], "annotations": metadata["annotations"], "spec": template["spec"] });
        assert_eq!(u64::from(template_hash(&frs)), hash_of(&written) >> 32);
        let source = Source {
            frs: &frs,
            deployment: DeploymentSettings::default(),
            federation: "blue",
        };
        let mut written = serde_json::to_value(Workload::of(&source, "eu", 7)).unwrap();
        let ours = json!({ "fedrs.dev/federation": "blue", "fedrs.dev/replica-set": "web" });
        let with_ours = |mut labels: Value| {
            let labels_of_ours = ours.as_object().unwrap().clone();
            labels.as_object_mut().unwrap().extend(labels_of_ours);
            labels
        };
        let mut expected = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": "web",
                "namespace": "default",
                "labels": with_ours(json!({ "team": "x", "fedrs.dev/member-cluster": "eu" })),
            },
            "spec": object["spec"],
        });
        expected["spec"]["replicas"] = json!(7);
        let metadata = &mut expected["spec"]["template"]["metadata"];
        metadata["labels"] = with_ours(metadata["labels"].take());
        metadata["annotations"]["fedrs.dev/template-hash"] =
            json!(format!("{:08x}", template_hash(&frs)));
        assert_eq!(written, expected);
        written["spec"].as_object_mut().unwrap().remove("replicas");
        let written = json!({ "labels": { "team": "x" }, "spec": written["spec"] });
        assert_eq!(spec_hash(&frs, "blue"), hash_of(&written));
    }
}
