//! The end of a run: when the faults of the core have stopped, the desired state is reached within a time, and stays.
//!
//! The desired state is computed here, from the specs and the members, and not from the controller's decisions: how many
//! replicas each member has (`layout`), what their ReplicaSets and pods look like (`local_set`), and what the statuses say of
//! them (`status`).

mod layout;
mod local_set;
mod rollout;
mod status;

pub(super) use local_set::{pods_of, wrong_object};
pub(super) use status::wrong_member;

use std::collections::BTreeMap;

use fedrs_api::{FederatedReplicaSet, MemberReason, ValidFrs, WaitReason};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::runner::Runner;
use crate::{
    checks::{Invariant, is_labeled},
    join::MEMBERS_PATH,
    observe::LocalSetState,
    plan::{Action, Fault, Plan, Step},
    set_kind::ValidSet,
    sim_federation::HOST,
    trace::Topic,
};

/// The desired state is reached within this time: more than the longest stabilization window (30 min) and the longest backoff
/// (10 min).
pub(super) const REACHED_WITHIN: Duration = Duration::from_secs(3600);
/// After this time all clusters show which nodes do not run, and those that start do.
const NODES_SHOWN_AFTER: Duration = Duration::from_secs(60);
/// How often the state is polled.
const LOOK: Duration = Duration::from_secs(5);
/// After this time the controller has nothing left to write: drift counts expire after ten minutes.
const CALM_AFTER: Duration = Duration::from_secs(700);
/// After this time a member that was restored has been listed again, which corrects what its watches did not show.
const LISTED_AFTER: Duration = Duration::from_secs(1850);
/// After this time the status of a member records no more that it was lost, for the next leader.
const LOSSES_FORGOTTEN_AFTER: Duration = Duration::from_secs(3700);
/// One of this many plans waits for that: it takes as long as all else.
const WAITS_FOR_FORGOTTEN_LOSSES: u64 = 4;
/// For this time the controller writes nothing.
const QUIET_FOR: Duration = Duration::from_secs(600);

/// Faults after which a member is lost: its replicas go elsewhere.
const LOSING: [Fault; 4] = [
    Fault::Unreachable,
    Fault::Hanging,
    Fault::NoPower,
    Fault::NoKubeconfig,
];

/// What must not be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quiet {
    /// Anything may be.
    Nothing,
    /// All but the MemberClusters.
    Sets,
    Everything,
}

impl Quiet {
    /// Whether this must not have been written: `PUT host /api/v1/...`.
    fn forbids(self, what: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Sets => !what.contains(MEMBERS_PATH),
            Self::Everything => true,
        }
    }
}

/// Waits until the desired state is reached, and checks that it stays. Returns the goal if it has been reached and nothing is
/// broken any more.
pub(super) async fn check(runner: &mut Runner, core: &[String], plan: &Plan) -> Option<Goal> {
    let goal = Goal::new(runner, core);
    let corrected = clock_steps(plan, 1);
    runner
        .wait_until(Instant::now() + NODES_SHOWN_AFTER + corrected)
        .await;
    let within = REACHED_WITHIN + clock_steps(plan, -1);
    let deadline = Instant::now() + within;
    loop {
        let mut pending = goal.pending(runner);
        if goal.is_whole && pending.is_empty() {
            pending.extend(stabilizing_set(runner));
        }
        let is_late = Instant::now() >= deadline;
        // Beside a broken member more may be unavailable while something is lent, which is for ever if it has a part of it.
        let is_rolling = !goal.is_whole && runner.sets.iter().any(|set| lends(runner, &set.name));
        if pending.is_empty() && (is_late || !is_rolling) {
            break;
        }
        if is_late {
            let text = pending.join("; ");
            runner.fail(
                Invariant::Reached,
                format!("not within {} s: {text}", within.as_secs()),
            );
            return None;
        }
        runner.wait_until(Instant::now() + LOOK).await;
    }
    runner
        .recorder
        .trace(Topic::Phase, "the desired state is reached");
    let is_restoration = |step: &Step| matches!(step.action, Action::Restore { .. });
    let calm_after = if plan.steps.iter().any(is_restoration) {
        LISTED_AFTER
    } else {
        CALM_AFTER
    };
    stays(runner, &goal, calm_after, Quiet::Nothing).await;
    while any_member(runner, is_stabilizing) {
        stays(runner, &goal, LOOK, Quiet::Nothing).await;
    }
    let mut quiet = Quiet::Everything;
    if any_member(runner, records_losses) {
        quiet = Quiet::Sets;
        if plan.seed.is_multiple_of(WAITS_FOR_FORGOTTEN_LOSSES) {
            let rest = LOSSES_FORGOTTEN_AFTER.saturating_sub(calm_after);
            stays(runner, &goal, rest, Quiet::Nothing).await;
            quiet = Quiet::Everything;
        }
    }
    stays(runner, &goal, QUIET_FOR, quiet).await;
    runner.recorder.trace(
        Topic::Phase,
        "the desired state stays, and nothing is written",
    );
    goal.is_whole.then_some(goal)
}

