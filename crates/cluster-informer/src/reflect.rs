//! List, then watch, for ever: the state of a collection, told to a [`Sink`] step by step.
//!
//! ```text
//!   .-> List --pages: applied--> listed --> Watch --events: applied, deleted--.
//!   |    ^ pause, after any failure          ^ |        ends in time, breaks  |
//!   '----+--------- version too old ---------|-'<-----------------------------'
//! ```
//!
//! Every wait has a deadline: response headers, each page, and a watch from which nothing comes (a bookmark comes about
//! every minute). A list is always asked for anew, never from a server's cache, so it may be believed over all
//! that was known before. Keeps no objects: that is the sink's.

use std::{future::Future, time::Duration};

use futures::StreamExt;
use kube::{Client, Resource as KubeResource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    backoff::Backoff,
    clients::Clients,
    decode::{self, Event, Malformed},
    error::{Doing, Error},
    lines::{Line, Lines},
    transport::{Chunks, KubeTransport, Resource, Transport},
    wire::Version,
};

/// How a collection is listed and watched.
#[derive(Clone, Debug)]
pub struct ReflectSettings {
    /// Objects per page. Default 500.
    pub page_size: u32,
    /// A page is complete within this. Default 30 s.
    pub page_deadline: Duration,
    /// A watch is open within this. Default 10 s.
    pub headers_deadline: Duration,
    /// The server is asked to end a watch after this, less up to a tenth. Default 200 s, as some load balancers
    /// drop idle connections after 240 s.
    pub watch_timeout: Duration,
    /// A watch from which nothing comes is given up this long after the server should have ended it. Default 10 s.
    pub idle_grace: Duration,
    /// A watch that ends sooner than this is counted and slowed down, however clean its end. Default 5 s.
    pub short_watch: Duration,
    /// The first pause after a failure, doubled with each. Default 500 ms.
    pub first_pause: Duration,
    /// The longest pause after failures. Default 30 s.
    pub max_pause: Duration,
    /// The longest pause after short watches that ended cleanly: nothing says that the server is in trouble, and
    /// what happens meanwhile is seen late. Default 5 s.
    pub max_short_watch_pause: Duration,
    /// Longer lines of a watch are thrown away, in bytes. Default 4 MiB; etcd takes objects up to 1.5 MiB.
    pub max_line: usize,
}

impl Default for ReflectSettings {
    fn default() -> Self {
        Self {
            page_size: 500,
            page_deadline: Duration::from_secs(30),
            headers_deadline: Duration::from_secs(10),
            watch_timeout: Duration::from_secs(200),
            idle_grace: Duration::from_secs(10),
            short_watch: Duration::from_secs(5),
            first_pause: Duration::from_millis(500),
            max_pause: Duration::from_secs(30),
            max_short_watch_pause: Duration::from_secs(5),
            max_line: 4 << 20,
        }
    }
}

/// Takes in what a collection holds. Called from one task, in order; must not block.
pub trait Sink<T>: Send {
    /// A list begins: what it doesn't show is gone once it is complete.
    fn restarted(&mut self);
    /// An object is there, or has changed; by a list or an event. May come again, or, from a faulty server, late.
    fn applied(&mut self, object: T);
    /// An object is gone, or is no longer selected: its last state.
    fn deleted(&mut self, object: T);
    /// The list is complete as of `resource_version`: what it didn't show is to be swept.
    fn listed(&mut self, resource_version: &str);
    /// A list or watch failed; it is tried again. If the error [needs a list](Error::needs_list), what is known is
    /// out of date until [`listed`](Self::listed).
    fn failed(&mut self, error: &Error);
    /// The server was heard: a page came, a watch was opened, or a line of it came, be it only a bookmark.
    fn alive(&mut self);
    /// An object can't be read. It is passed over; what is known of it should stay, unless it was deleted.
    fn malformed(&mut self, object: &Malformed) {
        let _ = object;
    }
    /// A watch ended cleanly, but sooner than [`ReflectSettings::short_watch`].
    fn ended_early(&mut self) {}
}

/// An object that carries the version up to which it lets a watch resume.
pub trait Versioned {
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> Option<&str>;
}

