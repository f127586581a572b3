//! The state machine of a reflector, over any transport.
//!
//! ```text
//!   .-> List --pages: on_apply--> on_init_done --> Watch --events: on_apply, on_delete--.
//!   |    ^ pause, after any failure                  ^ |     ends, or breaks: Compare   |
//!   '----+------ version can't be resumed from ------|-'<-------------------------------'
//!                                                    | |
//!       a bookmark, or its end in time: on_caught_up | | silent for longer than bookmarks are apart: on_silence; or asked for
//!                                                    | v
//!                                                  Confirm, a watch of a few seconds: if it fails, List
//! ```
//!
//! A list never reads a server's cache, so it overrides everything known before.
//!
//! **Restored servers.** A server that was restored from a backup accepts a watch from a version that it does not know any
//! more, and shows neither what it restored, nor the changes up to that version. Its watches have ended early. So before a
//! watch follows one that broke or ended early, the server's current version is read, with a page of one object. A server that
//! has given as many versions since as it has lost looks as before: so such a watch is also followed by a list, half an hour
//! later.
//!
//! **Silence.** A watch of a quiet collection and one whose connection is lost look alike. API servers send bookmarks about
//! once a minute, but do not promise them: one that has seen no change since it started sends none. So a silent watch is
//! reopened for a few seconds, at the end of which every server has to answer. What proves that nothing was missed is what
//! comes *behind* all events that the server had: a bookmark, or the end of the short watch. The headers of the response do
//! not, because the events come after them, through a proxy that may hold them back; nor does an event, because others may
//! follow it.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, warn};

use crate::{
    backoff::Backoff,
    decode::{self, Event},
    error::{Error, ErrorKind, Verb},
    handler::{EventHandler, Versioned},
    invalid_object::{InvalidObject, InvalidObjectCause},
    pages::{read_pages, within},
    resource_version::ResourceVersion,
    settings::ReflectorSettings,
    transport::{Chunks, Transport},
    watch_lines::{Line, WatchLines},
};

/// A watch that ends less than this before its time ends in time: servers count in seconds.
const IN_TIME: Duration = Duration::from_secs(2);

enum State {
    /// Nothing is known, or what is known can't be updated by a watch.
    List,
    /// The collection is known as of this version.
    Watch { from: String },
    /// The same, but the server may have been restored since: a watch broke, or ended early.
    Compare { from: String },
    /// The collection is known, but it is not known whether events are missing: a watch from this version was silent, or somebody asks.
    Confirm { from: String },
}

/// Whether the watch may be unable to continue after an error.
struct NeedsRelist(bool);

/// How a watch ended without an error.
enum WatchEnd {
    /// After its `timeoutSeconds`, or nearly.
    InTime,
    /// Sooner than its `timeoutSeconds`.
    Early,
    /// Sooner than [`ReflectorSettings::min_watch_duration`].
    AtOnce,
    /// The server sent nothing for [`ReflectorSettings::max_silence`].
    Silent,
    /// Somebody asks whether it works.
    Asked,
}

/// Lists and watches one collection without an end.
pub(crate) struct ListWatch<I, H> {
    transport: I,
    handler: H,
    settings: ReflectorSettings,
    backoff: Backoff,
    path: Arc<str>,
    /// When a list is due, because a watch broke or ended early since the last one.
    list_at: Option<Instant>,
}

impl<I: Transport, H> ListWatch<I, H> {
    pub(crate) fn new(
        transport: I,
        handler: H,
        settings: ReflectorSettings,
        seed: u64,
        path: Arc<str>,
    ) -> Self {
        let backoff = Backoff::new(settings.initial_backoff, settings.max_backoff, seed);
        Self {
            transport,
            handler,
            settings,
            backoff,
            path,
            list_at: None,
        }
    }

    /// Runs without an end. Stops what it is doing and lists whenever `relist` is notified; confirms that an open watch works
    /// whenever `confirm` wakes it.
    pub(crate) async fn run<T>(mut self, relist: &Notify, confirm: &Notify)
    where
        T: DeserializeOwned + Versioned + Send,
        H: EventHandler<T>,
    {
        let mut state = State::List;
        loop {
            state = tokio::select! {
                biased;
                () = relist.notified() => {
                    self.backoff.reset();
                    State::List
                }
                next = self.step(state, confirm) => next,
            };
        }
    }

