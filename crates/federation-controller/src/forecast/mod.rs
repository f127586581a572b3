//! Forecasts what the controller would do with a set: runs its checks against models of the members until nothing moves any
//! more. Pure.
//!
//! ```text
//! status of the set, MemberClusters --> Member, as a check sees it --> check --actions--> models of the members
//! what if: lost, cordoned, drained ---------'                            ^                         |
//!                                                                        '-- one round after another
//! ```
//!
//! A model runs what is requested of it, up to the capacity that its cluster has shown; pods that get a node become ready.
//! What was rejected before is rejected again.

mod deployment_model;
mod member;
mod model;
mod question;
pub mod rollout;

use std::borrow::Cow;

use cluster_informer::Health;
use fedrs_api::{EventReason, FederatedReplicaSetStatus, MemberCluster};
use jiff::{SignedDuration, Timestamp};

pub use self::question::{Question, WhatIf};
use self::{
    member::{NEW_TEMPLATE, PRESENT_TEMPLATE, previous_status},
    model::Model,
};
use crate::{
    check::{self, DesiredHashes, Member, Outage, Outcomes, Snapshot, after, check},
    config::Config,
};
use controller_base::event::Event;

/// The most rounds of a forecast: a set that still moves then never settles, or has too small a surge to be waited for.
const MAX_ROUNDS: u32 = 1000;
/// The time between a write and the reaction of the member.
const REACTION: SignedDuration = SignedDuration::from_secs(1);

/// What the controller would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The status when nothing moves any more.
    pub status: FederatedReplicaSetStatus,
    /// How many times replicas start for which others, or the next step, wait.
    pub steps: u32,
    /// The most replicas above N at any time.
    pub surge: u64,
    /// How the moves end.
    pub end: End,
    /// What is wrong with the placement, if anything is.
    pub warnings: Vec<String>,
}

/// How the moves end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing moves any more.
    AtRest,
    /// The set is paused: the status has what would be desired.
    Paused,
    /// No member would answer: the controller considers itself disconnected, and changes nothing.
    Disconnected,
    /// Replicas still move after as many steps as were computed.
    Moving,
}

/// Finds what the controller would do.
#[must_use]
pub fn forecast(question: &Question<'_>) -> Forecast {
    let mut run = Run::begin(question);
    let end = if run.is_disconnected() {
        run.status = question.status.clone();
        End::Disconnected
    } else if question.frs.paused {
        run.round();
        End::Paused
    } else {
        run.play()
    };
    Forecast {
        surge: run.settings.max_move_surge.of(question.frs.replicas.into()),
        status: run.status,
        steps: run.steps,
        end,
        warnings: run.warnings,
    }
}

/// The rounds so far.
struct Run<'a> {
    question: &'a Question<'a>,
    /// The settings of the set.
    settings: Cow<'a, Config>,
    /// The members as a check sees them, by name.
    members: Vec<Member>,
    /// One for each member.
    models: Vec<Model>,
    status: FederatedReplicaSetStatus,
    steps: u32,
    warnings: Vec<String>,
    now: Timestamp,
}

/// What a round did.
enum Round {
    /// Members have changed.
    Changed,
    /// Nothing: the next check is at this time.
    Waits(Timestamp),
    /// Nothing, and no further check is needed.
    Settled,
}

impl<'a> Run<'a> {
    fn begin(question: &'a Question<'a>) -> Self {
        let status = previous_status(question.status);
        let of_federation =
            |member: &&MemberCluster| member.spec.federation == question.frs.federation;
        let mut objects: Vec<_> = question.members.iter().filter(of_federation).collect();
        objects.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let previous = |member: &MemberCluster| {
            let mut clusters = status.clusters.iter();
            clusters.find(|cluster| Some(&cluster.name) == member.metadata.name.as_ref())
        };
        let seen = objects
            .into_iter()
            .map(|object| member::seen(question, object, previous(object)));
        let (members, models) = seen.unzip();
        Self {
            question,
            settings: question.settings.of_set(&question.frs.rescheduling),
            members,
            models,
            status,
            steps: 0,
            warnings: Vec::new(),
            now: question.now,
        }
    }

    /// Whether no member answers, and one can't be reached that is not lost already.
    fn is_disconnected(&self) -> bool {
        let answers = |member: &Member| {
            matches!(member.health, Health::Healthy | Health::Unauthorized { .. })
        };
        let is_cut_off = |member: &Member| {
            matches!(member.health, Health::Unreachable { .. })
                && (member.outage == Outage::None
                    || self.question.what_if.lost.contains(&member.name))
        };
        !self.members.iter().any(answers) && self.members.iter().any(is_cut_off)
    }

    fn play(&mut self) -> End {
        let settings = &self.settings;
        // By then each rejected write has been tried again, and each cluster that can't run its replicas has shown it.
        let unscheduled = settings.unscheduled_timeout.unwrap_or_default();
        let quiet = unscheduled + settings.backoff_max + settings.recheck_interval;
        let mut changed = self.now;
        for _ in 0..MAX_ROUNDS {
            match self.round() {
                Round::Settled => return End::AtRest,
                Round::Waits(time) if time > after(changed, quiet) => return End::AtRest,
                Round::Waits(time) => self.now = time,
                Round::Changed => {
                    self.now += REACTION;
                    changed = self.now;
                }
            }
            for (member, model) in self.members.iter_mut().zip(&self.models) {
                model.react(member, self.now);
            }
        }
        End::Moving
    }

    /// One check, and what its actions do.
    fn round(&mut self) -> Round {
        let Question {
            frs, new_template, ..
        } = *self.question;
        let spec = if new_template {
            NEW_TEMPLATE
        } else {
            PRESENT_TEMPLATE
        };
        let desired = DesiredHashes {
            spec,
            settings: None,
        };
        let checked = check(
            &Snapshot {
                frs,
                desired,
                template_hash: model::TEMPLATE,
                rollout: None,
                previous: &self.status,
                members: &self.members,
                overlapping: &[],
                keeps_running_until: None,
                settings: &self.settings,
            },
            self.now,
        );
        let about_names = |event: &Event| event.reason == EventReason::UnknownCluster.as_str();
        let about_names = checked.events.into_iter().filter(about_names);
        self.warnings.extend(about_names.map(|event| event.message));
        let mut outcomes = Outcomes::new();
        let (mut changed, mut grows) = (false, false);
        for action in checked.actions {
            let by_name = |member: &Member| member.name.cmp(&action.member);
            let Ok(index) = self.members.binary_search_by(by_name) else {
                continue;
            };
            let done = self.models[index].carry_out(&mut self.members[index], &action.change);
            changed |= done.changed;
            grows |= done.grows;
            outcomes.insert(action.member, done.outcome);
        }
        self.steps += u32::from(grows);
        self.status =
            check::with_outcomes(checked.status, &outcomes, desired, self.now, &self.settings);
        match checked.next_check {
            _ if changed => Round::Changed,
            Some(time) => Round::Waits(time),
            None => Round::Settled,
        }
    }
}
