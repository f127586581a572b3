//! Decides which member cluster may roll how many pods next, within one budget over all clusters (L6, L8, L10, L14, L15).
//! Pure: no clock, no IO, no Kubernetes types.
//!
//! ```text
//! Rollout, State (recorded on the host), now
//!   -> steps      which step has begun: complete, soaked, approved
//!   -> recall     what each loan may be, if the budget was made smaller
//!   -> verdict    each loan ends, stays, is recorded anew, or leads to a write: Roll, Shrink, Fence
//!   -> deadline   whether the rollout makes progress, or has failed
//!   -> lend       new loans from what is free in the account (L14), and by the speed (L15)
//!   -> Decision   State to publish, writes, what each member waits for
//! ```
//!
//! # Loans
//!
//! A Deployment of the same name in each member runs its part of N replicas. Its strategy is a part of the budget: parts of
//! `maxUnavailable` and `maxSurge` are *lent* to members, as integers. A member with a loan gets the target template and
//! a strategy of that size in one write; without a loan it keeps its template and the strategy 0 and 1.
//!
//! ```text
//! step -> State with a new loan -> publish -> step with that State -> Write::Roll -> the member rolls by itself
//!                                                                  -> complete: the loan ends, nothing is written
//! ```
//!
//! So the sum of all loans holds whatever is cut off, restarted or late: a template is only ever written with what the
//! host has recorded, at the one generation of the Deployment that the loan names; and a loan is not used again before
//! the Deployment has observed a later generation, and either can't make use of its strategy any more or has a smaller one.
//! While a member is unreachable its loan stays. Once it is lost, its loan and its replicas leave the account; when it
//! returns, its strategy is the first thing to be written.
//!
//! A LocalReplicaSet in the place of a Deployment has no surge, and can be recalled entirely: without a loan its `maxUnavailable` is
//! 0, and it is paused. It uses its strategy for evictions as well, at any time, so that a loan always ends by a recall. Members
//! without a loan in which evictions wait get one for these (L20), and stay paused, see `evict`.
//!
//! # What the caller does
//!
//! - It publishes [`Decision::state`] with a precondition on what it has read, and so does whoever moves replicas, before
//!   writing: a state that was decided before a move must not be recorded after it.
//! - It carries writes out with their generation, and the uid of the view, as the precondition.
//! - It sets each member's `minReadySeconds` to at least [`Speed::min_delay`], and creates missing Deployments.
//! - It moves no replica to or from a member with [`MemberAccount::moves_wait`], and replaces missing ones at once.
//!
//! # Limits
//!
//! The smallest strategy is one pod: a recalled Deployment with pods of two templates goes on rolling, with one pod at a
//! time, until its template is replaced. So a budget that is made smaller than the number of such members is exceeded by
//! them, and while a step waits, members that were updated early make some more pods of a revision that is skipped. A pause of the
//! Deployment is no recall: a paused Deployment scales its ReplicaSets in proportion, also the available ones, and uses its surge. It
//! keeps what it guarantees, and its loan.

mod account;
mod action;
mod budget;
mod deadline;
mod decision;
mod evict;
mod lend;
mod loan;
mod member;
mod recall;
mod rollout;
mod speed;
mod state;
mod step;
mod steps;
mod strategy;
mod time;
mod verdict;
mod wait;

pub use account::{Account, MemberAccount};
pub use action::{Action, Write};
pub use budget::{Amount, Budget, Limits};
pub use decision::Decision;
pub use member::{Deployment, LocalSet, Member, MemberState};
pub use rollout::{Approval, Limit, OnFailure, Rollout, Speed, Step};
pub use state::{Loan, Returned, State};
pub use step::step;
pub use strategy::Strategy;
pub use time::after;
pub use wait::WaitReason;