    /// One list, or one watch from its request to its end, and the pause after it.
    async fn step<T>(&mut self, state: State, confirm: &Notify) -> State
    where
        T: DeserializeOwned + Versioned + Send,
        H: EventHandler<T>,
    {
        match state {
            State::List => match self.list().await {
                Ok(from) => State::Watch { from },
                Err(kind) => {
                    self.pause_after(Verb::List, kind).await;
                    State::List
                }
            },
            State::Watch { .. } if self.list_at.is_some_and(|at| at <= Instant::now()) => {
                self.handler.on_verification();
                State::List
            }
            State::Watch { mut from } => match self.watch(&mut from, confirm).await {
                Ok(WatchEnd::InTime) => State::Watch { from },
                Ok(WatchEnd::Early) => self.compare_and_list_later(from),
                Ok(WatchEnd::AtOnce) => {
                    self.handler.on_short_watch();
                    let pause = self.backoff.next_pause();
                    sleep(pause.min(self.settings.max_short_watch_backoff)).await;
                    self.compare_and_list_later(from)
                }
                Ok(WatchEnd::Silent) => {
                    self.handler.on_silence();
                    if self.settings.relist_after_break {
                        State::List
                    } else {
                        State::Confirm { from }
                    }
                }
                Ok(WatchEnd::Asked) => State::Confirm { from },
                Err(kind) => match self.pause_after(Verb::Watch, kind).await {
                    NeedsRelist(true) => State::List,
                    NeedsRelist(false) => self.compare_and_list_later(from),
                },
            },
            State::Compare { from } => match self.compare(&from).await {
                Ok(()) => State::Watch { from },
                Err(kind) => match self.pause_after(Verb::List, kind).await {
                    NeedsRelist(true) => State::List,
                    NeedsRelist(false) => State::Compare { from },
                },
            },
            State::Confirm { mut from } => match self.confirm(&mut from).await {
                Ok(()) => State::Watch { from },
                // A server, or a proxy, whose watches show nothing may still answer lists.
                Err(kind) => {
                    self.pause_after(Verb::Watch, kind).await;
                    State::List
                }
            },
        }
    }

    /// After a watch that broke or ended early. Further ones do not delay the list.
    fn compare_and_list_later(&mut self, from: String) -> State {
        let within = self.backoff.jitter(self.settings.relist_within, 0.1);
        self.list_at.get_or_insert_with(|| Instant::now() + within);
        State::Compare { from }
    }

    async fn pause_after<T>(&mut self, verb: Verb, kind: ErrorKind) -> NeedsRelist
    where
        H: EventHandler<T>,
    {
        let path = Arc::clone(&self.path);
        let error = Error { verb, path, kind };
        self.handler.on_error(&error);
        let pause = self.backoff.next_pause();
        debug!(%error, retryable = error.is_retryable(), ?pause, "list or watch failed");
        let needs_relist = NeedsRelist(error.needs_relist() || self.settings.relist_after_break);
        // It may quote a whole response.
        drop(error);
        sleep(pause).await;
        needs_relist
    }

    /// Lists all pages. Returns the version of the list.
    async fn list<T>(&mut self) -> Result<String, ErrorKind>
    where
        T: DeserializeOwned,
        H: EventHandler<T>,
    {
        self.handler.on_init();
        let Self {
            transport,
            handler,
            settings,
            path,
            ..
        } = self;
        let version = read_pages::<T>(transport, settings, |date, items| {
            handler.on_activity();
            handler.on_page(date);
            for item in items {
                match item {
                    Ok(object) => handler.on_apply(object),
                    Err(invalid) => report(handler, path, &invalid),
                }
            }
            check_room(handler)
        });
        let version = version.await?;
        self.list_at = None;
        self.handler.on_init_done(&version);
        Ok(version)
    }

    async fn watch<T>(&mut self, from: &mut String, confirm: &Notify) -> Result<WatchEnd, ErrorKind>
    where
        T: DeserializeOwned + Versioned,
        H: EventHandler<T>,
    {
        let mut duration = self.backoff.jitter(self.settings.watch_timeout, 0.1);
        if let Some(at) = self.list_at {
            let left = at.saturating_duration_since(Instant::now());
            duration = duration.min(left.max(IN_TIME));
        }
        let open = self.transport.watch(from, duration);
        let chunks = within(self.settings.watch_open_timeout, open).await?;
        self.handler.on_activity();
        let opened = Instant::now();
        let max_silence = self.settings.max_silence;
        let result = tokio::select! {
            biased;
            result = self.read_events(chunks, from, max_silence) => result,
            () = confirm.notified() => return Ok(WatchEnd::Asked),
        };
        let lasted = opened.elapsed();
        let at_once = lasted < self.settings.min_watch_duration;
        if !at_once {
            self.backoff.reset();
        }
        if !result? {
            return Ok(WatchEnd::Silent);
        }
        self.handler.on_caught_up();
        Ok(if at_once {
            WatchEnd::AtOnce
        } else if lasted + IN_TIME < duration {
            WatchEnd::Early
        } else {
            WatchEnd::InTime
        })
    }

