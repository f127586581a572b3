//! The finalizer of pods that stay until their containers have stopped (M11): who gets it, and who loses it.

use jiff::Timestamp;

use crate::{
    group::Member,
    plan::Action,
    pod::{Guard, Pod},
    policy::Policy,
    set::Set,
    shutdown::Shutdown,
};

/// The finalizer that a live pod has to get before it is removed.
pub(crate) fn before_removal<'a>(set: &Set<'_>, pod: &'a Pod<'a>) -> Option<Action<'a>> {
    let is_missing = set.migration.shutdown().is_some() && pod.guard == Guard::Absent;
    is_missing.then_some(Action::AddFinalizer { pod })
}

/// What makes the finalizer of a live pod as the policy asks for.
pub(crate) fn settle<'a>(set: &Set<'_>, pod: &'a Pod<'a>) -> Option<Action<'a>> {
    let is_needed = set.migration.shutdown().is_some() || matches!(set.migration, Policy::Unknown);
    let is_surplus = !is_needed && pod.guard != Guard::Absent;
    before_removal(set, pod).or(is_surplus.then_some(Action::RemoveFinalizer { pod }))
}

/// Removes the finalizer of pods that others have removed, of a set that changes nothing itself.
pub(crate) fn settle_removed<'a>(
    set: &Set<'_>,
    members: &[Member<'a>],
    now: Timestamp,
) -> impl Iterator<Item = Action<'a>> {
    members.iter().filter_map(move |member| {
        let pod = member.pod;
        let has_limit = set.migration.shutdown().is_some() && pod.guard != Guard::Stopped;
        let is_over = Shutdown::of(set, pod, now) == Some(Shutdown::Over);
        (is_over && !has_limit).then_some(Action::RemoveFinalizer { pod })
    })
}
