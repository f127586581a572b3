//! What has to be done for one AvailabilitySet, from what its object says and what its members show. Pure.
//!
//! ```text
//! Seen of each member -> Member (pods, parts) -> Verdict, domains, loans -> status, conditions, events -> requests, finalizer -> next look
//! ```
//!
//! The status has every loan before it is written, and until it is removed: that is how a later leader knows what may have been lent.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::repeat_n,
    time::Duration,
};

use controller_base::{event::Event, field_errors, finalizer};
use fedrs_api::{
    AvailabilityCluster, AvailabilitySet, AvailabilitySetStatus, Loan, ValidAvailabilitySet,
    finalizers,
};
use jiff::Timestamp;

use crate::{
    conditions::{self, Facts},
    domains::{self, number},
    events,
    federated_set::FederatedSet,
    limited::{self, MemberPart},
    loans::{self, Part},
    neighbours::Neighbours,
    observed::Seen,
    own::{Own, Request, Target},
    parts::{self, Member},
    rollouts::Rollouts,
    turn,
    verdict::{Counts, Verdict},
};

/// The time between two looks at members.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);
/// The time after which writes show.
const AFTER_WRITES: Duration = Duration::from_secs(1);

/// What a plan is made from.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) set: &'a AvailabilitySet,
    /// The id of the federation.
    pub(crate) federation: &'a str,
    /// All AvailabilitySets of the namespace and federation, as they were while the members were read.
    pub(crate) neighbours: &'a Neighbours,
    /// The FederatedDeployments of the namespace and federation.
    pub(crate) deployments: &'a [FederatedSet],
    /// What is known of each member, by name.
    pub(crate) seen: &'a BTreeMap<String, Seen>,
    /// The members that rejected the last request, and why.
    pub(crate) rejected: &'a BTreeMap<String, String>,
    /// Whether the host has rejected the last request.
    pub(crate) has_host_rejected: bool,
    pub(crate) now: Timestamp,
}

/// A change of the finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalizerChange {
    /// Before everything else.
    Add,
    /// After everything else.
    Remove,
}

/// What has to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) finalizer: Option<FinalizerChange>,
    /// To be written before any request is sent, if it differs.
    pub(crate) status: AvailabilitySetStatus,
    pub(crate) events: Vec<Event>,
    /// By cluster.
    pub(crate) requests: BTreeMap<String, Vec<Request>>,
    /// To the host.
    pub(crate) host_requests: Vec<Request>,
    /// When to look again; `None` if nothing changes before the object does.
    pub(crate) next: Option<Duration>,
}

/// Whether the object is deleted, and waits for its finalizers.
pub(crate) fn is_deleted(set: &AvailabilitySet) -> bool {
    set.metadata.deletion_timestamp.is_some()
}

/// The plan.
pub(crate) fn plan(input: &Input<'_>) -> Plan {
    let previous = input.set.status.clone().unwrap_or_default();
    if is_deleted(input.set) {
        return removal(input, &previous);
    }
    match ValidAvailabilitySet::check(&input.set.spec) {
        Ok(valid) => Planner::new(input, &valid, &previous).plan(),
        Err(errors) => not_accepted(input, &field_errors::message(&errors), &previous),
    }
}

/// What is recorded of a cluster.
fn recorded<'s>(status: &'s AvailabilitySetStatus, name: &str) -> Option<&'s AvailabilityCluster> {
    status.clusters.iter().find(|cluster| cluster.name == name)
}

/// The clusters that are no members any more, and still have what limits evictions.
fn forgotten<'s>(
    input: &Input<'_>,
    previous: &'s AvailabilitySetStatus,
) -> impl Iterator<Item = &'s AvailabilityCluster> {
    let clusters = previous.clusters.iter();
    clusters.filter(|cluster| !cluster.loans.is_empty() && !input.seen.contains_key(&cluster.name))
}

/// Nothing is changed in members, and the status says why.
fn not_accepted(input: &Input<'_>, errors: &str, previous: &AvailabilitySetStatus) -> Plan {
    let generation = input.set.metadata.generation;
    let conditions = conditions::invalid(errors).into_iter();
    let conditions = conditions
        .map(|condition| condition.into_condition(&previous.conditions, generation, input.now));
    let status = AvailabilitySetStatus {
        observed_generation: generation,
        conditions: conditions.collect(),
        ..previous.clone()
    };
    Plan {
        finalizer: None,
        events: events::of(previous, &status, &[]),
        status,
        requests: BTreeMap::new(),
        host_requests: Vec::new(),
        next: None,
    }
}

