//! The paths and objects of a set of either kind, on the host and in the members.

use std::time::Duration;

use fedrs_api::{
    FederatedDeployment, FederatedReplicaSet, SetKind, ValidFederatedDeployment, ValidFrs,
};
use serde_json::Value;
use sim_cluster::{Kind, kinds};

use crate::checks::Reach;

/// The kinds of sets.
pub(crate) const ALL: [SetKind; 2] = [SetKind::FederatedReplicaSet, SetKind::FederatedDeployment];

/// The kind of a set, as its objects name it.
pub(crate) fn name(kind: SetKind) -> &'static str {
    match kind {
        SetKind::FederatedReplicaSet => "FederatedReplicaSet",
        SetKind::FederatedDeployment => "FederatedDeployment",
    }
}

/// The sets of this kind in paths of the host.
pub(crate) fn resource(kind: SetKind) -> &'static str {
    match kind {
        SetKind::FederatedReplicaSet => "federatedreplicasets",
        SetKind::FederatedDeployment => "federateddeployments",
    }
}

/// The collection of sets of this kind in the namespace of the sets.
pub(crate) fn collection(kind: SetKind) -> String {
    let resource = resource(kind);
    format!("/apis/fedrs.dev/v1alpha1/namespaces/default/{resource}")
}

/// The local sets in paths of a member.
pub(crate) fn local_resource(kind: SetKind) -> &'static str {
    match kind {
        SetKind::FederatedReplicaSet => "replicasets",
        SetKind::FederatedDeployment => "deployments",
    }
}

/// The collection of local sets.
pub(crate) fn local_collection(kind: SetKind) -> String {
    let resource = local_resource(kind);
    format!("/apis/apps/v1/namespaces/default/{resource}")
}

/// The kind of the local sets.
pub(crate) fn local(kind: SetKind) -> &'static Kind {
    match kind {
        SetKind::FederatedReplicaSet => &kinds::REPLICA_SETS,
        SetKind::FederatedDeployment => &kinds::DEPLOYMENTS,
    }
}

/// A valid set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValidSet {
    /// What both kinds have.
    pub(crate) frs: ValidFrs,
    /// How a FederatedDeployment is rolled out.
    pub(crate) rollout: Option<RolloutSpec>,
}

impl ValidSet {
    /// Reads an object of the host; `None` if it is invalid.
    pub(crate) fn of(object: &Value, kind: SetKind) -> Option<Self> {
        let spec = &object["spec"];
        let object = object.clone();
        match kind {
            SetKind::FederatedReplicaSet => {
                let frs: FederatedReplicaSet =
                    serde_json::from_value(object).expect("the API server validates it");
                let frs = ValidFrs::check(&frs).ok()?;
                Some(Self { frs, rollout: None })
            }
            SetKind::FederatedDeployment => {
                let set: FederatedDeployment =
                    serde_json::from_value(object).expect("the API server validates it");
                let set = ValidFederatedDeployment::check(&set).ok()?;
                Some(Self {
                    frs: set.set,
                    rollout: Some(RolloutSpec::of(spec)),
                })
            }
        }
    }
}

/// What users ask for of a rollout, read from the object that they wrote.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RolloutSpec {
    /// What tells templates apart.
    pub(crate) template: String,
    pub(crate) paused: bool,
    /// Whether a rollout that fails is undone.
    pub(crate) undoes: bool,
    pub(crate) speed: Option<Speed>,
    pub(crate) steps: Vec<RolloutStep>,
    /// Steps and revisions.
    pub(crate) approvals: Vec<(String, String)>,
    strategy: Value,
}

/// The most pods that start in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed {
    pub(crate) portion: u64,
    pub(crate) min_delay: Duration,
}

/// A step of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RolloutStep {
    pub(crate) name: String,
    clusters: Vec<String>,
    pub(crate) needs_approval: bool,
}

impl RolloutSpec {
    fn of(spec: &Value) -> Self {
        let rollout = &spec["rollout"];
        let list = |field: &str| rollout[field].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let speed = rollout.get("speed").filter(|speed| speed.is_object());
        let step = |step: &Value| RolloutStep {
            name: text(&step["name"]),
            clusters: (step["clusters"].as_array().into_iter().flatten())
                .map(text)
                .collect(),
            needs_approval: step["approval"] == "Before",
        };
        let approval = |approval: &Value| (text(&approval["step"]), text(&approval["revision"]));
        Self {
            template: template_of(&spec["template"]),
            paused: spec["paused"] == true,
            undoes: rollout["onFailure"] == "Undo",
            speed: speed.map(|speed| Speed {
                portion: speed["updatePortion"].as_u64().unwrap_or(0),
                min_delay: Duration::from_secs(speed["minDelaySeconds"].as_u64().unwrap_or(0)),
            }),
            steps: list("steps").iter().map(step).collect(),
            approvals: list("approvals").iter().map(approval).collect(),
            strategy: spec["strategy"].clone(),
        }
    }

    /// The number of the step that a member belongs to; that of all others is the last one.
    pub(crate) fn step_of(&self, member: &str) -> usize {
        let position = |name: &str| {
            let mut steps = self.steps.iter();
            steps.position(|step| step.clusters.iter().any(|cluster| cluster == name))
        };
        let others = || position("*").unwrap_or(self.steps.len());
        position(member).unwrap_or_else(others)
    }

    /// The pods that may be unavailable, and those that may run beyond N, as a Deployment of N replicas resolves them.
    pub(crate) fn limits(&self, frs: &ValidFrs) -> Reach {
        let replicas = u64::from(frs.replicas);
        if self.strategy["type"] == "Recreate" {
            return Reach {
                unavailable: replicas,
                surge: 0,
            };
        }
        let amount = |field: &str, up: u64| {
            let value = &self.strategy["rollingUpdate"][field];
            let percent = value
                .as_str()
                .and_then(|text| text.strip_suffix('%')?.parse().ok());
            let percent: Option<u64> = percent.or(value.is_null().then_some(25));
            let of_all = percent.map(|percent| (replicas * percent + up) / 100);
            of_all.or(value.as_u64()).unwrap_or(0)
        };
        let (unavailable, surge) = (amount("maxUnavailable", 0), amount("maxSurge", 99));
        Reach {
            unavailable: unavailable
                .min(replicas)
                .max(u64::from(surge == 0 || unavailable + surge == 0)),
            surge,
        }
    }
}

/// What tells the templates, and the pods, of a plan apart: the image, and whether pods never become ready.
pub(crate) fn template_of(template: &Value) -> String {
    let spec = &template["spec"];
    let image = spec["containers"][0]["image"].as_str().unwrap_or_default();
    let gates = spec["readinessGates"].as_array();
    let is_bad = gates.is_some_and(|gates| !gates.is_empty());
    format!("{image}{}", if is_bad { " (never ready)" } else { "" })
}
