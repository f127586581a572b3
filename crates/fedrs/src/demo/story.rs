//! The story as data: what the operator does in each step, and the inputs of the layout that must result.

use fedrs_api::{ClusterPreference, Placement};

use crate::embedded::{MEMBER_NAMES, MemberSize};

/// The large member, which gets twice the weight in the last step.
pub(crate) const LARGE: &str = MEMBER_NAMES[0];
/// The member that becomes unreachable.
pub(crate) const UNREACHABLE: &str = MEMBER_NAMES[1];
/// The small member, where another team's workload uses most of the capacity.
pub(crate) const SMALL: &str = MEMBER_NAMES[2];

/// The members. Their sizes differ, to show that size alone moves no replica.
pub(crate) const MEMBERS: [MemberSize<'static>; 3] =
    [member(LARGE, 4), member(UNREACHABLE, 3), member(SMALL, 2)];

const fn member(name: &'static str, nodes: u32) -> MemberSize<'static> {
    MemberSize {
        name,
        nodes,
        pods_per_node: 20,
    }
}

/// The namespace of the story's objects.
pub(crate) const NAMESPACE: &str = "default";
/// The label that selects the pods of the story.
pub(crate) const APP_LABEL: &str = "app";
/// The set that exists in all steps.
pub(crate) const WEB: &str = "web";
/// The set that is created while a cluster is full.
pub(crate) const SHOP: &str = "shop";
/// The number of pods for which the other team's workload leaves capacity in [`SMALL`] (scenario 1b).
pub(crate) const FREE_PODS: u64 = 6;
/// How long a step may take to reach its goal. Each takes some seconds on an idle machine.
pub(crate) const STEP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// The same weight for all clusters.
const EVENLY: &[(&str, i64)] = &[("*", 1)];

/// One step of the story.
pub(crate) struct Step {
    /// What happens, in one sentence.
    pub(crate) title: &'static str,
    /// What the operator does.
    pub(crate) action: Action,
    /// What the controller must achieve.
    pub(crate) goal: Goal,
}

/// What the operator does in a step. Replicas and weights are those of the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Create the FederatedDeployment.
    Create,
    /// Create another team's workload that fills [`SMALL`] except for [`FREE_PODS`] pods, then create the set.
    FillAndCreate,
    /// Delete the set with its local Deployments, and the other team's workload.
    Delete,
    /// Disconnect [`UNREACHABLE`] from the network.
    Disconnect,
    /// Connect it again.
    Reconnect,
    /// Update the replicas through the scale subresource, as `kubectl scale` and autoscalers do.
    Scale,
    /// Update the weights in `spec.placement`.
    UpdateWeights,
    /// Update the image in the template to this version.
    RollOut(&'static str),
    /// Update the image in the template to a version that the members can't pull.
    RollOutBroken(&'static str),
    /// Roll back, as `fedrs rollout undo` does.
    Undo,
}

/// What a step must achieve.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The set runs where the scheduler places it.
    Layout(LayoutGoal),
    /// The set exists neither on the host nor in any member.
    Deleted(&'static str),
    /// The rollout of the set has stopped by itself, and all replicas of the version before are ready.
    Stopped(LayoutGoal),
}

/// The inputs of a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayoutGoal {
    /// The set's name.
    pub(crate) set: &'static str,
    /// Desired replicas.
    pub(crate) replicas: u64,
    /// Weight by member, or `*`.
    pub(crate) weights: &'static [(&'static str, i64)],
    /// A member that is unreachable and gets no replicas.
    pub(crate) unreachable: Option<&'static str>,
    /// A member that is full, and its capacity.
    pub(crate) full: Option<(&'static str, u64)>,
}

impl Goal {
    /// The name of its set.
    pub(crate) fn set(&self) -> &'static str {
        match self {
            Self::Layout(layout) | Self::Stopped(layout) => layout.set,
            Self::Deleted(set) => set,
        }
    }
}

impl LayoutGoal {
    /// The preferences, as in `spec.placement` of the set.
    pub(crate) fn placement(&self) -> Placement {
        let clusters = self.weights.iter().map(|&(name, weight)| {
            let preference = ClusterPreference {
                weight,
                ..ClusterPreference::default()
            };
            (name.to_owned(), preference)
        });
        Placement {
            rebalance: true,
            clusters: clusters.collect(),
        }
    }
}

/// The pods that a rollout may create beyond the replicas. No pod may be unavailable.
pub(crate) const MAX_SURGE: u64 = 15;
/// The time without progress after which a rollout stops. Pods take two seconds to start.
pub(crate) const PROGRESS_DEADLINE_SECONDS: u32 = 6;

const EVEN_50: LayoutGoal = LayoutGoal {
    set: WEB,
    replicas: 50,
    weights: EVENLY,
    unreachable: None,
    full: None,
};

const LARGE_60: LayoutGoal = LayoutGoal {
    replicas: 60,
    weights: &[("*", 1), (LARGE, 2)],
    ..EVEN_50
};

/// The steps of the story.
pub(crate) const STEPS: [Step; 10] = [
    Step {
        title: "Create the FederatedDeployment `web` with 50 replicas, spread evenly across three clusters.",
        action: Action::Create,
        goal: Goal::Layout(EVEN_50),
    },
    Step {
        title: "Another team's pods fill ap-south: it has capacity for only 6 more. Create `shop` with 50 replicas.",
        action: Action::FillAndCreate,
        goal: Goal::Layout(LayoutGoal {
            set: SHOP,
            full: Some((SMALL, FREE_PODS)),
            ..EVEN_50
        }),
    },
    Step {
        title: "Delete `shop`, whose deletionPolicy is Delete, and the other team's workload.",
        action: Action::Delete,
        goal: Goal::Deleted(SHOP),
    },
    Step {
        title: "us-east becomes unreachable: its API server stops answering.",
        action: Action::Disconnect,
        goal: Goal::Layout(LayoutGoal {
            unreachable: Some(UNREACHABLE),
            ..EVEN_50
        }),
    },
    Step {
        title: "us-east is reachable again. Its pods kept running, so there are more replicas than desired until it is considered stable.",
        action: Action::Reconnect,
        goal: Goal::Layout(EVEN_50),
    },
    Step {
        title: "Scale `web` to 60 replicas through the scale subresource, as kubectl scale and autoscalers do.",
        action: Action::Scale,
        goal: Goal::Layout(LayoutGoal {
            replicas: 60,
            ..EVEN_50
        }),
    },
    Step {
        title: "Give eu-west twice the weight of the other clusters.",
        action: Action::UpdateWeights,
        goal: Goal::Layout(LARGE_60),
    },
    Step {
        title: "Roll out version 2.0 over all clusters: with maxUnavailable 0 and maxSurge 15, which hold for all of them together.",
        action: Action::RollOut("2.0"),
        goal: Goal::Layout(LARGE_60),
    },
    Step {
        title: "Roll out version 3.0, whose image does not exist. It makes no progress for 6 s and stops by itself.",
        action: Action::RollOutBroken("3.0"),
        goal: Goal::Stopped(LARGE_60),
    },
    Step {
        title: "Roll back to version 2.0, as `fedrs rollout undo web` does.",
        action: Action::Undo,
        goal: Goal::Layout(LARGE_60),
    },
];
