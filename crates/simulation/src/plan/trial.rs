//! What is tried at the end of a run, when everything is as it should be and nothing is broken: then it is known how the
//! controller has to react, and how soon.

use std::fmt;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde::{Deserialize, Serialize};

/// The seeds of trials are a stream of their own: another trial changes no step of a plan.
const STREAM: u64 = 0x7472_6961;

/// What is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "try", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Trial {
    /// Somebody changes or deletes a local ReplicaSet: it is as before within seconds (F29, F31).
    Drift {
        /// The set.
        set: String,
        /// What is done.
        drift: Drift,
    },
    /// A user asks for one replica more: one cluster gets it, at once, and no cluster loses one (F16).
    Growth {
        /// The set.
        set: String,
    },
    /// A user changes the template: every member has it within seconds, and all pods stay (C4).
    Template {
        /// The set.
        set: String,
    },
    /// A user pauses a set: whatever changes, nothing is written to the members.
    Pause {
        /// The set.
        set: String,
    },
    /// A user makes a set invalid: nothing is written to the members (F4).
    Invalid {
        /// The set.
        set: String,
    },
    /// A user moves the preferences into the annotation (F2).
    Annotation {
        /// The set.
        set: String,
        /// The only cluster that they select.
        member: String,
    },
    /// A user switches rebalancing off: another weight moves no replica (F13).
    Unbalanced {
        /// The set.
        set: String,
        /// The member with another weight.
        member: String,
    },
    /// A user deletes a set: nothing of it, or only its pods, is left within a minute (F5).
    Deletion {
        /// The set.
        set: String,
        /// Whether its replicas are deleted, too.
        deletes: bool,
        /// How many of the first writes of it each member rejects.
        #[serde(default)]
        rejections: u32,
    },
    /// The host rejects a status as written for an older object: it is written again within seconds (F38).
    Conflict {
        /// The set.
        set: String,
    },
    /// Pods are deleted one after the other: the status is written now and then, not for each of them (F22).
    Churn {
        /// The set.
        set: String,
    },
    /// Somebody gives a local ReplicaSet to another federation: it is not written, and the status says so (F40).
    Foreign {
        /// The set.
        set: String,
    },
    /// An administrator closes a member: its replicas leave, or it gets no more.
    Closing {
        /// The member.
        member: String,
        /// How.
        closing: Closing,
    },
    /// A member is unreachable: its replicas go elsewhere after the grace period and not before; when it has returned, nothing
    /// is given up before it has been healthy for the stabilization window (F33).
    Loss {
        /// The member.
        member: String,
    },
    /// All members are unreachable: nothing moves, also when one of them answers again (F33).
    Disconnection,
    /// A member rejects the credentials: nothing moves (F33).
    Unauthorized {
        /// The member.
        member: String,
    },
    /// A node stops: its replicas run elsewhere in time (F34).
    NodeLoss {
        /// The member.
        member: String,
    },
    /// A set is created in a namespace that no member has, and later a member loses the namespace: all replicas run (F28).
    Namespace {
        /// The member that loses it.
        member: String,
    },
    /// A member gets a second name: it is called a duplicate, and nothing moves (F20).
    Twin {
        /// The member.
        member: String,
    },
    /// A leader dies while a scale-down is on its way, and starts again at once: no replica that runs is removed before the
    /// scale-down can have been carried out (F20).
    Resume {
        /// The set.
        set: String,
    },
    /// Pods of a member that is slow are deleted, and a user moves their replicas away while they start again: those that run
    /// by then stay (F20).
    Idle {
        /// The set.
        set: String,
        /// The member.
        member: String,
    },
    /// The controllers are started again: nothing is written.
    Restart,
}

/// What somebody does to a local ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Drift {
    /// One replica more.
    Replicas,
    /// Another image.
    Image,
    /// Another `minReadySeconds`.
    MinReadySeconds,
    /// Without the label of the member.
    Label,
    /// Deleted, and its pods stay.
    Deleted,
}

/// How a member is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Closing {
    /// `spec.drain`.
    Drain,
    /// `spec.namespaces` without that of the sets.
    Namespaces,
    /// `spec.unschedulable`.
    Cordon,
}