/// What was lent is removed from all members; the finalizer last.
fn removal(input: &Input<'_>, previous: &AvailabilitySetStatus) -> Plan {
    let own = Own::of(input.set, input.federation, input.neighbours);
    let mut requests = BTreeMap::new();
    let mut left = Vec::new();
    for cluster in previous.clusters.iter().filter(|of| !of.loans.is_empty()) {
        match input.seen.get(&cluster.name) {
            Some(Seen::Observed(observed)) => {
                let of_cluster: Vec<_> =
                    own.all(observed).filter_map(|of| own.remove(of)).collect();
                if !of_cluster.is_empty() {
                    requests.insert(cluster.name.clone(), of_cluster);
                    left.push(cluster.clone());
                }
            }
            Some(_) => left.push(cluster.clone()),
            None => {}
        }
    }
    let has_finalizer = finalizer::is_present(&input.set.metadata, finalizers::AVAILABILITY_SET);
    let lent = input.deployments.iter();
    let lent = lent.filter(|set| own.limit_on(&set.metadata).is_some());
    let host_requests: Vec<_> = lent
        .filter_map(|set| own.remove(Target::Rollout(set)))
        .collect();
    let is_clean = left.is_empty() && host_requests.is_empty();
    let forgotten: Vec<_> = forgotten(input, previous).collect();
    let status = AvailabilitySetStatus {
        clusters: left,
        rollouts: if host_requests.is_empty() {
            Vec::new()
        } else {
            previous.rollouts.clone()
        },
        ..previous.clone()
    };
    Plan {
        finalizer: (has_finalizer && is_clean).then_some(FinalizerChange::Remove),
        events: events::of(previous, &status, &forgotten),
        status,
        next: (!is_clean).then(|| next(input, &requests, &host_requests)),
        requests,
        host_requests,
    }
}

/// What has to be written: one for each part.
struct Writes<'a> {
    /// Of each member that was read.
    members: BTreeMap<&'a str, Vec<Option<u64>>>,
    rollouts: Vec<Option<u64>>,
}

/// When to look again: soon after writes. Who rejects requests is asked again with the next period.
fn next(
    input: &Input<'_>,
    requests: &BTreeMap<String, Vec<Request>>,
    host_requests: &[Request],
) -> Duration {
    let is_new = |member: &String| !input.rejected.contains_key(member);
    let asks_host = !host_requests.is_empty() && !input.has_host_rejected;
    if asks_host || requests.keys().any(is_new) {
        AFTER_WRITES
    } else {
        PERIOD
    }
}

/// The plan of a valid set that is not deleted.
struct Planner<'a> {
    input: &'a Input<'a>,
    own: Own<'a>,
    valid: &'a ValidAvailabilitySet,
    previous: &'a AvailabilitySetStatus,
    /// The members that were read.
    members: BTreeMap<&'a str, Member<'a>>,
    /// What is known of the others, by name.
    others: BTreeMap<&'a str, AvailabilityCluster>,
    rollouts: Rollouts<'a>,
}

impl<'a> Planner<'a> {
    fn new(
        input: &'a Input<'a>,
        valid: &'a ValidAvailabilitySet,
        previous: &'a AvailabilitySetStatus,
    ) -> Self {
        let own = Own::of(input.set, input.federation, input.neighbours);
        let (mut members, mut others) = (BTreeMap::new(), BTreeMap::new());
        let observed = input.seen.iter().filter_map(|(name, seen)| match seen {
            Seen::Observed(observed) => Some((&**name, observed)),
            Seen::Away(_) | Seen::NotRead(_) => None,
        });
        let observed: Vec<_> = observed.collect();
        let rollouts = Rollouts::of(
            input.deployments,
            (&own, valid),
            &previous.rollouts,
            &observed,
        );
        for (name, seen) in input.seen {
            let before = recorded(previous, name);
            let loans = before.map_or(&[][..], |cluster| &cluster.loans);
            match seen {
                Seen::Observed(observed) => {
                    members.insert(&**name, parts::of(name, observed, &own, valid, loans));
                }
                Seen::Away(_) => {
                    let away = before.map(|cluster| AvailabilityCluster {
                        unreachable: cluster.pods,
                        ..cluster.clone()
                    });
                    others.extend(away.map(|cluster| (&**name, cluster)));
                }
                Seen::NotRead(_) => others.extend(before.cloned().map(|of| (&**name, of))),
            }
        }
        Self {
            input,
            own,
            valid,
            previous,
            members,
            others,
            rollouts,
        }
    }

    /// All pods that count.
    fn counts(&self) -> Counts {
        let members = self.members.values().map(Member::counts);
        let others = self.others.values();
        let others = others.map(|cluster| (natural(cluster.pods), natural(cluster.unreachable)));
        let (pods, unreachable) = members
            .chain(others)
            .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        Counts { pods, unreachable }
    }

