//! Trials of members: closed, unreachable, or rejecting the controller.

use fedrs_api::names;
use serde_json::json;
use sim_cluster::{RequestMatcher, Status};
use tokio::time::{Duration, Instant};

use super::wait::{Failed, reached, replicas, requested, scale, stays};
use crate::{
    checks::{OutageKind, is_labeled},
    join::MEMBERS_PATH,
    plan::{Closing, Fault},
    run::{
        goal::{Goal, REACHED_WITHIN, wrong_member},
        runner::Runner,
    },
    sim_federation::HOST,
};

/// From the last failed probe to the first replacement, and more than the probes until then.
const LOSS_NOTICED: Duration = Duration::from_secs(60);
/// A member is not lost before its grace period is over; it begins when it answers no more.
const TOO_EARLY: Duration = Duration::from_secs(2);
/// How long a member rejects the credentials.
const UNAUTHORIZED: Duration = Duration::from_secs(300);

/// The replicas of a closed member leave it, or it gets no more.
pub(super) async fn closing(
    runner: &mut Runner,
    goal: &Goal,
    member: &str,
    closing: Closing,
) -> Result<(), Failed> {
    let (field, value) = match closing {
        Closing::Drain => ("drain", json!(true)),
        Closing::Namespaces => ("namespaces", json!({ "names": ["other"] })),
        Closing::Cordon => ("unschedulable", json!(true)),
    };
    let path = format!("{MEMBERS_PATH}/{member}");
    runner
        .patch(HOST, &path, &json!({ "spec": { field: value } }))
        .await;
    if closing == Closing::Cordon {
        no_growth(runner, member).await?;
    } else if let Some(others) = goal.without(runner, member) {
        let left = |runner: &Runner| others.pending(runner).into_iter().next();
        reached(runner, REACHED_WITHIN, "the others run all replicas", left).await?;
        let sets: Vec<_> = runner.sets.iter().map(|set| set.name.clone()).collect();
        let kept = |runner: &Runner| {
            let mut sets = sets.iter();
            let set = sets.find(|set| {
                let local = runner.federation.local_set(member, set);
                let local = local.filter(is_labeled);
                local.is_some_and(|local| local["spec"]["replicas"] != 0)
            })?;
            Some(format!("{member} has replicas of {set}"))
        };
        reached(runner, REACHED_WITHIN, "the member is empty", kept).await?;
        let shown = |runner: &Runner| wrong_member(runner, member);
        reached(
            runner,
            Duration::from_secs(30),
            "the status shows it",
            shown,
        )
        .await?;
    }
    let back = match closing {
        Closing::Namespaces => json!(null),
        _ => json!(false),
    };
    runner
        .patch(HOST, &path, &json!({ "spec": { field: back } }))
        .await;
    Ok(())
}

/// A cordoned member gets no replica of sets that grow, and loses none.
async fn no_growth(runner: &mut Runner, member: &str) -> Result<(), Failed> {
    // The controller sees the cordon before the next change.
    runner.wait_until(Instant::now() + TOO_EARLY).await;
    let names: Vec<_> = runner.sets.iter().map(|set| set.name.clone()).collect();
    let counts = |runner: &Runner| -> Vec<u64> {
        let layouts = names.iter().map(|set| runner.federation.layout(set));
        layouts.map(|layout| layout[member]).collect()
    };
    let before = counts(runner);
    for set in &names {
        let more = replicas(runner, set) + 2;
        scale(runner, set, more).await;
    }
    let changed = |runner: &Runner| {
        let now = counts(runner);
        (now != before).then(|| format!("{member} had {before:?} and has {now:?}"))
    };
    stays(
        runner,
        Duration::from_secs(60),
        "a cordoned member",
        changed,
    )
    .await
}

/// The replicas of an unreachable member go elsewhere after the grace period, and nothing is given up for it until it has been
/// healthy for long enough.
pub(super) async fn loss(runner: &mut Runner, goal: &Goal, member: &str) -> Result<(), Failed> {
    let Some(others) = goal.without(runner, member) else {
        return Ok(());
    };
    let sets = sets_in(runner, &[member]);
    let before = layouts(runner, &sets, &others);
    let (first, last) = graces(runner, &sets);
    runner.switch(member, Fault::Unreachable, true).await;
    let began = Instant::now();
    let early = |runner: &Runner| changed(&before, &layouts(runner, &sets, &others));
    let patience = first.saturating_sub(TOO_EARLY);
    stays(runner, patience, "before the grace period is over", early).await?;
    runner.wait_until(began + last + LOSS_NOTICED).await;
    let missing = |runner: &Runner| others.pending(runner).into_iter().next();
    reached(
        runner,
        REACHED_WITHIN,
        "the others run all replicas",
        missing,
    )
    .await?;
    let replaced = layouts(runner, &sets, &others);
    runner.switch(member, Fault::Unreachable, false).await;
    let window = runner.federation.config().stabilization_window;
    let early = |runner: &Runner| changed(&replaced, &layouts(runner, &sets, &others));
    stays(
        runner,
        window.saturating_sub(TOO_EARLY),
        "before the returned member has been healthy for long enough",
        early,
    )
    .await
}