impl<K: KubeResource> Versioned for K {
    fn resource_version(&self) -> Option<&str> {
        self.meta().resource_version.as_deref()
    }
}

/// Tells `sink` what `resource` holds and how it changes, until `cancel`.
///
/// The client's own retry should be off: failures are told and tried again here, with pauses drawn from `seed`.
pub async fn reflect<T, S>(
    client: Client,
    resource: Resource,
    sink: S,
    settings: ReflectSettings,
    seed: u64,
    cancel: CancellationToken,
) where
    T: DeserializeOwned + Versioned + Send,
    S: Sink<T>,
{
    reflect_anew(
        Clients::of(client),
        resource,
        sink,
        settings,
        seed,
        &Notify::new(),
        cancel,
    )
    .await;
}

/// [`reflect`], which drops what it is doing and begins with a list each time `anew` is notified: an open watch
/// may have lost its server without a word, and a pause after failures may last long after the server is back.
pub(crate) async fn reflect_anew<T, S>(
    clients: Clients,
    resource: Resource,
    sink: S,
    settings: ReflectSettings,
    seed: u64,
    anew: &Notify,
    cancel: CancellationToken,
) where
    T: DeserializeOwned + Versioned + Send,
    S: Sink<T>,
{
    let what = resource.path.clone();
    let transport = KubeTransport::new(clients, resource);
    let reflector = Reflector::new(transport, sink, settings, seed, what);
    cancel.run_until_cancelled(reflector.run(anew)).await;
}

enum State {
    /// Nothing is known, or what is known can't be followed any more.
    List,
    /// All is known up to this version.
    Watch { from: String },
}

enum End {
    InTime,
    Early,
}

/// The machine behind [`reflect`], over any transport.
pub(crate) struct Reflector<I, S> {
    transport: I,
    sink: S,
    settings: ReflectSettings,
    backoff: Backoff,
    what: String,
}

impl<I: Transport, S> Reflector<I, S> {
    pub(crate) fn new(
        transport: I,
        sink: S,
        settings: ReflectSettings,
        seed: u64,
        what: String,
    ) -> Self {
        let backoff = Backoff::new(settings.first_pause, settings.max_pause, seed);
        Self {
            transport,
            sink,
            settings,
            backoff,
            what,
        }
    }

    pub(crate) async fn run<T>(mut self, anew: &Notify)
    where
        T: DeserializeOwned + Versioned + Send,
        S: Sink<T>,
    {
        let mut state = State::List;
        loop {
            state = tokio::select! {
                biased;
                () = anew.notified() => {
                    self.backoff.reset();
                    State::List
                }
                next = self.step(state) => next,
            };
        }
    }

    async fn step<T>(&mut self, state: State) -> State
    where
        T: DeserializeOwned + Versioned + Send,
        S: Sink<T>,
    {
        match state {
            State::List => match self.list().await {
                Ok(from) => State::Watch { from },
                Err(error) => {
                    self.pause_after(&error).await;
                    State::List
                }
            },
            State::Watch { mut from } => match self.watch(&mut from).await {
                Ok(End::InTime) => State::Watch { from },
                Ok(End::Early) => {
                    self.sink.ended_early();
                    let pause = self.backoff.next().min(self.settings.max_short_watch_pause);
                    sleep(pause).await;
                    State::Watch { from }
                }
                Err(error) => {
                    let needs_list = error.needs_list();
                    self.pause_after(&error).await;
                    if needs_list {
                        State::List
                    } else {
                        State::Watch { from }
                    }
                }
            },
        }
    }

    async fn pause_after<T>(&mut self, error: &Error)
    where
        S: Sink<T>,
    {
        self.sink.failed(error);
        let pause = self.backoff.next();
        debug!(what = self.what, %error, ?pause, "list or watch failed");
        sleep(pause).await;
    }