impl Trial {
    /// The trial of a seed, in these members, of these sets.
    pub(super) fn of(seed: u64, members: &[String], sets: &[String]) -> Self {
        let mut random = StdRng::seed_from_u64(seed ^ (STREAM << 32));
        let set = sets.choose(&mut random).expect("there are sets");
        let member = members.choose(&mut random).expect("there are members");
        let (set, member) = (set.clone(), member.clone());
        match random.random_range(0..32) {
            0..3 => Self::Drift {
                set,
                drift: *[
                    Drift::Replicas,
                    Drift::Image,
                    Drift::MinReadySeconds,
                    Drift::Label,
                    Drift::Deleted,
                ]
                .choose(&mut random)
                .unwrap_or(&Drift::Deleted),
            },
            3 => Self::Growth { set },
            4 => Self::Template { set },
            5 => Self::Pause { set },
            6 => Self::Invalid { set },
            7 => Self::Annotation { set, member },
            8 => Self::Unbalanced { set, member },
            9..11 => Self::Deletion {
                set,
                deletes: random.random_bool(0.5),
                rejections: random.random_range(0..4),
            },
            11..13 => Self::Closing {
                member,
                closing: *[Closing::Drain, Closing::Namespaces, Closing::Cordon]
                    .choose(&mut random)
                    .unwrap_or(&Closing::Drain),
            },
            13..15 => Self::Loss { member },
            15 => Self::Disconnection,
            16 => Self::Unauthorized { member },
            17 => Self::Conflict { set },
            18 => Self::Churn { set },
            19..21 => Self::Foreign { set },
            21..23 => Self::NodeLoss { member },
            23 => Self::Namespace { member },
            24 => Self::Twin { member },
            25..28 => Self::Resume { set },
            28..31 => Self::Idle { set, member },
            _ => Self::Restart,
        }
    }

    /// The names of members and sets that the trial concerns.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Drift { set, .. }
            | Self::Growth { set }
            | Self::Template { set }
            | Self::Pause { set }
            | Self::Invalid { set }
            | Self::Deletion { set, .. }
            | Self::Conflict { set }
            | Self::Churn { set }
            | Self::Resume { set }
            | Self::Foreign { set } => vec![set],
            Self::Annotation { set, member }
            | Self::Unbalanced { set, member }
            | Self::Idle { set, member } => {
                vec![set, member]
            }
            Self::Closing { member, .. }
            | Self::Loss { member }
            | Self::NodeLoss { member }
            | Self::Namespace { member }
            | Self::Twin { member }
            | Self::Unauthorized { member } => {
                vec![member]
            }
            Self::Disconnection | Self::Restart => Vec::new(),
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drift { set, drift } => {
                let what = match drift {
                    Drift::Replicas => "adds a replica to a ReplicaSet",
                    Drift::Image => "changes the image of a ReplicaSet",
                    Drift::MinReadySeconds => "changes minReadySeconds of a ReplicaSet",
                    Drift::Label => "removes a label of a ReplicaSet",
                    Drift::Deleted => "deletes a ReplicaSet without its pods",
                };
                write!(to, "somebody {what} of {set}")
            }
            Self::Growth { set } => write!(to, "user adds a replica to {set}"),
            Self::Template { set } => write!(to, "user changes the image of {set}"),
            Self::Pause { set } => write!(to, "user pauses {set}"),
            Self::Invalid { set } => write!(to, "user makes {set} invalid"),
            Self::Annotation { set, member } => {
                write!(to, "user selects {member} in the annotation of {set}")
            }
            Self::Unbalanced { set, member } => write!(
                to,
                "user switches rebalancing of {set} off and changes the weight of {member}"
            ),
            Self::Deletion {
                set,
                deletes,
                rejections,
            } => {
                let policy = if *deletes { "Delete" } else { "Orphan" };
                write!(
                    to,
                    "user deletes {set} with deletionPolicy {policy}, {rejections} writes are rejected"
                )
            }
            Self::Conflict { set } => write!(to, "user pauses {set}, its status conflicts once"),
            Self::Churn { set } => write!(to, "somebody deletes pods of {set}"),
            Self::Foreign { set } => {
                write!(
                    to,
                    "somebody gives a ReplicaSet of {set} to another federation"
                )
            }
            Self::NodeLoss { member } => write!(to, "a node of {member} stops"),
            Self::Namespace { member } => write!(
                to,
                "user creates a set in another namespace, and {member} loses that namespace"
            ),
            Self::Twin { member } => write!(to, "{member} gets a second name"),
            Self::Closing { member, closing } => {
                let how = match closing {
                    Closing::Drain => "drains",
                    Closing::Namespaces => "takes the namespace off",
                    Closing::Cordon => "cordons",
                };
                write!(to, "administrator {how} {member}")
            }
            Self::Loss { member } => write!(to, "{member} is unreachable for long"),
            Self::Disconnection => write!(to, "all members are unreachable for long"),
            Self::Unauthorized { member } => write!(to, "{member} rejects the credentials"),
            Self::Resume { set } => {
                write!(to, "user scales {set} down, and the leader dies meanwhile")
            }
            Self::Idle { set, member } => {
                write!(
                    to,
                    "user moves replicas of {set} that start away from {member}"
                )
            }
            Self::Restart => write!(to, "the controllers are started again"),
        }
    }
}
