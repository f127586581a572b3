//! Templates that the controller writes to local Deployments: only with what the host has stored, only what users want now, and
//! in the order of the steps.

use fedrs_api::annotations::TEMPLATE_HASH;
use sim_cluster::{Change, Object};
use tokio::time::Instant;

use super::{
    local_set::{LocalSet, desired},
    observed::{FrsState, Observed},
    reach::Reach,
};
use crate::set_kind::{RolloutSpec, ValidSet, template_of};

/// Calls that a write of a template makes before it, as a repair does.
const CALLS: u32 = 3;

/// Checks a change of a local set: also one that was sent long before needs its loan.
pub(super) fn of_late_change(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    unlent(observed, member, &Written::of(observed, change)?)
}

/// Checks a change of a local set that was not sent long before.
pub(super) fn of_change(observed: &Observed, member: &str, change: &Change) -> Option<String> {
    let written = Written::of(observed, change)?;
    unlent(observed, member, &written)
        .or_else(|| unwanted(observed, member, &written))
        .or_else(|| out_of_order(observed, member, &written))
}

/// A template that replaces another one in a Deployment.
struct Written<'a> {
    name: &'a str,
    old: &'a Object,
    new: &'a Object,
    template: String,
}

impl<'a> Written<'a> {
    fn of(observed: &Observed, change: &'a Change) -> Option<Self> {
        let (old, new) = (change.old.as_ref()?, change.new.as_ref()?);
        let is_written = old["spec"]["template"] != new["spec"]["template"];
        let is_rollout = observed.is_local_set(change) && observed.has_rollout(&change.name);
        (is_written && is_rollout).then(|| Self {
            name: &change.name,
            old,
            new,
            template: template_of(&new["spec"]["template"]),
        })
    }

    /// Whether the Deployment says that it has this template: others have changed it, maybe before the set existed.
    fn is_repair(&self) -> bool {
        let hash = |set: &Object| {
            let annotations = &set["spec"]["template"]["metadata"]["annotations"];
            annotations[TEMPLATE_HASH].clone()
        };
        let (old, new) = (hash(self.old), hash(self.new));
        old.is_string() && old == new
    }

    fn what(&self, member: &str) -> String {
        format!(
            "{} in {member} gets the template {}",
            self.name, self.template
        )
    }
}

/// L14: a template is written with a loan that the host has stored, at the generation that this names.
fn unlent(observed: &Observed, member: &str, written: &Written<'_>) -> Option<String> {
    let name = written.name;
    // The host has forgotten what was lent since the backup, or with the set.
    let exists = |state: &FrsState| matches!(state, FrsState::Spec(_));
    if observed.was_host_restored() || !observed.states(name).all(exists) {
        return None;
    }
    let (uses, generation) = (Reach::of_strategy(written.new), generation(written.old));
    let record = observed.rollout_status(name).now();
    let wrong = match record.record.loans.get(member) {
        // A member without replicas needs none; that one has ended need not be stored.
        _ if desired(Some(written.old)) == 0 && uses == Reach::SMALLEST => return None,
        None => "the host has stored no loan".to_owned(),
        Some(loan) if loan.generation != generation => {
            format!(
                "it has generation {generation}, the loan is for {}",
                loan.generation
            )
        }
        Some(loan)
            if uses.unavailable > loan.strategy.unavailable || uses.surge > loan.strategy.surge =>
        {
            format!("with {uses:?}, of which {:?} are lent", loan.strategy)
        }
        Some(_) => return None,
    };
    Some(format!("{}, but {wrong}", written.what(member)))
}

/// L8: no template is written while rollouts are paused, and none that users have replaced by another one.
fn unwanted(observed: &Observed, member: &str, written: &Written<'_>) -> Option<String> {
    let earlier = observed.config().call_timeout * CALLS;
    let states = || observed.states_within(written.name, earlier);
    let is_paused = |state: &FrsState| match state {
        FrsState::Spec(Some(set)) => set.rollout.as_ref().is_some_and(|spec| spec.paused),
        _ => false,
    };
    if states().all(is_paused) {
        return Some(format!("{}, but rollouts are paused", written.what(member)));
    }
    let is_undone = |set: &ValidSet| set.rollout.as_ref().is_some_and(|spec| spec.undoes);
    let has_failed = observed
        .rollout_status(written.name)
        .now()
        .failed_revision
        .is_some();
    let is_wanted = |state: &FrsState| match state {
        FrsState::Spec(Some(set)) => {
            let spec = set.rollout.as_ref();
            is_undone(set) || spec.is_some_and(|spec| spec.template == written.template)
        }
        _ => true,
    };
    let is_wanted = has_failed || states().any(is_wanted);
    (!is_wanted).then(|| format!("{}, which nobody wants any more", written.what(member)))
}

