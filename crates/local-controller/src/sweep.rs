//! What no set looks after: MigrationRequests that ended long ago, or whose pods are not there, and pods with the finalizer of shutdowns
//! whose set is gone.

use std::{sync::Arc, time::Duration};

use controller_base::{calls, clock::Clock, watchdog::Watched};
use fedrs_api::MigrationPhase;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    config::MigrationConfig, execute::Executor, migration_object::RequestObject,
    migrations::request_path,
};

/// The time between two looks: nothing waits for it but the end of a request that never concerned anybody, and of pods whose set is gone.
const PERIOD: Duration = Duration::from_secs(10);
/// How long a pod may be unknown before its request ends: its watch may be behind that of requests.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);

/// Looks again and again. Its future ends when it is dropped.
pub(crate) async fn sweep(
    executor: &Executor,
    clock: &Clock,
    config: &MigrationConfig,
    watched: &Watched,
) {
    loop {
        sleep(PERIOD).await;
        let _busy = watched.begin("migration requests");
        once(executor, clock.now(), config, watched).await;
        let abandoned = (executor.store).update(|state| state.abandoned());
        for pod in abandoned {
            executor.remove_finalizer(&pod).await;
            watched.beat();
        }
    }
}

async fn once(executor: &Executor, now: Timestamp, config: &MigrationConfig, watched: &Watched) {
    let requests = executor.store.update(|state| state.requests());
    let statuses = requests.iter().filter_map(|request| request.status());
    executor.metrics.show_migrations(statuses, now);
    let is_old =
        |since: Timestamp, age: Duration| since.checked_add(age).is_ok_and(|until| until <= now);
    let ended = |request: &Arc<RequestObject>| request.ended().is_some();
    let (ended, open): (Vec<_>, Vec<_>) = requests.into_iter().partition(ended);
    for request in ended {
        let end = request.ended();
        if end.is_some_and(|end| is_old(end, config.history)) {
            delete(executor, &request).await;
            watched.beat();
        }
    }
    let open = open.into_iter();
    let open: Vec<_> = open
        .filter(|request| is_old(request.created(), UNKNOWN_FOR))
        .collect();
    if open.is_empty() {
        return;
    }
    for request in (executor.store).update(|state| state.without_set(&open)) {
        cancel(executor, &request, now).await;
        watched.beat();
    }
}

async fn delete(executor: &Executor, request: &RequestObject) {
    let (namespace, name) = request.id();
    let path = request_path(namespace, name);
    let options =
        json!({ "preconditions": { "uid": request.uid(), "resourceVersion": request.version() } });
    let deleted = calls::delete(&executor.client, &path, &options);
    match executor.call(deleted).await {
        Ok(_) => _ = executor.show(|state| state.remove_request(namespace, name)),
        Err(error) => _ = executor.failed_request(&path, &error),
    }
}

async fn cancel(executor: &Executor, request: &RequestObject, now: Timestamp) {
    let mut status = request.status().cloned().unwrap_or_default();
    status.message = format!(
        "pod {} is gone, or does not belong to a LocalReplicaSet: only those are migrated",
        request.pod_name()
    );
    status.reason = String::new();
    status.until = None;
    status.reach(MigrationPhase::Cancelled, now);
    executor.write_request_status(request, &status).await;
}