    /// Fails if the server's current version is older than `from`.
    async fn compare(&mut self, from: &str) -> Result<(), ErrorKind> {
        let page = self.transport.list(1, None);
        let page = within(self.settings.watch_open_timeout, page).await?;
        let page = decode::page::<IgnoredAny>(&page.body, self.settings.limits.object_bytes);
        let current = page.map_err(ErrorKind::NotAList)?.version;
        if is_older(&current, from) {
            let from = from.to_owned();
            return Err(ErrorKind::WentBack { from, to: current });
        }
        Ok(())
    }

    /// A short watch: its end shows that everything before has arrived.
    async fn confirm<T>(&mut self, from: &mut String) -> Result<(), ErrorKind>
    where
        T: DeserializeOwned + Versioned,
        H: EventHandler<T>,
    {
        let duration = self.settings.confirm_timeout;
        let open = self.transport.watch(from, duration);
        let chunks = within(self.settings.watch_open_timeout, open).await?;
        let max_silence = duration + self.settings.watch_open_timeout;
        if !self.read_events(chunks, from, max_silence).await? {
            return Err(ErrorKind::Timeout(max_silence));
        }
        self.backoff.reset();
        self.handler.on_caught_up();
        Ok(())
    }

    /// Reads a watch to its end. Returns whether it ended, and was not silent for `max_silence`.
    async fn read_events<T>(
        &mut self,
        mut chunks: Chunks,
        from: &mut String,
        max_silence: Duration,
    ) -> Result<bool, ErrorKind>
    where
        T: DeserializeOwned + Versioned,
        H: EventHandler<T>,
    {
        let limit = self.settings.limits.watch_line_bytes;
        let mut lines = WatchLines::new(limit);
        let mut deadline = Instant::now() + max_silence;
        loop {
            let Ok(chunk) = timeout_at(deadline, chunks.stream.next()).await else {
                return Ok(false);
            };
            let Some(chunk) = chunk else { return Ok(true) };
            let chunk = chunk?;
            let bytes = lines.len() + chunk.len();
            if chunks.reservation.reserve(bytes, limit).await? {
                lines.grow();
            }
            lines.push(&chunk);
            while let Some(line) = lines.next() {
                deadline = Instant::now() + max_silence;
                self.handler.on_activity();
                self.take_line(&line, from)?;
                check_room(&self.handler)?;
            }
            if chunks.reservation.release(lines.len()) {
                lines.shrink();
            }
        }
    }

    fn take_line<T>(&mut self, line: &Line, from: &mut String) -> Result<(), ErrorKind>
    where
        T: DeserializeOwned + Versioned,
        H: EventHandler<T>,
    {
        let limits = self.settings.limits;
        let event = match line {
            Line::Whole(line) => decode::event::<T>(line, limits.object_bytes),
            Line::TooLong => Err(InvalidObject::without_metadata(
                InvalidObjectCause::LineTooLong {
                    limit: limits.watch_line_bytes,
                },
            )),
        };
        match event {
            Ok(Event::Applied(object)) => {
                advance(from, object.resource_version());
                self.handler.on_apply(object);
            }
            Ok(Event::Deleted(object)) => {
                advance(from, object.resource_version());
                self.handler.on_delete(object);
            }
            Ok(Event::Bookmark(object)) => {
                let version = object.metadata.resource_version;
                if is_older(&version, from) {
                    let from = from.clone();
                    return Err(ErrorKind::WentBack { from, to: version });
                }
                advance(from, Some(&version));
                self.handler.on_caught_up();
            }
            Ok(Event::Error(status)) => return Err(status.into()),
            Ok(Event::Unknown) => {}
            Err(invalid) => report(&mut self.handler, &self.path, &invalid),
        }
        Ok(())
    }
}

fn check_room<T>(handler: &impl EventHandler<T>) -> Result<(), ErrorKind> {
    if handler.is_full() {
        Err(ErrorKind::TooManyObjects)
    } else {
        Ok(())
    }
}

fn report<T>(handler: &mut impl EventHandler<T>, path: &str, invalid: &InvalidObject) {
    warn!(resource = path, error = %invalid, "skipped an object");
    handler.on_invalid(invalid);
}

fn is_older(version: &str, than: &str) -> bool {
    ResourceVersion::parse(version).is_older_than(ResourceVersion::parse(than))
}

/// Moves `from` forward to `version`; never back, if an event is repeated.
fn advance(from: &mut String, version: Option<&str>) {
    if let Some(version) = version
        && !version.is_empty()
        && !is_older(version, from)
    {
        version.clone_into(from);
    }
}

#[cfg(test)]
#[path = "list_watch_tests.rs"]
mod tests;