/// L10: no cluster of a step gets the template before all of the earlier steps had it, and it was approved. One that is found
/// where no other had another template is not held up.
fn out_of_order(observed: &Observed, member: &str, written: &Written<'_>) -> Option<String> {
    let states = observed.set_states(written.name);
    let FrsState::Spec(Some(set)) = states.now() else {
        return None;
    };
    let spec = set.rollout.as_ref()?;
    let since_when = |is_same: &dyn Fn(&RolloutSpec) -> bool| {
        states.since_when(|state| match state {
            FrsState::Spec(Some(set)) => set.rollout.as_ref().is_some_and(is_same),
            _ => false,
        })
    };
    let has_template = |other: &RolloutSpec| other.template == written.template && !other.undoes;
    let begins = since_when(&has_template)?;
    let since = since_when(&|other| has_template(other) && other.steps == spec.steps)?;
    // What was decided before the user changed the steps is still carried out.
    if since > begins && since.elapsed() < observed.config().call_timeout * CALLS {
        return None;
    }
    let (_, own) = observed
        .parts(written.name)
        .find(|(name, _)| *name == member)?;
    // What a member has had already is repaired, whatever the steps are at. One without replicas starts no pods with it.
    let had = |part: &LocalSet| {
        part.template
            .since(since)
            .any(|had| *had == written.template)
    };
    let is_empty = desired(Some(written.old)) == 0;
    if had(own) || written.is_repair() || is_empty || observed.was_host_restored() {
        return None;
    }
    let place = spec.step_of(member);
    let others = || {
        observed
            .parts(written.name)
            .filter(|(name, _)| *name != member)
    };
    // The first creation is no rollout; what is found later catches up.
    let has_other = |had: &String| !had.is_empty() && *had != written.template;
    if !others().any(|(_, part)| part.template.since(since).any(has_other)) {
        return None;
    }
    let is_behind = |part: &LocalSet| {
        part.complete
            .since(since)
            .all(|had| *had != written.template)
    };
    // A step that is complete stays so: no later one waits for a Deployment that is created since then, with the template.
    let record = observed.rollout_status(written.name);
    let is_later = |name: &str, part: &LocalSet| {
        let next = spec.step_of(name) + 1;
        let begun = record.since_when(|status| status.record.begun.len() > next);
        let created = part.template.since_when(|had| *had == written.template);
        let had_no_other = !part.template.since(since).any(has_other);
        had_no_other
            && begun
                .zip(created)
                .is_some_and(|(begun, created)| begun <= created)
    };
    let is_earlier = |name: &str| spec.step_of(name) < place;
    let earlier = others().filter(|(name, part)| is_earlier(name) && !is_later(name, part));
    let mut waited_for = earlier.filter(|(name, part)| is_waited_for(observed, name, part, since));
    if let Some((behind, _)) = waited_for.find(|(_, part)| is_behind(part)) {
        let what = written.what(member);
        return Some(format!(
            "{what}, but {behind} of an earlier step has not completed it"
        ));
    }
    let loans = &observed.rollout_status(written.name).now().record.loans;
    let revision = &loans.get(member)?.revision;
    // A step had begun if one of its members had the template when the user asked for the approval, or could have had it.
    let recorded = record.since(since).next().map(|status| &status.record);
    let recorded = recorded.filter(|record| record.revision == *revision);
    let had_begun = |step: usize| {
        let mut of_step = observed.parts(written.name);
        let name = &spec.steps[step].name;
        recorded.is_some_and(|record| record.begun.contains(name))
            || of_step.any(|(name, part)| {
                let had = part.template.since(since).next();
                spec.step_of(name) == step && had == Some(&written.template)
            })
    };
    let steps = spec.steps.iter().enumerate().take(place + 1);
    let steps = steps.filter(|(number, step)| step.needs_approval && !had_begun(*number));
    let mut steps = steps.map(|(_, step)| step);
    let is_approved = |step: &str| {
        states.since(since).any(|state| match state {
            FrsState::Spec(Some(set)) => (set.rollout.as_ref()).is_some_and(|spec| {
                spec.approvals
                    .contains(&(step.to_owned(), revision.clone()))
            }),
            _ => false,
        })
    };
    let step = steps.find(|step| !is_approved(&step.name))?;
    let what = written.what(member);
    Some(format!(
        "{what}, but step {} is not approved for {revision}",
        step.name
    ))
}

/// Whether the steps wait for a member: it takes replicas, and could be observed all the time.
fn is_waited_for(observed: &Observed, member: &str, part: &LocalSet, since: Instant) -> bool {
    !observed.was_closed_since(member, since)
        && observed.is_visible_since(member, since)
        && observed.has_ready_nodes(member)
        && !observed.was_seen_wrongly_since(member, since)
        && !observed.may_lie(member)
        && part.is_ours()
}

fn generation(object: &Object) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}
