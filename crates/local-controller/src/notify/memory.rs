//! What a process knows of notifications beyond the statuses of requests. A new leader begins without it: it may send again what was
//! acknowledged and not written, with the same id.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use fedrs_api::{MigrationPhase, MigrationRequestStatus, NotificationStatus};
use jiff::Timestamp;

use super::{
    config::Target,
    due::{Due, due},
};
use crate::{backoff::Backoff, migration_object::RequestObject};

/// The requests that were notified of, or will be, and the webhooks that fail.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By the uid of the request.
    requests: HashMap<String, Tracked>,
    /// Of webhooks that fail, by host and port.
    hosts: HashMap<String, Backoff>,
}

#[derive(Debug)]
struct Tracked {
    request: Arc<RequestObject>,
    target: Target,
    /// What was acknowledged, and is not in the status.
    unwritten: Option<NotificationStatus>,
    /// When it was noticed that the request is gone before its ticket was closed.
    gone: Option<Timestamp>,
    backoff: Backoff,
}

/// What is done next for a request.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Arc<RequestObject>,
    /// Its status, with all that was acknowledged.
    pub(super) status: MigrationRequestStatus,
    pub(super) target: Target,
    pub(super) task: Task,
    /// Whether there is no request any more, whose status could be written.
    pub(super) is_gone: bool,
}

#[derive(Debug)]
pub(super) enum Task {
    Send(Due),
    /// Write what was acknowledged.
    Write(NotificationStatus),
}

/// What became of a job.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) request_uid: String,
    pub(super) host: String,
    /// What was acknowledged and could not be written.
    pub(super) unwritten: Option<NotificationStatus>,
    pub(super) result: Sent,
    pub(super) is_gone: bool,
}

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// None was sent.
    Nothing,
    Acknowledged,
    /// The webhook does not take this one.
    Rejected,
    /// The webhook takes none, or does not answer.
    Failed,
}

impl Memory {
    /// Only these are notified of at `now`; `exists` says whether a request that is not among them is still there.
    pub(super) fn observe(
        &mut self,
        known: Vec<(Arc<RequestObject>, Target)>,
        exists: impl Fn(&RequestObject) -> bool,
        now: Timestamp,
    ) {
        let mut seen = HashSet::new();
        for (request, target) in known {
            let uid = request.uid().to_owned();
            seen.insert(uid.clone());
            let before = self.requests.remove(&uid);
            let (unwritten, backoff) =
                before.map_or_else(Default::default, |of| (of.unwritten, of.backoff));
            let tracked = Tracked {
                unwritten,
                backoff,
                request,
                target,
                gone: None,
            };
            self.requests.insert(uid, tracked);
        }
        self.requests.retain(|uid, tracked| {
            if seen.contains(uid) {
                return true;
            }
            let notified = tracked.status().notified.unwrap_or_default();
            let is_open = notified.opened.is_some() && notified.closed.is_none();
            if !is_open || exists(&tracked.request) {
                return false;
            }
            tracked.gone.get_or_insert(now);
            true
        });
    }

    /// What is to be done at `now`, by the host and port of the webhook, the oldest first; and how many notifications are due.
    pub(super) fn jobs(&self, now: Timestamp) -> (BTreeMap<String, Vec<Job>>, usize) {
        let mut jobs: BTreeMap<String, Vec<Job>> = BTreeMap::new();
        let mut pending = 0;
        for tracked in self.requests.values() {
            let status = tracked.status();
            let created = tracked.request.created();
            let due = due(created, &status, tracked.target.notify.remind, now);
            pending += usize::from(due.is_some());
            let is_gone = tracked.gone.is_some();
            let task = match (&tracked.unwritten, due) {
                (Some(unwritten), _) if !is_gone => Task::Write(unwritten.clone()),
                (_, Some(due)) => Task::Send(due),
                (_, None) => continue,
            };
            let host = host_of(&tracked.target);
            let host_waits = self.hosts.get(&host).is_some_and(Backoff::waits);
            let is_sent = matches!(task, Task::Send(_));
            if tracked.backoff.waits() || (is_sent && host_waits) {
                continue;
            }
            jobs.entry(host).or_default().push(Job {
                request: Arc::clone(&tracked.request),
                status,
                target: tracked.target.clone(),
                task,
                is_gone,
            });
        }
        for jobs in jobs.values_mut() {
            jobs.sort_by_cached_key(|job| match &job.task {
                Task::Write(_) => (None, job.request.uid().to_owned()),
                Task::Send(due) => (Some(due.time), job.request.uid().to_owned()),
            });
        }
        (jobs, pending)
    }

    /// Remembers what became of jobs.
    pub(super) fn remember(&mut self, done: Vec<Done>) {
        for Done {
            request_uid,
            host,
            unwritten,
            result,
            is_gone,
        } in done
        {
            if result == Sent::Failed {
                self.hosts.entry(host).or_default().fail();
            } else if result != Sent::Nothing {
                self.hosts.remove(&host);
            }
            if is_gone && result == Sent::Acknowledged {
                self.requests.remove(&request_uid);
            }
            let Some(tracked) = self.requests.get_mut(&request_uid) else {
                continue;
            };
            if unwritten.is_some() || result == Sent::Rejected {
                tracked.backoff.fail();
            } else if result != Sent::Failed {
                tracked.backoff.succeed();
            }
            tracked.unwritten = unwritten;
        }
    }
}

impl Tracked {
    /// The status, with what was acknowledged; of a request that is gone, as if it had been cancelled.
    fn status(&self) -> MigrationRequestStatus {
        let mut status = self.request.status().cloned().unwrap_or_default();
        let written = status.notified.as_ref().map(progress);
        if let Some(unwritten) = &self.unwritten
            && Some(progress(unwritten)) > written
        {
            status.notified = Some(unwritten.clone());
        }
        if let Some(gone) = self.gone
            && status.ended().is_none()
        {
            "the MigrationRequest was deleted".clone_into(&mut status.message);
            status.until = None;
            status.reach(MigrationPhase::Cancelled, gone);
        }
        status
    }
}

/// How far the notifications are that were acknowledged.
pub(super) fn progress(of: &NotificationStatus) -> (bool, i32, bool) {
    (of.opened.is_some(), of.reminders, of.closed.is_some())
}

/// The host and the port of a webhook.
pub(super) fn host_of(target: &Target) -> String {
    let webhook = &target.notify.webhook;
    format!("{}:{}", webhook.host(), webhook.port())
}
