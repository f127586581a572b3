//! What one client has of one set, and what it gets next. Pure.

use std::{cmp::Ordering, sync::Arc};

use discovery_proto::{self as proto, watch_response::Event};
use jiff::Timestamp;

use super::messages;
use crate::{
    answer::StaleMember,
    member_state::MemberState,
    problem::Problem,
    set::SetKey,
    snapshot::{Endpoint, EndpointSnapshot},
};

/// A client that follows a set.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) key: SetKey,
    /// The version that the client has.
    version: u64,
    /// What it was sent at that version.
    sent: Option<Arc<EndpointSnapshot>>,
    /// What the last response was, besides its endpoints; none before the first response.
    last: Option<Reported>,
}

#[derive(Debug, PartialEq, Eq)]
struct Reported {
    problem: Option<Problem>,
    /// The names of stale members.
    stale: Vec<String>,
}

impl Follower {
    /// The client of a set, which has its endpoints at `version`, if that is not 0.
    pub(super) fn new(key: SetKey, version: u64) -> Self {
        Self {
            key,
            version,
            sent: None,
            last: None,
        }
    }

    /// The response for what was found at `now`; `None` if the client knows that.
    pub(super) fn next(
        &mut self,
        found: &Result<Arc<EndpointSnapshot>, Problem>,
        members: &[MemberState],
        now: Timestamp,
    ) -> Option<proto::WatchResponse> {
        let snapshot = found.as_ref().ok();
        let stale = snapshot.map(|snapshot| StaleMember::all(snapshot, members, now));
        let stale = stale.unwrap_or_default();
        let reported = Reported {
            problem: found.as_ref().err().cloned(),
            stale: stale.iter().map(|member| member.name.clone()).collect(),
        };
        let is_current = snapshot.is_none_or(|snapshot| snapshot.version == self.version);
        if is_current && self.last.as_ref() == Some(&reported) {
            return None;
        }
        let event = match found {
            Ok(snapshot) => self.endpoints(snapshot),
            Err(problem) => Event::Problem(messages::problem(problem)),
        };
        self.last = Some(reported);
        Some(proto::WatchResponse {
            set: Some(messages::set_id(&self.key)),
            event: Some(event),
            stale_members: messages::stale_members(stale),
        })
    }

    /// What brings the client to `now`.
    fn endpoints(&mut self, now: &Arc<EndpointSnapshot>) -> Event {
        let from_version = std::mem::replace(&mut self.version, now.version);
        let before = self.sent.replace(Arc::clone(now));
        let mut changes = proto::Changes {
            from_version,
            version: now.version,
            ..proto::Changes::default()
        };
        if from_version == now.version {
            return Event::Changes(changes);
        }
        match before {
            // What is sent of each endpoint depends on the set.
            Some(before) if Arc::ptr_eq(&before.set, &now.set) => {
                let [updated, removed] = differences(&before.endpoints, &now.endpoints);
                let updated = updated.into_iter();
                changes.updated = updated
                    .map(|updated| messages::endpoint(updated, now))
                    .collect();
                changes.removed = removed.into_iter().map(messages::key_of).collect();
                Event::Changes(changes)
            }
            _ => Event::Endpoints(proto::Endpoints {
                version: now.version,
                endpoints: messages::endpoints(now),
            }),
        }
    }
}

/// The endpoints of `now` that are new or different, and those of `before` that are gone. Both are sorted by cluster and name.
fn differences<'a>(before: &'a [Endpoint], now: &'a [Endpoint]) -> [Vec<&'a Endpoint>; 2] {
    let key = |endpoint: &&'a Endpoint| (endpoint.cluster(), endpoint.name());
    let (mut updated, mut removed) = (Vec::new(), Vec::new());
    let (mut before, mut now) = (before.iter().peekable(), now.iter().peekable());
    loop {
        let order = match (before.peek(), now.peek()) {
            (None, None) => return [updated, removed],
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(now)) => key(before).cmp(&key(now)),
        };
        match order {
            Ordering::Less => removed.extend(before.next()),
            Ordering::Greater => updated.extend(now.next()),
            Ordering::Equal => {
                let before = before.next();
                updated.extend(now.next().filter(|now| Some(*now) != before));
            }
        }
    }
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
