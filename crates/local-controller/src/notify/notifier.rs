//! Sends what is due, and writes what is acknowledged.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use controller_base::{
    calls,
    clock::Clock,
    event::Event,
    event_recorder::{EventRecorder, InvolvedObject},
    watchdog::Watched,
};
use fedrs_api::{MigrationEventReason, NotificationStatus, ValidMigrationPolicy, names};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    cloud_event::cloud_event,
    config::NotifySettings,
    due::{Due, acknowledged},
    memory::{Done, Job, Memory, Sent, Task, host_of, progress},
    webhooks::{Message, WebhookError, Webhooks},
};
use crate::{execute::Executor, migration_object::RequestObject, migrations::request_path};

/// The time between two looks: a ticket that is opened some seconds later misses nobody.
const PERIOD: Duration = Duration::from_secs(2);
/// Webhooks that are sent to at the same time; each gets one notification after the other, so that their order is kept, and one that
/// does not answer holds up no other one.
const HOSTS: usize = 16;
/// How long a webhook is sent to before the others are looked at again.
const TURN: Duration = Duration::from_secs(10);

/// Notifies webhooks of migrations.
pub(crate) struct Notifier {
    pub(crate) executor: Arc<Executor>,
    pub(crate) recorder: EventRecorder,
    pub(crate) webhooks: Webhooks,
    pub(crate) settings: Arc<NotifySettings>,
    /// The MigrationPolicy of sets that have none.
    pub(crate) default_policy: Option<Arc<ValidMigrationPolicy>>,
    pub(crate) clock: Clock,
}

impl Notifier {
    /// Looks again and again. Its future ends when it is dropped.
    pub(crate) async fn run(&self, watched: &Watched) {
        let mut memory = Memory::default();
        loop {
            sleep(PERIOD).await;
            let _busy = watched.begin("notifications");
            self.once(&mut memory, watched).await;
        }
    }

    async fn once(&self, memory: &mut Memory, watched: &Watched) {
        let default_policy = self.default_policy.as_deref();
        let store = &self.executor.store;
        let known = store.update(|state| state.notified(&self.settings, default_policy));
        let exists = |request: &RequestObject| {
            let (namespace, name) = request.id();
            store.update(|state| state.has_request(namespace, name))
        };
        let now = self.clock.now();
        memory.observe(known, exists, now);
        let (jobs, pending) = memory.jobs(now);
        let metrics = &self.executor.metrics.notifications;
        metrics
            .pending
            .set(i64::try_from(pending).unwrap_or(i64::MAX));
        let began = Instant::now();
        let hosts = jobs.into_iter();
        let hosts = hosts.map(|(host, jobs)| self.turn(host, jobs, (began, watched)));
        // Each is made before one is polled: a closure of a stream could not borrow.
        let hosts: Vec<_> = hosts.collect();
        let done: Vec<Vec<Done>> = stream::iter(hosts).buffer_unordered(HOSTS).collect().await;
        memory.remember(done.into_iter().flatten().collect());
    }

    /// The jobs of one webhook, until it fails, or its turn is over.
    async fn turn(
        &self,
        host: String,
        jobs: Vec<Job>,
        (began, watched): (Instant, &Watched),
    ) -> Vec<Done> {
        let mut all = Vec::new();
        let mut jobs = jobs.into_iter();
        while began.elapsed() <= TURN
            && let Some(job) = jobs.next()
        {
            let done = self.carry_out(job, &host).await;
            watched.beat();
            let has_failed = done.result == Sent::Failed;
            all.push(done);
            if has_failed {
                self.mark(jobs, &host, watched).await;
                break;
            }
        }
        all
    }

    /// Writes that these wait for the webhook, once: somebody is to be notified of them, however long ago they have ended then.
    async fn mark(&self, jobs: impl Iterator<Item = Job>, host: &str, watched: &Watched) {
        let began = Instant::now();
        for job in jobs.filter(|job| job.status.notified.is_none()) {
            if began.elapsed() > TURN {
                break;
            }
            let notified = NotificationStatus {
                failure: format!("webhook {host}: other notifications fail"),
                ..NotificationStatus::default()
            };
            self.write(&job.request, &notified).await;
            watched.beat();
        }
    }

