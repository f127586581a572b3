//! Keeps all sets of a resolver up to date: one task, which owns what is held of them.
//!
//! ```text
//! connect to a server --> watch all sets --responses--> Held (pure) --> Publisher
//!        ^                      |
//!        '--the next one, after a pause, when anything fails
//! ```

use std::{collections::HashMap, iter, time::Duration};

use discovery_client::{Credentials, Server};
use discovery_proto::{SetId, WatchResponse, WatchedSet, discovery_client::DiscoveryClient};
use futures::{StreamExt, stream::SelectAll};
use tokio::{sync::mpsc::UnboundedReceiver, time::Instant};
use tonic::transport::Channel;

use crate::{
    calls::{self, Responses},
    endpoints::Publisher,
    held::{Held, ServerIndex},
    name::SetName,
    resolved::{Problem, Reason, View},
};

/// The most sets that one stream follows, by the protocol.
const MAX_SETS: usize = 1_000;
/// The most streams, beyond those that are full: sets that come later have streams of their own until then.
const MAX_STREAMS: usize = 16;
/// How long a stream has to last for the next failure to count as the first.
const STABLE: Duration = Duration::from_secs(10);
/// The least time for which a server may know nothing before the next one is asked.
const WAITING: Duration = Duration::from_secs(2);

/// A set that a program begins to ask for.
#[derive(Debug)]
pub(crate) struct Added {
    pub(crate) name: SetName,
    /// What was on disk.
    pub(crate) view: View,
    pub(crate) publisher: Publisher,
}

/// The state of the task.
#[derive(Debug)]
pub(crate) struct Refresher {
    servers: Vec<Server>,
    credentials: Credentials,
    sets: HashMap<SetName, (Held, Publisher)>,
    /// Unbounded: has each set once, and the resolver keeps them all.
    added: UnboundedReceiver<Added>,
}

/// Why the streams of one server ended.
#[derive(Debug)]
struct End {
    problem: Problem,
    /// Whether the server was connected to while it knew nothing: that was the pause.
    has_waited: bool,
}

impl From<Problem> for End {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            has_waited: false,
        }
    }
}

impl Refresher {
    /// Servers that are asked in turn, one at least, and the sets to come.
    pub(crate) fn new(
        servers: Vec<Server>,
        credentials: Credentials,
        added: UnboundedReceiver<Added>,
    ) -> Self {
        Self {
            servers,
            credentials,
            sets: HashMap::new(),
            added,
        }
    }

    /// Refreshes until the resolver is dropped, beginning with any of the servers.
    pub(crate) async fn run(mut self) {
        let mut server = rand::random_range(0..self.servers.len());
        let mut failures: u32 = 0;
        while self.has_sets().await {
            let begun = Instant::now();
            let end = self.follow(server, self.pause(failures).max(WAITING)).await;
            self.interrupted(&end.problem);
            let was_stable = begun.elapsed() >= STABLE && !end.has_waited;
            failures = if was_stable {
                1
            } else {
                failures.saturating_add(1)
            };
            tracing::debug!(server = %self.servers[server].uri(), problem = %end.problem, failures, "no longer follows this server");
            if !end.has_waited {
                tokio::time::sleep(self.pause(failures)).await;
            }
            server = (server + 1) % self.servers.len();
        }
    }

    fn pause(&self, failures: u32) -> Duration {
        discovery_client::pause(failures, self.servers.len(), rand::random())
    }

    /// Waits for the first set. Says whether there is one; if not, there will be none.
    async fn has_sets(&mut self) -> bool {
        if self.sets.is_empty() {
            match self.added.recv().await {
                Some(first) => _ = self.register(first),
                None => return false,
            }
        }
        true
    }