/// While no member answers, and for a grace period after the first one does, nothing moves.
pub(super) async fn disconnection(runner: &mut Runner, goal: &Goal) -> Result<(), Failed> {
    let members = goal.members.clone();
    let names: Vec<_> = members.iter().map(String::as_str).collect();
    let sets = sets_in(runner, &names);
    let before = layouts(runner, &sets, goal);
    let (first, last) = graces(runner, &sets);
    for member in &members {
        runner.switch(member, Fault::Unreachable, true).await;
    }
    let moved = |runner: &Runner| changed(&before, &layouts(runner, &sets, goal));
    stays(runner, last + LOSS_NOTICED, "no member answers", moved).await?;
    runner.switch(&members[0], Fault::Unreachable, false).await;
    let patience = first.saturating_sub(TOO_EARLY);
    stays(runner, patience, "the first member answers", moved).await?;
    for member in &members[1..] {
        runner.switch(member, Fault::Unreachable, false).await;
    }
    Ok(())
}

/// Nothing moves because a member rejects the credentials.
pub(super) async fn unauthorized(runner: &mut Runner, member: &str) -> Result<(), Failed> {
    let sets = sets_in(runner, &[member]);
    let layouts =
        |runner: &Runner| -> Vec<_> { sets.iter().map(|set| requested(runner, set)).collect() };
    let before = layouts(runner);
    let reason = ("rejected credentials", OutageKind::Connection);
    runner
        .recorder
        .observe(|observed| observed.set_unobservable(member, reason, true));
    let faults = runner.federation.member(member).faults().clone();
    let status = Status::new(401, "Unauthorized", "Unauthorized");
    faults.refuse(RequestMatcher::all(), u32::MAX, status);
    let moved = |runner: &Runner| {
        let now = layouts(runner);
        (now != before).then(|| format!("{before:?} became {now:?}"))
    };
    let stayed = stays(
        runner,
        UNAUTHORIZED,
        "a member rejects the credentials",
        moved,
    )
    .await;
    faults.heal();
    runner
        .recorder
        .observe(|observed| observed.set_unobservable(member, reason, false));
    stayed
}

/// Controllers that are started again write nothing.
pub(super) async fn restart(runner: &mut Runner) -> Result<(), Failed> {
    let before = runner.recorder.writes();
    kill_all(runner).await;
    runner.start_controllers();
    let written = |runner: &Runner| {
        let mut written = runner.recorder.writes_after(before);
        // A new leader says so.
        written.retain(|what| !what.contains(names::SYSTEM_NAMESPACE));
        written.pop()
    };
    stays(runner, Duration::from_secs(150), "after a restart", written).await
}

/// Kills the controllers that run.
pub(super) async fn kill_all(runner: &mut Runner) {
    for number in 0..runner.processes.count() {
        if runner.processes.runs(number) {
            runner.processes.kill(number).await;
        }
    }
}

/// The sets with replicas in one of these members.
fn sets_in(runner: &Runner, members: &[&str]) -> Vec<String> {
    let names = runner.sets.iter().map(|set| set.name.clone());
    let has_replicas = |set: &String| {
        let layout = runner.federation.layout(set);
        runner.frs(set).is_some() && members.iter().any(|member| layout[*member] > 0)
    };
    names.filter(has_replicas).collect()
}

/// What is requested of the members of `goal`, by set.
fn layouts(runner: &Runner, sets: &[String], goal: &Goal) -> Vec<(String, Vec<(String, u64)>)> {
    let of_set = |set: &String| {
        let mut layout = requested(runner, set);
        layout.retain(|(member, _)| goal.members.contains(member));
        (set.clone(), layout)
    };
    sets.iter().map(of_set).collect()
}

fn changed<T: PartialEq + std::fmt::Debug>(before: &[T], now: &[T]) -> Option<String> {
    let (before, now) = before.iter().zip(now).find(|(before, now)| before != now)?;
    Some(format!("{before:?} became {now:?}"))
}

/// The shortest and the longest grace period of these sets.
fn graces(runner: &Runner, sets: &[String]) -> (Duration, Duration) {
    let usual = runner
        .federation
        .config()
        .lost_grace_period
        .unwrap_or_default();
    let grace = |set: &String| {
        let frs = runner.frs(set).unwrap_or_default();
        let own = frs["spec"]["rescheduling"]["lostGracePeriodSeconds"].as_u64();
        own.map_or(usual, Duration::from_secs)
    };
    let graces = || sets.iter().map(grace);
    let usual = (usual, usual);
    graces().min().zip(graces().max()).unwrap_or(usual)
}
