//! Decides which pods of a LocalReplicaSet are created, removed, evicted and updated next (L1 to L22, C1 to C8). Pure: no clock, no
//! IO, no client.
//!
//! ```text
//! Set, Pods, PodDisruptionBudgets, LocalRecord (in the status), now
//!   -> record     what of the recorded updates and evictions still holds; places of pods that are recreated
//!   -> group      the group of each pod: Ready, InProgress, Failed, MarkedRemove (L16)
//!   -> account    what of the budget is in use (L14)
//!   -> scale      adoption and release; creations and removals, without a budget (L13, L21)
//!   -> evict      evictions, within the budget and before updates (L18 to L20); with a MigrationPolicy, as `migration` allows (M1 to M15)
//!   -> update     updates that begin, within the budget and the speed (L14, L15, L22)
//!   -> disruption what evictions of others may use of the budget: the PodDisruptionBudget (L20)
//!   -> carry_out  the next action of what is recorded: a gate, a patch, a removal (L12, L17)
//!   -> leave      before a removal or a restart: clients leave the pod (L17)
//!   -> Plan       record to publish, actions, what is waited for
//!   -> migration_state  how far each MigrationRequest is
//! ```
//!
//! At the edge, pure as well: [`ObservedPod`] reads the facts from a pod object, [`CompleteTemplate`] has what the controller adds to
//! pods, and [`Requests`] makes the requests from the actions.
//!
//! # What is recorded has begun
//!
//! An update or an eviction makes a pod unavailable that was available. So it is recorded before anything is done, and until it is
//! complete it uses the budget, whatever happens to the controller. What was recorded is carried out, also if the user pauses
//! updates in the meantime: a request for it may be on its way. Only `stopped` holds it.
//!
//! Creations and removals of a surplus need no record: names and orders follow from the pods, so that a step after a lost answer
//! decides the same.
//!
//! # What the caller does
//!
//! - It publishes [`Plan::record`] with a precondition on the version that it has read, then steps again.
//! - It carries out each action with the uid of the pod as the precondition, and with its version: [`Action::needs_version`].
//! - It adds the results of its requests to the pods before the next step. A pod whose removal was sent, but not answered, is
//!   [`Life::Terminating`] without a time until a read shows it; of another request without an answer, a read shows the effect before
//!   the next step. A creation whose name exists is done if that pod belongs to the set.
//! - It reports the results of creations, and the pods that it sees, to [`SlowStart`].
//!
//! # Limits
//!
//! A request that is delayed on its way, and arrives after the template was set back to what its pod had, still updates that pod if
//! nothing of the pod has changed since. A creation that is delayed for longer than the whole life of the pod that its repetition has
//! made makes one pod more, and the surplus is removed in the order of L21.

mod account;
mod carry_out;
mod change;
mod copies;
mod copy;
mod disruption;
mod drain;
mod evict;
mod finalizer;
mod group;
mod in_place;
mod kept;
mod leave;
mod migration;
mod migration_state;
mod names;
mod observed_budget;
mod observed_node;
mod observed_pod;
mod order;
mod plan;
mod pod;
mod pod_template;
mod policy;
mod record;
mod request;
mod resize;
mod resources;
mod scale;
mod set;
mod shutdown;
mod slow_start;
mod speed;
mod step;
mod time;
mod update;

pub use account::{Account, BudgetUser};
pub use change::{Change, Patch};
pub use disruption::{BudgetChange, DisruptionBudget, DisruptionPlan, Disruptions};
pub use evict::LEAST_AGE;
pub use group::{Counts, Group, GroupCounts};
pub use in_place::InPlaceRecord;
pub use migration::MigrationWait;
pub use migration_state::{MigrationState, MigrationStates};
pub use observed_budget::{BUDGETS, ObservedBudget, budget_name, budget_path, budget_request};
pub use observed_node::ObservedNode;
pub use observed_pod::{NodeState, ObservedPod, PodController};
pub use order::RemovalRank;
pub use plan::{Action, CreateReason, Plan, PodWait, Purpose, RemoveReason, Start, Wait};
pub use pod::{
    Absence, Confirmed, Eviction, EvictionBy, Gate, Guard, InPlace, Life, Node, Owner, Pod,
    Readiness, RequestedMigration,
};
pub use pod_template::{CompleteTemplate, SlotUse, Slots};
pub use policy::Policy;
pub use request::{Request, Requests, Verb, open_gate, remove_finalizer};
pub use resize::{Container, ContainerResize, Resize, ResizeStatus, ResizeWait};
pub use resources::{Amounts, Resources};
pub use set::Set;
pub use slow_start::{Created, SlowStart};
pub use step::step;
