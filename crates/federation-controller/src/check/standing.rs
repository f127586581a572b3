//! Whether a member can be used, must be left as it is, or is gone (F33, F39).

use cluster_informer::{Health, SyncState};
use jiff::Timestamp;

use super::{
    snapshot::{CheckSettings, Member},
    twins,
};

/// How a check treats a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Healthy and known: replicas come and go.
    Usable,
    /// Just added, its first answer is awaited: nothing at all is decided until then.
    Joining {
        /// Not longer than this.
        until: Timestamp,
    },
    /// Its state is not known: counted as it was last seen, nothing is changed because of it (F39).
    Frozen {
        /// Why, as a sentence's second half.
        why: String,
        /// When its replicas go elsewhere, if this goes on.
        until: Option<Timestamp>,
    },
    /// Another name of the member that counts: it holds nothing of its own.
    Twin {
        /// The name that counts.
        of: String,
    },
    /// Unreachable for longer than its grace period, or removed: its replicas go elsewhere (F33).
    Lost {
        /// Since when.
        since: Timestamp,
    },
}

/// How to treat each of `members` at `now`: of several names of one cluster one counts.
pub(crate) fn standings(
    members: &[Member],
    now: Timestamp,
    settings: &CheckSettings,
) -> Vec<Standing> {
    let alone = |it| standing(it, now, settings);
    let mut standings: Vec<_> = members.iter().map(alone).collect();
    twins::tell_apart(members, &mut standings);
    standings
}

/// How to treat `member`, whatever others there are.
fn standing(member: &Member, now: Timestamp, settings: &CheckSettings) -> Standing {
    if let Some(removed) = member.removed {
        let since = match member.health {
            // One that was lost before stays lost.
            Health::Unreachable { since, .. } => since.min(removed),
            _ => removed,
        };
        return lost_after_grace(member, since, now, "its kubeconfig was removed");
    }
    if let Some(why) = &member.invalid_kubeconfig {
        let why = format!("its kubeconfig can't be used ({why})");
        return Standing::Frozen { why, until: None };
    }
    match &member.health {
        Health::Unreachable { since, message } => lost_after_grace(
            member,
            *since,
            now,
            &format!("it can't be reached ({message})"),
        ),
        Health::Unauthorized { message } => Standing::Frozen {
            why: format!("it refuses our credentials ({message})"),
            until: None,
        },
        Health::Unknown => joining(member, now, settings, "it has not answered yet"),
        Health::Failing { message, .. } => Standing::Frozen {
            why: format!("its probe fails ({message})"),
            until: None,
        },
        Health::Healthy => match member.sync {
            SyncState::Synced if member.write_pending => Standing::Frozen {
                why: "it has not answered our last write yet".to_owned(),
                until: None,
            },
            SyncState::Synced => Standing::Usable,
            SyncState::NotSynced => {
                joining(member, now, settings, "its objects are still being listed")
            }
            SyncState::Stale { since } => Standing::Frozen {
                why: format!("what is known of it is from {since:.0}, its watch is down"),
                until: None,
            },
        },
    }
}

fn lost_after_grace(member: &Member, since: Timestamp, now: Timestamp, why: &str) -> Standing {
    let until = after(since, member.grace_period);
    if now >= until {
        Standing::Lost { since }
    } else {
        Standing::Frozen {
            why: why.to_owned(),
            until: Some(until),
        }
    }
}

fn joining(member: &Member, now: Timestamp, settings: &CheckSettings, why: &str) -> Standing {
    let until = after(member.joined, settings.joining_timeout);
    if now < until {
        Standing::Joining { until }
    } else {
        Standing::Frozen {
            why: why.to_owned(),
            until: None,
        }
    }
}

/// `time` plus `duration`, or the end of time.
pub(crate) fn after(time: Timestamp, duration: std::time::Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