    /// Follows all sets at a server until something fails, or until the server has known nothing for `patience`, if there is
    /// another one.
    async fn follow(&mut self, server: ServerIndex, patience: Duration) -> End {
        self.register_added();
        let client = match calls::connect(&self.servers[server], &self.credentials).await {
            Ok(client) => client,
            Err(problem) => return problem.into(),
        };
        let mut streams = self.streams_of_all(&client, server);
        let deadline = tokio::time::sleep(patience);
        tokio::pin!(deadline);
        let mut knows_nothing = true;
        loop {
            tokio::select! {
                Some(response) = streams.next() => {
                    match response.and_then(|response| self.receive(response, server)) {
                        Ok(is_known) => knows_nothing &= !is_known,
                        Err(problem) => return problem.into(),
                    }
                }
                Some(first) = self.added.recv() => {
                    let first = self.register(first);
                    let added: Vec<_> = iter::once(first).chain(self.register_added()).collect();
                    if streams.len() < MAX_STREAMS + self.sets.len() / MAX_SETS {
                        streams.extend(self.streams(&client, server, &added));
                    } else {
                        // The server goes on from the versions that the client has: that is cheap.
                        streams = self.streams_of_all(&client, server);
                    }
                }
                () = &mut deadline, if knows_nothing && self.servers.len() > 1 => {
                    let message = format!("{} knows no set yet", self.servers[server].uri());
                    let problem = Problem { reason: Reason::Waiting, message };
                    return End { problem, has_waited: true };
                }
                else => return Problem::unavailable("no stream is open").into(),
            }
        }
    }

    fn streams_of_all(
        &self,
        client: &DiscoveryClient<Channel>,
        server: ServerIndex,
    ) -> SelectAll<Responses> {
        let names: Vec<_> = self.sets.keys().cloned().collect();
        self.streams(client, server, &names).collect()
    }

    /// Streams for `names`, each of which goes on from the version that `server` sent.
    fn streams(
        &self,
        client: &DiscoveryClient<Channel>,
        server: ServerIndex,
        names: &[SetName],
    ) -> impl Iterator<Item = Responses> {
        let watched = move |name: &SetName| WatchedSet {
            set: Some(SetId {
                namespace: name.namespace().to_owned(),
                name: name.name().to_owned(),
            }),
            known_version: (self.sets.get(name)).map_or(0, |(held, _)| held.known_version(server)),
        };
        names.chunks(MAX_SETS).map(move |names| {
            let sets = names.iter().map(watched).collect();
            calls::watch(client.clone(), self.credentials.clone(), sets)
        })
    }

    /// Takes a response, and says whether the server knows the set.
    fn receive(&mut self, response: WatchResponse, server: ServerIndex) -> Result<bool, Problem> {
        let id = response.set.as_ref();
        let name = id.and_then(|id| SetName::new(&id.namespace, &id.name).ok());
        let found = name.and_then(|name| Some((self.sets.get_mut(&name)?, name)));
        let Some(((held, publisher), name)) = found else {
            tracing::debug!(set = ?id, "got a set that was not asked for");
            return Ok(false);
        };
        let changed = held
            .apply(response, server, Instant::now())
            .map_err(|misfit| {
                Problem::unavailable(format!(
                    "got a response for {name} that does not fit: {misfit}"
                ))
            })?;
        if changed {
            publisher.publish(held.view());
        }
        let problem = held.view().problem();
        Ok(problem.is_none_or(|problem| problem.reason != Reason::Waiting))
    }

    /// No set is confirmed any more.
    fn interrupted(&mut self, problem: &Problem) {
        let now = Instant::now();
        for (held, publisher) in self.sets.values_mut() {
            if held.report(problem.clone(), now) {
                publisher.publish(held.view());
            }
        }
    }

    /// Takes all sets that wait for it, and returns their names.
    fn register_added(&mut self) -> Vec<SetName> {
        let mut names = Vec::new();
        while let Ok(added) = self.added.try_recv() {
            names.push(self.register(added));
        }
        names
    }

    fn register(&mut self, added: Added) -> SetName {
        let Added {
            name,
            view,
            publisher,
        } = added;
        self.sets.insert(name.clone(), (Held::new(view), publisher));
        name
    }
}