    async fn carry_out(&self, job: Job, host: &str) -> Done {
        let (notified, result) = match &job.task {
            Task::Write(notified) => (Some(notified.clone()), Sent::Nothing),
            Task::Send(due) => match self.send(&job, *due).await {
                Ok(()) => {
                    let notified = acknowledged(&job.status, due.kind, self.clock.now());
                    (Some(notified), Sent::Acknowledged)
                }
                Err(error) => {
                    let result = if error.is_rejection() {
                        Sent::Rejected
                    } else {
                        Sent::Failed
                    };
                    (self.failed(&job, &error), result)
                }
            },
        };
        let mut unwritten = None;
        if let Some(notified) = notified.filter(|_| !job.is_gone)
            && !self.write(&job.request, &notified).await
        {
            // That it failed is found again.
            let is_news = matches!(result, Sent::Acknowledged | Sent::Nothing);
            unwritten = is_news.then_some(notified);
        }
        Done {
            request_uid: job.request.uid().to_owned(),
            host: host.to_owned(),
            unwritten,
            result,
            is_gone: job.is_gone,
        }
    }

    async fn send(&self, job: &Job, due: Due) -> Result<(), WebhookError> {
        let event = cloud_event(&self.settings.cluster, &job.request, &job.status, due);
        let body = serde_json::to_vec(&event).expect("an event has string keys");
        let message = Message {
            id: event.id,
            body: Bytes::from(body),
        };
        let (webhook, file) = (&job.target.notify.webhook, job.target.token_file.as_deref());
        let result = self.webhooks.send(webhook, file, &message).await;
        let metrics = &self.executor.metrics.notifications;
        let of_kind = due.kind.word().into();
        match &result {
            Ok(()) => metrics.acknowledged.get_or_create(&of_kind).inc(),
            Err(_) => metrics.failed.get_or_create(&of_kind).inc(),
        };
        result
    }

    /// Tells of a failure. Returns the status that says so, unless it does already.
    fn failed(&self, job: &Job, error: &WebhookError) -> Option<NotificationStatus> {
        let failure = format!("webhook {}: {error}", host_of(&job.target));
        let (namespace, name) = job.request.id();
        let involved = InvolvedObject {
            api_version: names::API_VERSION,
            kind: "MigrationRequest",
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: job.request.uid().to_owned(),
        };
        let event = Event::warning(MigrationEventReason::FailedNotification, failure.clone());
        self.recorder.record(&involved, event);
        let notified = job.status.notified.clone().unwrap_or_default();
        if notified.failure == failure {
            return None;
        }
        tracing::warn!(
            namespace,
            name,
            failure,
            "failed to notify of a migration; trying again"
        );
        Some(NotificationStatus {
            failure,
            ..notified
        })
    }

    /// Writes what is acknowledged, which nobody else writes. Returns whether it is written, or there is no request any more.
    async fn write(&self, request: &RequestObject, notified: &NotificationStatus) -> bool {
        let (namespace, name) = request.id();
        let path = format!("{}/status", request_path(namespace, name));
        let patch = json!([
            { "op": "test", "path": "/metadata/uid", "value": request.uid() },
            { "op": "add", "path": "/status/notified", "value": notified },
        ]);
        let executor = &self.executor;
        let call = calls::json_patch::<RequestObject>(&executor.client, &path, &patch);
        match executor.call(call).await {
            Ok(object) => {
                let status = object.status();
                let kept = status.and_then(|status| status.notified.as_ref());
                let is_kept = kept.is_some_and(|kept| progress(kept) == progress(notified));
                executor.show(|state| state.apply_request(object));
                if !is_kept {
                    tracing::warn!(
                        path,
                        "the CRD of MigrationRequests is of an earlier version"
                    );
                }
                is_kept
            }
            Err(error) => {
                executor.failed_request(&path, &error);
                error.is_failed_test() || error.code() == Some(404)
            }
        }
    }
}