    fn writes(&self, verdict: &Verdict) -> Writes<'a> {
        let members = self.members.iter();
        let parts =
            members.flat_map(|(name, member)| self.rollouts.without_updated(name, &member.parts));
        let rollouts = self.rollouts.parts.iter().map(|of| of.part);
        let parts = parts.chain(self.others.values().map(fixed)).chain(rollouts);
        let parts: Vec<_> = parts.collect();
        let budget = verdict.allowance();
        let writes = if self.valid.is_one_cluster_at_a_time {
            let members = self.members.values().map(|member| member.parts.len());
            let others = self.others.values().map(|_| 1);
            // A rollout updates one cluster after the other, and none is disturbed meanwhile.
            let rollouts = self.rollouts.parts.iter().map(|_| 1);
            let clusters = members.chain(others).chain(rollouts).enumerate();
            let clusters = clusters.flat_map(|(index, parts)| repeat_n(index, parts));
            turn::writes(budget, &parts, &clusters.collect::<Vec<_>>())
        } else {
            loans::writes(budget, &parts)
        };
        let mut writes = writes.into_iter();
        let of_member = |(name, member): (&&'a str, &Member<'_>)| {
            let of_member = writes.by_ref().take(member.parts.len());
            (*name, of_member.collect())
        };
        let members = self.members.iter().map(of_member).collect();
        Writes {
            members,
            rollouts: writes.skip(self.others.len()).collect(),
        }
    }

    /// The request that a write of a part is.
    fn request(&self, (of, write): (&MemberPart<'_>, &Option<u64>)) -> Option<Request> {
        let (target, max_unavailable) = of.target.zip(*write)?;
        let revision = of.revision + 1;
        Some((self.own).write(target, self.valid, max_unavailable, revision))
    }

    fn host_requests(&self, writes: &Writes<'_>) -> Vec<Request> {
        let obsolete = self.rollouts.obsolete.iter();
        let removed = obsolete.filter_map(|set| self.own.remove(Target::Rollout(set)));
        let parts = self.rollouts.parts.iter().zip(&writes.rollouts);
        removed
            .chain(parts.filter_map(|of| self.request(of)))
            .collect()
    }

    fn requests(&self, writes: &Writes<'_>) -> BTreeMap<String, Vec<Request>> {
        let mut requests = BTreeMap::new();
        for (name, member) in &self.members {
            let obsolete = member.obsolete.iter();
            let mut of_member: Vec<_> = obsolete.filter_map(|of| self.own.remove(*of)).collect();
            let writes = writes.members.get(name).into_iter().flatten();
            let written = member.parts.iter().zip(writes);
            of_member.extend(written.filter_map(|of| self.request(of)));
            if !of_member.is_empty() {
                requests.insert((*name).to_owned(), of_member);
            }
        }
        requests
    }

    fn clusters(&self, writes: &Writes<'_>) -> Vec<AvailabilityCluster> {
        let members = self.members.iter().map(|(name, member)| {
            let (pods, unreachable) = member.counts();
            let writes = writes.members.get(name).map_or(&[][..], Vec::as_slice);
            let loans = limited::loans(&member.parts, &self.own, writes);
            let cluster = AvailabilityCluster {
                name: (*name).to_owned(),
                pods: number(pods),
                unreachable: number(unreachable),
                loans: loans.into_iter().chain(self.left(name, member)).collect(),
            };
            (*name, cluster)
        });
        let others = self.others.iter().map(|(name, of)| (*name, of.clone()));
        let all: BTreeMap<_, _> = members.chain(others).collect();
        let is_shown = |of: &AvailabilityCluster| of.pods > 0 || !of.loans.is_empty();
        all.into_values().filter(is_shown).collect()
    }

    /// The records of what is still to be removed.
    fn left(&self, name: &str, member: &Member<'_>) -> Vec<Loan> {
        let before = recorded(self.previous, name);
        let loans = before.into_iter().flat_map(|cluster| &cluster.loans);
        let former = member.former.iter().map(|of| Target::Budget(Some(of)));
        let all: Vec<_> = member.obsolete.iter().copied().chain(former).collect();
        let is_left = |loan: &&Loan| all.iter().any(|of| of.lends(loan));
        loans.filter(is_left).cloned().collect()
    }

    /// The records of what is lent to rollouts, and of what is still to be removed.
    fn lent_to_rollouts(&self, writes: &Writes<'_>) -> Vec<Loan> {
        let obsolete = self.rollouts.obsolete.iter();
        let obsolete: Vec<_> = obsolete.map(|set| Target::Rollout(set)).collect();
        let before = self.previous.rollouts.iter();
        let left = before.filter(|loan| obsolete.iter().any(|of| of.lends(loan)));
        let loans = limited::loans(&self.rollouts.parts, &self.own, &writes.rollouts);
        loans.into_iter().chain(left.cloned()).collect()
    }

    fn status(
        &self,
        counts: Counts,
        verdict: &Verdict,
        writes: &Writes<'_>,
    ) -> AvailabilitySetStatus {
        let collect = |of: for<'m> fn(&'m Member<'a>) -> &'m Vec<domains::Place>| -> Vec<_> {
            let members = self.members.values();
            members
                .flat_map(|member| of(member).iter().cloned())
                .collect()
        };
        let is_complete = self.others.is_empty();
        let domains = if is_complete || self.previous.domains.is_empty() {
            let nodes = collect(|member| &member.nodes);
            domains::domains(&nodes, &collect(|member| &member.places), verdict.budget)
        } else {
            // What is not known now is as it was.
            self.previous.domains.clone()
        };
        AvailabilitySetStatus {
            observed_generation: self.input.set.metadata.generation,
            pods: number(counts.pods),
            available: number(counts.pods - counts.unreachable),
            unreachable: number(counts.unreachable),
            budget: number(verdict.budget),
            budget_left: number(verdict.left),
            domains,
            clusters: self.clusters(writes),
            rollouts: self.lent_to_rollouts(writes),
            conditions: Vec::new(),
        }
    }

    fn facts(&self, counts: Counts, verdict: Verdict) -> Facts<'_> {
        let mut facts = Facts {
            counts,
            verdict,
            away: BTreeMap::new(),
            not_read: BTreeMap::new(),
            other_budgets: BTreeSet::new(),
            overlapping: BTreeSet::new(),
            awaited: BTreeSet::new(),
            mixed: BTreeSet::new(),
        };
        for (name, seen) in self.input.seen {
            match seen {
                Seen::Away(why) => _ = facts.away.insert(name, why),
                Seen::NotRead(why) => _ = facts.not_read.insert(name, why),
                Seen::Observed(_) => {}
            }
        }
        let rejected = self.input.rejected.iter();
        (facts.not_read).extend(rejected.map(|(name, why)| (&**name, &**why)));
        for (name, member) in &self.members {
            let other = member.other_budget.iter();
            (facts.other_budgets).extend(other.map(|budget| format!("{name}/{budget}")));
            facts.overlapping.extend(member.overlapping);
            (facts.awaited).extend(member.awaited.iter().map(String::as_str));
            (facts.mixed).extend(member.is_mixed.then_some(*name));
        }
        facts
    }

    fn plan(self) -> Plan {
        let counts = self.counts();
        let verdict = Verdict::of(counts, self.valid.budget);
        let has_finalizer =
            finalizer::is_present(&self.input.set.metadata, finalizers::AVAILABILITY_SET);
        let mut writes = self.writes(&verdict);
        if !has_finalizer {
            // Without it, the object could disappear before what was lent.
            let of_members = writes.members.values_mut().flatten();
            of_members
                .chain(&mut writes.rollouts)
                .for_each(|write| *write = None);
        }
        let (requests, host_requests) = if has_finalizer {
            (self.requests(&writes), self.host_requests(&writes))
        } else {
            (BTreeMap::new(), Vec::new())
        };
        let mut status = self.status(counts, &verdict, &writes);
        let generation = self.input.set.metadata.generation;
        let conditions = conditions::of(&self.facts(counts, verdict)).into_iter();
        let previous = &self.previous.conditions;
        status.conditions = conditions
            .map(|condition| condition.into_condition(previous, generation, self.input.now))
            .collect();
        let forgotten: Vec<_> = forgotten(self.input, self.previous).collect();
        Plan {
            finalizer: (!has_finalizer).then_some(FinalizerChange::Add),
            events: events::of(self.previous, &status, &forgotten),
            status,
            next: Some(next(self.input, &requests, &host_requests)),
            requests,
            host_requests,
        }
    }
}

/// The part of a cluster that can't be changed now.
fn fixed(cluster: &AvailabilityCluster) -> Part {
    let loans = cluster
        .loans
        .iter()
        .map(|loan| natural(loan.max_unavailable));
    let pods = natural(cluster.pods);
    Part {
        pods,
        unreachable: natural(cluster.unreachable),
        exposure: loans.sum::<u64>().min(pods),
        held: 0,
        repairs: 0,
        wanted: 0,
        limit: None,
    }
}

fn natural(number: i32) -> u64 {
    number.try_into().unwrap_or(0)
}