    /// All pages. The version as of which the list is.
    async fn list<T>(&mut self) -> Result<String, Error>
    where
        T: DeserializeOwned,
        S: Sink<T>,
    {
        self.sink.restarted();
        let mut version = None;
        let mut token = None;
        loop {
            let after = self.settings.page_deadline;
            let page = self
                .transport
                .list(self.settings.page_size, token.as_deref());
            let page = within(after, Doing::List, page).await?;
            let page = decode::page::<T>(&page).map_err(|source| Error::NoList { source })?;
            self.sink.alive();
            for item in page.items {
                match item {
                    Ok(object) => self.sink.applied(object),
                    Err(malformed) => self.report(&malformed),
                }
            }
            // All pages are of one snapshot. Should a server not keep to that, its first version replays the rest.
            let version = version.get_or_insert(page.version);
            token = page.next;
            if token.is_none() {
                self.sink.listed(version);
                return Ok(std::mem::take(version));
            }
        }
    }

    async fn watch<T>(&mut self, from: &mut String) -> Result<End, Error>
    where
        T: DeserializeOwned + Versioned,
        S: Sink<T>,
    {
        let duration = self.backoff.spread(self.settings.watch_timeout, 0.1);
        let open = self.transport.watch(from, duration);
        let chunks = within(self.settings.headers_deadline, Doing::Watch, open).await?;
        self.sink.alive();
        let opened = Instant::now();
        let result = self
            .follow(chunks, from, duration + self.settings.idle_grace)
            .await;
        let early = opened.elapsed() < self.settings.short_watch;
        if !early {
            self.backoff.reset();
        }
        result?;
        self.sink.alive();
        Ok(if early { End::Early } else { End::InTime })
    }

    /// Reads a watch to its end; an error if no line comes for `idle`.
    async fn follow<T>(
        &mut self,
        mut chunks: Chunks,
        from: &mut String,
        idle: Duration,
    ) -> Result<(), Error>
    where
        T: DeserializeOwned + Versioned,
        S: Sink<T>,
    {
        let mut lines = Lines::new(self.settings.max_line);
        let mut deadline = Instant::now() + idle;
        loop {
            let next = timeout_at(deadline, chunks.next()).await;
            let next = next.map_err(|_| Error::Deadline {
                doing: Doing::Watch,
                after: idle,
            })?;
            let Some(chunk) = next else { return Ok(()) };
            lines.push(&chunk?);
            while let Some(line) = lines.next() {
                deadline = Instant::now() + idle;
                self.sink.alive();
                self.take_line(&line, from)?;
            }
        }
    }

    fn take_line<T>(&mut self, line: &Line, from: &mut String) -> Result<(), Error>
    where
        T: DeserializeOwned + Versioned,
        S: Sink<T>,
    {
        let event = match line {
            Line::Whole(line) => decode::event::<T>(line),
            Line::TooLong => Err(Malformed::too_long(self.settings.max_line)),
        };
        match event {
            Ok(Event::Applied(object)) => {
                advance(from, object.resource_version());
                self.sink.applied(object);
            }
            Ok(Event::Deleted(object)) => {
                advance(from, object.resource_version());
                self.sink.deleted(object);
            }
            Ok(Event::Bookmark { version }) => {
                if Version::of(&version).is_older_than(Version::of(from)) {
                    return Err(Error::WentBack {
                        from: from.clone(),
                        to: version,
                    });
                }
                advance(from, Some(&version));
            }
            Ok(Event::Refused(status)) => {
                let decode::Status {
                    code,
                    reason,
                    message,
                } = status;
                return Err(Error::Refused {
                    doing: Doing::Watch,
                    code,
                    reason,
                    message,
                });
            }
            Ok(Event::Unknown) => {}
            Err(malformed) => self.report(&malformed),
        }
        Ok(())
    }

    fn report<T>(&mut self, object: &Malformed)
    where
        S: Sink<T>,
    {
        warn!(what = self.what, %object, "passed over an object that can't be read");
        self.sink.malformed(object);
    }
}

/// Moves `from` on to `version`; never back, should an event come again.
fn advance(from: &mut String, version: Option<&str>) {
    if let Some(version) = version
        && !version.is_empty()
        && !Version::of(version).is_older_than(Version::of(from))
    {
        version.clone_into(from);
    }
}

async fn within<T>(
    after: Duration,
    doing: Doing,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(after, answer)
        .await
        .unwrap_or(Err(Error::Deadline { doing, after }))
}

#[cfg(test)]
#[path = "reflect_tests.rs"]
mod tests;
