//! A federation in which a template is to be rolled out, as a check sees it.

use cluster_informer::{DeploymentState, RolloutStrategy};
use federated_rollout::{Action as RolloutAction, Limit};
use federation_controller::{
    check::{
        Check, DesiredHashes, Member, RolloutRecord, RolloutSnapshot, SetChange, Snapshot, check,
    },
    config::Config,
};
use fedrs_api::{
    ClusterStatus, FederatedReplicaSetStatus, SettingsHash, TemplateRecord,
    ValidFederatedDeployment,
};
use serde_json::{Value, json};

use crate::world::{LIVE, at, running};

pub(crate) const OLD: u32 = 0x01d;
pub(crate) const NEW: u32 = 0x2e3;
pub(crate) const SETTINGS: SettingsHash = SettingsHash(7);

/// A FederatedDeployment of 9 replicas, which runs in three members with the old template. The new one is to be rolled out.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) deployment: ValidFederatedDeployment,
    pub(crate) members: Vec<Member>,
    pub(crate) previous: FederatedReplicaSetStatus,
    pub(crate) recorded: RolloutRecord,
    /// What an AvailabilitySet allows.
    pub(crate) limit: Option<Limit>,
    pub(crate) settings: Config,
}

fn deployment(extra: Value) -> ValidFederatedDeployment {
    let mut object = json!({
        "apiVersion": "fedrs.dev/v1alpha1",
        "kind": "FederatedDeployment",
        "metadata": { "name": "web", "namespace": "default", "uid": "u-1", "generation": 2 },
        "spec": {
            "replicas": 9,
            "strategy": { "rollingUpdate": { "maxUnavailable": 2, "maxSurge": 0 } },
            "selector": { "matchLabels": { "app": "web" } },
            "placement": { "rebalance": true, "clusters": { "*": { "weight": 1 } } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:2" }] },
            },
        },
    });
    for (field, value) in extra.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    ValidFederatedDeployment::check(&serde_json::from_value(object).unwrap()).unwrap()
}

/// A member whose Deployment runs 3 pods of the old template.
pub(crate) fn member(name: &str) -> Member {
    member_with(name, 3)
}

pub(crate) fn member_with(name: &str, pods: u32) -> Member {
    let mut member = running(name, pods);
    let set = member.view.workload.as_mut().unwrap();
    set.deployment = Some(Box::new(DeploymentState {
        strategy: RolloutStrategy::default(),
        updated_replicas: pods,
        written_template: OLD,
        ..DeploymentState::default()
    }));
    member.view.pods.by_template = vec![(OLD, pods)];
    member
}

impl World {
    pub(crate) fn new(extra: Value) -> Self {
        let names = ["a", "b", "c"];
        let cluster = |name: &str| {
            let mut cluster = ClusterStatus {
                name: name.to_owned(),
                desired_replicas: 3,
                ..ClusterStatus::default()
            };
            cluster.internal.requested_replicas = Some(3);
            cluster.internal.template = Some(TemplateRecord::new(OLD.into(), LIVE));
            cluster.internal.settings = Some(SETTINGS);
            cluster
        };
        Self {
            deployment: deployment(extra),
            members: names.map(member).into(),
            previous: FederatedReplicaSetStatus {
                observed_generation: Some(2),
                current_revision: Some(revision(OLD)),
                update_revision: Some(revision(OLD)),
                clusters: names.map(cluster).into(),
                ..FederatedReplicaSetStatus::default()
            },
            limit: None,
            recorded: RolloutRecord {
                current_revision: Some(revision(OLD)),
                ..RolloutRecord::default()
            },
            settings: Config::default(),
        }
    }

    pub(crate) fn on_snapshot<T>(&self, of: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        let revision = revision(NEW);
        of(&Snapshot {
            frs: &self.deployment.set,
            desired: DesiredHashes {
                spec: NEW.into(),
                settings: Some(SETTINGS),
            },
            template_hash: NEW,
            rollout: Some(RolloutSnapshot {
                settings: &self.deployment.rollout,
                revision: &revision,
                spec_revision: &revision,
                limit: self.limit.map(|limit| ("web", limit)),
                failing_pod: None,
                recorded: &self.recorded,
            }),
            previous: &self.previous,
            members: &self.members,
            overlapping: &[],
            keeps_running_until: None,
            settings: &self.settings,
        })
    }

    pub(crate) fn check(&self) -> Check {
        self.on_snapshot(|snapshot| check(snapshot, at(0)))
    }

    /// The world in which the host has stored what the check lends.
    pub(crate) fn recording(mut self, decided: &Check) -> Self {
        self.recorded = RolloutRecord::of(&decided.status);
        self
    }

    pub(crate) fn set(&mut self, member: usize) -> &mut cluster_informer::WorkloadState {
        self.members[member].view.workload.as_mut().unwrap()
    }

    pub(crate) fn deployment(&mut self, member: usize) -> &mut DeploymentState {
        self.set(member).deployment.as_mut().unwrap()
    }
}

pub(crate) fn revision(template: u32) -> String {
    fedrs_api::revision_name("web", template)
}

/// What is lent: `a: 1 unavailable, 0 surge`.
pub(crate) fn lent(decided: &Check) -> Vec<(String, u64, u64)> {
    let record = &decided.status.rollout.as_ref().unwrap().record;
    let loans = record.loans.iter();
    let loans =
        loans.map(|(name, loan)| (name.clone(), loan.strategy.unavailable, loan.strategy.surge));
    loans.collect()
}

/// The members that get the template.
pub(crate) fn rolled(decided: &Check) -> Vec<&str> {
    let actions = decided.actions.iter();
    let rolls = actions.filter(|action| {
        let action = &action.change;
        matches!(
            action,
            SetChange::Rollout {
                action: RolloutAction::Roll(_),
                ..
            }
        )
    });
    rolls.map(|action| &*action.member).collect()
}
