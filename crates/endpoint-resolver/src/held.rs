//! What the client holds of one set, and what responses make of it. Pure.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use discovery_proto::{self as proto, watch_response::Event};
use tokio::time::Instant;

use crate::{
    endpoint::{Endpoint, EndpointKey, InvalidEndpoint},
    resolved::{Age, Confirmation, Problem, Reason, Resolved, StaleMember, View},
};

/// Which of the servers, by its place in the list.
pub(crate) type ServerIndex = usize;

/// What the client holds of one set.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    view: View,
    /// Who sent the version: versions mean nothing to other replicas. None for an answer from disk.
    sender: Option<ServerIndex>,
}

/// A response that does not fit to what the client holds, or makes no sense. The endpoints stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    #[error("changes begin at version {from}, and the client has {has}")]
    Version { from: u64, has: u64 },
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
}

impl Held {
    /// What was on disk, or nothing.
    pub(crate) fn new(view: View) -> Self {
        Self { view, sender: None }
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The version to go on from at `server`; 0 asks for the whole.
    pub(crate) fn known_version(&self, server: ServerIndex) -> u64 {
        if self.sender == Some(server) {
            self.version()
        } else {
            0
        }
    }

    /// Takes a response that `server` sent at `now`, and says if the view is another one.
    ///
    /// After an error the next request asks for the whole.
    pub(crate) fn apply(
        &mut self,
        response: proto::WatchResponse,
        server: ServerIndex,
        now: Instant,
    ) -> Result<bool, Misfit> {
        let answer = match response.event {
            Some(Event::Endpoints(whole)) => {
                let endpoints = all(whole.endpoints).map_err(Misfit::from);
                endpoints.map(|endpoints| (whole.version, endpoints))
            }
            Some(Event::Changes(changes)) => {
                let endpoints = changed(&self.view, self.known_version(server), &changes);
                endpoints.map(|endpoints| (changes.version, endpoints))
            }
            Some(Event::Problem(problem)) => return Ok(self.report(of_message(problem), now)),
            // Of a newer version of the protocol.
            None => return Ok(false),
        };
        self.sender = answer.is_ok().then_some(server);
        let (version, endpoints) = answer?;
        let stale = response.stale_members.into_iter();
        self.view = View::Known(Arc::new(Resolved {
            version,
            endpoints,
            stale_members: stale.map(|member| stale_member(member, now)).collect(),
            problem: None,
            confirmation: Confirmation::Live,
            is_from_service: true,
        }));
        Ok(true)
    }

    /// Notes why there is no answer at `now`, and keeps the last one. Says if the view is another one.
    pub(crate) fn report(&mut self, problem: Problem, now: Instant) -> bool {
        let is_live = self.view.current().is_some_and(|current| current.is_live());
        if !is_live && self.view.problem() == Some(&problem) {
            return false;
        }
        self.view = match self.view.current() {
            None => View::Unknown(Some(problem)),
            Some(current) => View::Known(Arc::new(Resolved {
                problem: Some(problem),
                confirmation: current.confirmation.ended(now),
                ..Resolved::clone(current)
            })),
        };
        true
    }

    fn version(&self) -> u64 {
        self.view.current().map_or(0, |current| current.version)
    }
}

type Endpoints = Arc<[Arc<Endpoint>]>;

/// The endpoints of a whole answer, by cluster and pod.
fn all(endpoints: Vec<proto::Endpoint>) -> Result<Endpoints, InvalidEndpoint> {
    let endpoints = endpoints.into_iter().map(Endpoint::of_message);
    endpoints.collect::<Result<Vec<_>, _>>().map(sorted)
}

/// The endpoints, by cluster and pod.
pub(crate) fn sorted(endpoints: Vec<Endpoint>) -> Endpoints {
    let endpoints = endpoints.into_iter();
    let by_key: BTreeMap<_, _> = endpoints
        .map(|endpoint| (endpoint.key(), Arc::new(endpoint)))
        .collect();
    by_key.into_values().collect()
}

/// The endpoints of `view`, which has the version `has`, after the changes.
fn changed(view: &View, has: u64, changes: &proto::Changes) -> Result<Endpoints, Misfit> {
    let from = changes.from_version;
    let current = view.current().filter(|_| from == has && from != 0);
    let current = current.ok_or(Misfit::Version { from, has })?;
    if changes.updated.is_empty() && changes.removed.is_empty() {
        return Ok(Arc::clone(&current.endpoints));
    }
    let endpoints = current.endpoints.iter();
    let mut by_key: BTreeMap<EndpointKey, Arc<Endpoint>> = endpoints
        .map(|endpoint| (endpoint.key(), Arc::clone(endpoint)))
        .collect();
    for removed in &changes.removed {
        by_key.remove(&EndpointKey::of_message(removed.clone()));
    }
    for updated in &changes.updated {
        let updated = Endpoint::of_message(updated.clone())?;
        by_key.insert(updated.key(), Arc::new(updated));
    }
    Ok(by_key.into_values().collect())
}

fn stale_member(member: proto::StaleMember, now: Instant) -> StaleMember {
    let age = |seconds| Age {
        then: Duration::from_secs(seconds),
        at: now,
    };
    StaleMember {
        cluster: member.cluster,
        age: member.seconds.map(age),
    }
}

fn of_message(problem: proto::Problem) -> Problem {
    use proto::problem::Reason as R;
    let reason = match problem.reason() {
        R::NotFound => Reason::NotFound,
        R::Invalid => Reason::Invalid,
        R::Waiting => Reason::Waiting,
        R::Forbidden => Reason::Forbidden,
        R::Unspecified => Reason::Unavailable,
    };
    Problem {
        reason,
        message: problem.message,
    }
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
