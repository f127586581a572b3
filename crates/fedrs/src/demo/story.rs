//! The story as data: what is done in each step, and what must come of it.
//!
//! Numbers of the design document stand beside the goals that it gives; every other number is the planner's.

use std::collections::BTreeMap;

use fedrs_api::{ClusterPreference, Placement};

use crate::sim::fleet::MemberSize;

/// The large member, which gets twice the weight in the last step.
pub(crate) const LARGE: &str = "eu-west";
/// The member that goes dark.
pub(crate) const DARK: &str = "us-east";
/// The small member, where another team's workload takes the room.
pub(crate) const SMALL: &str = "ap-south";

/// The members: of different sizes, so that it is seen that size alone moves nothing.
pub(crate) const MEMBERS: [MemberSize<'static>; 3] = [
    MemberSize {
        name: LARGE,
        nodes: 4,
        pods_per_node: 20,
    },
    MemberSize {
        name: DARK,
        nodes: 3,
        pods_per_node: 20,
    },
    MemberSize {
        name: SMALL,
        nodes: 2,
        pods_per_node: 20,
    },
];

/// The set that lives through the whole story.
pub(crate) const WEB: &str = "web";
/// The set that meets a full cluster.
pub(crate) const SHOP: &str = "shop";
/// Places that the other team's workload leaves for [`SHOP`] in [`SMALL`] (scenario 1b).
pub(crate) const ROOM: u64 = 6;

/// The clusters that have their weight in common: `*`.
const EVENLY: &[(&str, u64)] = &[("*", 1)];

/// One step of the story.
pub(crate) struct Step {
    /// What happens, in one sentence.
    pub(crate) told: &'static str,
    /// What the demo does.
    pub(crate) deed: Deed,
    /// What the controller must make of it.
    pub(crate) goal: Goal,
}

/// What the demo does in a step. Replicas and weights are the goal's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Create the FederatedReplicaSet.
    Create,
    /// Let another team's workload take the room in [`SMALL`] but for [`ROOM`] places, then create the set.
    CreateCrowded,
    /// Delete the set with its local sets, and the other team's workload.
    Delete,
    /// Cut [`DARK`] off from the network.
    Disconnect,
    /// Connect it again.
    Reconnect,
    /// Write the replicas through the scale subresource, as `kubectl scale` and autoscalers do.
    Scale,
    /// Write other weights into `spec.placement`.
    Prefer,
}

/// What must come of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The set runs where the planner puts it.
    Layout(LaidOut),
    /// Nothing is left of the set, on the host and in any member.
    Gone(&'static str),
}

/// The inputs of a layout, and what the document says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaidOut {
    /// The set's name.
    pub(crate) set: &'static str,
    /// Replicas wanted.
    pub(crate) replicas: u64,
    /// Weight by member, or `*`.
    pub(crate) weights: &'static [(&'static str, u64)],
    /// A member that can't be reached, so that the layout does without it.
    pub(crate) without: Option<&'static str>,
    /// A member that is full, and what it holds.
    pub(crate) full: Option<(&'static str, u64)>,
    /// The document's numbers, ascending: which of them a tie favours is left open.
    pub(crate) document: Option<&'static [u64]>,
}

impl Goal {
    /// The set that it is about.
    pub(crate) fn set(&self) -> &'static str {
        match self {
            Self::Layout(layout) => layout.set,
            Self::Gone(set) => set,
        }
    }
}

impl LaidOut {
    /// The preferences, as the set has them in `spec.placement`.
    pub(crate) fn placement(&self) -> Placement {
        let preference = |weight: u64| ClusterPreference {
            weight: i64::try_from(weight).expect("the story's weights are small"),
            ..ClusterPreference::default()
        };
        let clusters: BTreeMap<_, _> = self
            .weights
            .iter()
            .map(|&(name, weight)| (name.to_owned(), preference(weight)))
            .collect();
        Placement {
            rebalance: true,
            clusters,
        }
    }
}

const EVEN_50: LaidOut = LaidOut {
    set: WEB,
    replicas: 50,
    weights: EVENLY,
    without: None,
    full: None,
    document: Some(&[16, 17, 17]),
};

/// The story, step by step.
pub(crate) const STEPS: [Step; 7] = [
    Step {
        told: "A FederatedReplicaSet `web` asks for 50 replicas, spread evenly over three clusters.",
        deed: Deed::Create,
        goal: Goal::Layout(EVEN_50),
    },
    Step {
        told: "Another team's workload fills ap-south but for 6 places; then `shop` asks for 50 replicas as well.",
        deed: Deed::CreateCrowded,
        goal: Goal::Layout(LaidOut {
            set: SHOP,
            full: Some((SMALL, ROOM)),
            document: Some(&[6, 22, 22]),
            ..EVEN_50
        }),
    },
    Step {
        told: "`shop` is deleted with its local sets, and the other team's workload goes.",
        deed: Deed::Delete,
        goal: Goal::Gone(SHOP),
    },
    Step {
        told: "us-east goes dark: its API server can't be reached any more.",
        deed: Deed::Disconnect,
        goal: Goal::Layout(LaidOut {
            without: Some(DARK),
            document: None,
            ..EVEN_50
        }),
    },
    Step {
        told: "us-east is back, with all it ran: for a moment there are more replicas than wanted.",
        deed: Deed::Reconnect,
        goal: Goal::Layout(EVEN_50),
    },
    Step {
        told: "`web` is scaled to 60 through its scale subresource, as kubectl scale and autoscalers do it.",
        deed: Deed::Scale,
        goal: Goal::Layout(LaidOut {
            replicas: 60,
            document: None,
            ..EVEN_50
        }),
    },
    Step {
        told: "eu-west gets twice the weight of the others.",
        deed: Deed::Prefer,
        goal: Goal::Layout(LaidOut {
            replicas: 60,
            weights: &[("*", 1), (LARGE, 2)],
            document: None,
            ..EVEN_50
        }),
    },
];