/// By how much clocks were put forward (1), which is corrected when the faults end, or put back (-1). For so long after a clock
/// was put back, what is dated by it lies in the future, such as the time since which a pod is ready.
fn clock_steps(plan: &Plan, sign: i64) -> Duration {
    let steps = plan.steps.iter().map(|step| match &step.action {
        Action::StepClock { seconds, .. } => (seconds * sign).max(0).unsigned_abs(),
        _ => 0,
    });
    Duration::from_secs(steps.sum())
}

/// Whether a MemberCluster is in this state.
fn any_member(runner: &Runner, state: fn(&Value) -> bool) -> bool {
    let host = runner.federation.cluster(HOST).api();
    let kind = host.kind_of("fedrs.dev/v1alpha1", "MemberCluster");
    let members = kind.map(|kind| host.list(&kind, None));
    members.iter().flatten().any(|member| state(member))
}

/// Whether the status of a member has something to remember.
fn records_losses(member: &Value) -> bool {
    member["status"]["internal"].is_string()
}

/// Whether a member has to be healthy for longer, which ends by itself.
fn is_stabilizing(member: &Value) -> bool {
    let conditions = member["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["reason"] == MemberReason::Stabilizing.as_str())
}

/// What waits for a member to be healthy for longer, by a setting of its own: then more of its replicas may move.
fn stabilizing_set(runner: &Runner) -> Option<String> {
    let stabilizes = |name: &&str| {
        let frs = runner.frs(name);
        let clusters = frs
            .as_ref()
            .and_then(|frs| frs["status"]["clusters"].as_array());
        let waits = |cluster: &Value| cluster["waits"].as_array().cloned().unwrap_or_default();
        let mut waits = clusters.into_iter().flatten().flat_map(waits);
        waits.any(|wait| wait["reason"] == WaitReason::StabilizationWindow.as_str())
    };
    let set = runner.sets.iter().map(|set| &*set.name).find(stabilizes)?;
    Some(format!("{set} waits for a cluster that stabilizes"))
}

/// Whether members may make pods of a set unavailable.
fn lends(runner: &Runner, set: &str) -> bool {
    runner.frs(set).is_some_and(|set| rollout::lent(&set) > 0)
}

/// Checks for some time that the desired state stays, and how `quiet` the controller is.
async fn stays(runner: &mut Runner, goal: &Goal, time: Duration, quiet: Quiet) {
    let until = Instant::now() + time;
    let before = runner.recorder.writes();
    while Instant::now() < until {
        runner
            .wait_until((Instant::now() + LOOK * 6).min(until))
            .await;
        let pending = goal.pending(runner);
        if !pending.is_empty() {
            let text = format!("the desired state did not stay: {}", pending.join("; "));
            return runner.fail(Invariant::Settled, text);
        }
        let mut written = runner.recorder.writes_after(before);
        written.retain(|what| quiet.forbids(what));
        if let Some(last) = written.last()
            && goal.is_whole
            && !is_any_unsettled(runner)
        {
            let text = format!("{} writes in a settled federation: {last}", written.len());
            return runner.fail(Invariant::Settled, text);
        }
    }
}

/// The desired state.
pub(super) struct Goal {
    /// The members that replicas go to.
    pub(super) members: Vec<String>,
    /// Members whose replicas cannot be predicted.
    undecided: Vec<String>,
    /// Of these, the members that may claim to run what was requested of them.
    lying: Vec<String>,
    /// Whether all members are in the core, or not broken.
    is_whole: bool,
}

impl Goal {
    fn new(runner: &Runner, core: &[String]) -> Self {
        let mut goal = Self {
            members: core.to_vec(),
            undecided: Vec::new(),
            lying: Vec::new(),
            is_whole: true,
        };
        for member in runner.federation.member_names() {
            if core.contains(&member) {
                continue;
            }
            goal.is_whole = false;
            let is_lost = LOSING
                .iter()
                .any(|fault| runner.faults.contains(&(member.clone(), *fault)));
            if is_lost {
                continue;
            }
            if runner.faults.contains(&(member.clone(), Fault::Mutations)) {
                goal.lying.push(member.clone());
            }
            goal.undecided.push(member);
        }
        goal.members.sort();
        goal
    }

    /// What has not reached the desired state, with the reasons.
    pub(super) fn pending(&self, runner: &Runner) -> Vec<String> {
        let sets = runner
            .sets
            .iter()
            .filter_map(|set| self.pending_of(runner, &set.name));
        let members = self.members.iter().filter(|_| self.is_whole);
        sets.chain(members.filter_map(|member| wrong_member(runner, member)))
            .collect()
    }

    /// The goal without a member that is not broken; none if the others cannot have all replicas of all sets.
    pub(super) fn without(&self, runner: &Runner, member: &str) -> Option<Self> {
        let mut members = self.members.clone();
        members.retain(|name| name != member);
        let others = Self {
            members,
            undecided: Vec::new(),
            lying: Vec::new(),
            is_whole: false,
        };
        let mut sets = runner.sets.iter().map(|set| &*set.name);
        let fits = |set| match others.wanted(runner, set) {
            Some((wanted, replicas)) => wanted == replicas,
            // Other members accept no replica of a template that is rejected.
            None => (runner.federation.local_set(member, set))
                .is_none_or(|local| local["spec"]["replicas"] == 0),
        };
        sets.all(fits).then_some(others)
    }

    /// The replicas of a set that have a cluster, and all that are asked for; none if it does not exist, or is not accepted.
    pub(super) fn wanted(&self, runner: &Runner, set: &str) -> Option<(u64, u64)> {
        let object = runner.frs(set).filter(|object| !is_rejected(object))?;
        let ValidSet { frs, .. } = ValidSet::of(&object, runner.federation.kind_of(set))?;
        let (_, wanted) = runner.federation.planned_layout(&frs, &self.members);
        Some((wanted, frs.replicas.into()))
    }

    /// Of a set whose template all members reject: what the local sets that it has do not run, or run beyond N.
    fn pending_of_rejected(&self, runner: &Runner, frs: &ValidFrs) -> Option<String> {
        let name = &frs.key.name;
        let has_set = |member: &&String| {
            let set = runner.federation.stored_set(member, name);
            set.is_some_and(|set| {
                set["metadata"].get("deletionTimestamp").is_none() && is_labeled(&set)
            })
        };
        let accepting: Vec<_> = self.members.iter().filter(has_set).cloned().collect();
        let (_, wanted) = runner.federation.planned_layout(frs, &accepting);
        let sets = runner.federation.sets(name);
        let available: u64 = accepting.iter().map(|member| sets[member].available).sum();
        let is_right = (wanted..=frs.replicas.into()).contains(&available);
        (!is_right && self.undecided.is_empty())
            .then(|| format!("{name}: {available} of {wanted} replicas are available: {sets:?}"))
    }

    /// The replicas that the members of the core have at least, whatever the others have.
    fn least_wanted(&self, runner: &Runner, frs: &ValidFrs) -> u64 {
        let (_, wanted) = runner.federation.planned_layout(frs, &self.members);
        if self.lying.is_empty() {
            return wanted;
        }
        let with_lying = [&*self.members, &*self.lying].concat();
        let (planned, _) = runner.federation.planned_layout(frs, &with_lying);
        let of_core: u64 = planned[..self.members.len()].iter().sum();
        wanted.min(of_core)
    }

    /// The replicas that start for ever on a dead node, in a member whose controllers do not act, so that nothing says that it is dead:
    /// the set is `NotBecomingReady`.
    fn held_by_dead_nodes(&self, runner: &Runner, sets: &BTreeMap<String, LocalSetState>) -> u64 {
        let is_unnoticed = |member: &&String| {
            let fault = ((*member).clone(), Fault::NoControllerManager);
            runner.faults.contains(&fault)
                && (runner.recorder).observe(|observed| observed.has_failed_nodes(member))
        };
        let members = self.undecided.iter().filter(is_unnoticed);
        let missing = members.map(|member| sets[member].existing - sets[member].available);
        missing.sum()
    }

    fn pending_of(&self, runner: &Runner, name: &str) -> Option<String> {
        // A set that was deleted has no goal.
        let object = runner.frs(name)?;
        if object["metadata"].get("deletionTimestamp").is_some() {
            return Some(format!("{name} is still being deleted"));
        }
        let typed = FederatedReplicaSet::deserialize(&*object);
        let typed = typed.expect("the API server validates it");
        let ValidSet { frs, rollout } = ValidSet::of(&object, runner.federation.kind_of(name))?;
        if is_rejected(&object) {
            return self.pending_of_rejected(runner, &frs);
        }
        let is_stuck = |member: &String| rollout::is_stuck(runner, member, name);
        if rollout.is_some() && self.members.iter().any(is_stuck) {
            return None;
        }
        // What is lent to a broken member holds up the others, and so do replicas that no member may have: they use the budget.
        let (_, placed) = runner.federation.planned_layout(&frs, &self.members);
        let is_used_up = rollout.as_ref().is_some_and(|rollout| {
            let limits = rollout.limits(&frs);
            limits.surge == 0 && u64::from(frs.replicas) - placed >= limits.unavailable
        });
        let has_objects = rollout.is_none() || self.is_whole && !is_used_up;
        let mut objects = self.members.iter().filter(|_| has_objects);
        let wrong = objects.find_map(|member| wrong_object(runner, member, &object));
        if wrong.is_some() {
            return wrong;
        }
        let mut sets = runner.federation.sets(name);
        // A ReplicaSet that was released with an earlier object of this name, and gets no replicas now, is not ours.
        for (member, set) in &mut sets {
            let object = runner.federation.stored_set(member, name);
            if !object.is_some_and(|object| is_labeled(&object)) {
                *set = LocalSetState::default();
            }
        }
        if !self.undecided.is_empty() {
            let available = running(runner, name, &sets);
            // What is found in a broken member may be rolled over at any time, and pods that a silent watch last showed as unavailable
            // without regard to the budget.
            let budget = rollout.map_or(0, |rollout| {
                rollout.limits(&frs).unavailable.max(rollout::lent(&object))
            });
            let held = self.held_by_dead_nodes(runner, &sets);
            let wanted = self.least_wanted(runner, &frs);
            let wanted = wanted.saturating_sub(budget + held);
            return (available < wanted).then(|| {
                format!("{name}: {available} of {wanted} replicas are available: {sets:?}")
            });
        }
        let (planned, wanted) = runner.federation.planned_layout(&frs, &self.members);
        let mut available = 0;
        let mut requested = Vec::new();
        for member in &self.members {
            available += sets[member].available;
            requested.push(sets[member].desired);
        }
        let is_planned = planned == requested && available == wanted;
        if !is_planned && !keeps_unplaced(&frs, &planned, &requested, available) {
            return Some(format!(
                "{name}: {available} of {wanted} replicas are available, {requested:?} requested, {planned:?} planned for {}",
                self.members.join(", ")
            ));
        }
        let members = self.members.iter().map(String::as_str);
        let layout: Vec<_> = members.zip(requested).collect();
        let wrong = layout::wrong_layout(&object, &layout)
            .or_else(|| status::wrong_clusters(&typed, (&self.members, &planned), &sets))
            .or_else(|| {
                (is_planned && self.is_whole && !is_used_up)
                    .then(|| status::wrong_whole(runner, &typed, &sets, wanted))?
            })
            .or_else(|| {
                let is_settled = is_planned && has_objects && rollout.is_some();
                is_settled.then(|| rollout::wrong_rollout(&object))?
            });
        wrong.map(|wrong| format!("{name}: {wrong}"))
    }
}

/// Whether members have what is planned, and more that runs and that no member can take: it stays (F20).
fn keeps_unplaced(frs: &ValidFrs, planned: &[u64], requested: &[u64], available: u64) -> bool {
    let sum: u64 = requested.iter().sum();
    let mut members = planned.iter().zip(requested);
    planned.iter().sum::<u64>() < u64::from(frs.replicas)
        && sum <= frs.replicas.into()
        && sum == available
        && members.all(|(planned, requested)| planned <= requested)
}

/// The replicas of a set that run: available ones, or also ready ones where no controller counts them.
fn running(runner: &Runner, name: &str, sets: &BTreeMap<String, LocalSetState>) -> u64 {
    let uncounted = |member: &str| {
        let fault = (member.to_owned(), Fault::NoControllerManager);
        runner.faults.contains(&fault)
    };
    runner.recorder.observe(|observed| {
        let parts = observed.parts(name);
        let running = parts.map(|(member, part)| match *part.ready.now() {
            ready if uncounted(member) => ready,
            _ => sets[member].available,
        });
        running.sum()
    })
}

/// Whether members reject the template of a set, or have no capacity for all its replicas: both are tried again from time to
/// time.
pub(super) fn is_any_unsettled(runner: &Runner) -> bool {
    let lacks_capacity = |frs: &Value| frs["status"]["unplacedReplicas"].as_u64() > Some(0);
    let mut sets = runner.sets.iter();
    sets.any(|set| {
        runner
            .frs(&set.name)
            .is_some_and(|frs| is_rejected(&frs) || lacks_capacity(&frs))
    })
}

/// Whether every member rejects the template of a set.
fn is_rejected(frs: &Value) -> bool {
    let port = &frs["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"];
    port.as_u64().is_some_and(|port| port > u64::from(u16::MAX))
}
