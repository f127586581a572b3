//! What is taken back because of a member whose state is not known.

use tokio::time::{Duration, Instant};

use super::{local_set::LocalSet, scale_down::ScaleDown};
use crate::history::History;

/// What users, members and the host did before this time is no reason for a scale-down any more.
const SETTLED: Duration = Duration::from_secs(60);

/// F39: while the state of another member is not known, what was requested of this one stays, ready or not: the other one
/// counts with what is desired of it, and not with what it has.
pub(super) fn of(scale_down: &ScaleDown<'_>) -> Option<String> {
    let ScaleDown {
        observed,
        name,
        member,
        before,
        now,
        ..
    } = *scale_down;
    let mut unseen = observed
        .parts(name)
        .filter(|(other, _)| *other != member && observed.is_hidden(other))
        .filter(|(other, _)| !observed.hides_only_nodes(other));
    let (other, unknown) = unseen.next()?;
    let outage = observed.outage_since(other, Instant::now() - SETTLED)?;
    let since = outage - SETTLED;
    if unseen.next().is_some()
        || observed.is_outage_unnoticed(other)
        || !observed.is_unedited(name, other, since)
        // More is desired of it: it is drained no more.
        || observed.was_drained_since(other, Instant::now() - SETTLED)
        // Nothing shows that a member lies.
        || observed.may_lie(member)
        || observed.may_lie(other)
        || observed.is_listed_since(other, unknown.called_unknown.max(Some(outage)))
        || returned(scale_down, since)
        // What another controller had taken counts again.
        || unknown.is_taken.since(since).any(|is_taken| *is_taken)
        || may_have_got_replicas(unknown, since)
    {
        return None;
    }
    let part = |name: &str| observed.parts(scale_down.name).find(|part| part.0 == name);
    let (_, own) = part(member)?;
    // Replicas that could not run go elsewhere.
    let unplaced = own.placed.since(since).min() < own.requested.since(since).max();
    if unplaced && *own.placed.now() < before {
        return None;
    }
    let others = observed
        .parts(name)
        .filter(|(part, _)| *part != other && *part != member);
    let others: u64 = others
        .filter_map(|(part, set)| {
            // What a set adopts was requested on behalf of an earlier one.
            let adopted = set.is_labeled.now().then(|| set.desired.now()).into_iter();
            let requested = set.requested.since(observed.oldest_belief(part));
            requested.chain(adopted).max()
        })
        .sum();
    let (was, left) = (others + before.min(*own.requested.now()), others + now);
    let needed = scale_down.needed()?;
    let least = needed.saturating_sub(*unknown.planned.now()).min(was);
    (left < least).then(|| {
        format!("{name} in {member} scaled from {before} to {now} while the state of {other} is not known: {was} replicas were requested elsewhere, {left} are left, {least} are needed")
    })
}

/// Whether another member, or this one, has returned since then: what was requested in its place, and what it was to
/// give, may be taken back. The write shows that this one has, whatever else of it is hidden.
fn returned(scale_down: &ScaleDown<'_>, since: Instant) -> bool {
    let observed = scale_down.observed;
    let mut members = observed.parts(scale_down.name).map(|(member, _)| member);
    members.any(|member| {
        (member == scale_down.member || !observed.is_hidden(member))
            && (observed.outage_since(member, since).is_some()
                || observed.have_nodes_returned_since(member, since)
                || observed.was_seen_wrongly_since(member, since))
    })
}

/// Whether replicas may have been moved to a local set since then.
fn may_have_got_replicas(local: &LocalSet, since: Instant) -> bool {
    let falls = |counts: &History<u64>| counts.since(since).is_sorted_by(|a, b| a >= b);
    !falls(&local.planned)
        || !falls(&local.requested)
        || local.requested.now() < local.planned.now()
}
