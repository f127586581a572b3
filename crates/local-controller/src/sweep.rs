//! What no set looks after: MigrationRequests that ended long ago, and pods with the finalizer of shutdowns whose set is gone.

use std::time::Duration;

use controller_base::{calls, clock::Clock, watchdog::Watched};
use fedrs_api::ValidMigrationPolicy;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    config::MigrationConfig, execute::Executor, migration_object::RequestObject,
    migrations::request_path,
};

/// The time between two looks: nothing waits for it but pods whose set is gone.
const PERIOD: Duration = Duration::from_secs(10);

/// Looks again and again. Its future ends when it is dropped.
pub(crate) async fn sweep(
    executor: &Executor,
    clock: &Clock,
    config: &MigrationConfig,
    watched: &Watched,
) {
    let default_policy = config.default_policy();
    loop {
        sleep(PERIOD).await;
        let _busy = watched.begin("migration requests");
        let of = (config, default_policy.as_deref());
        once(executor, clock.now(), of, watched).await;
        let abandoned = (executor.store).update(|state| state.abandoned());
        for pod in abandoned {
            executor.remove_finalizer(&pod).await;
            watched.beat();
        }
    }
}

async fn once(
    executor: &Executor,
    now: Timestamp,
    (config, default_policy): (&MigrationConfig, Option<&ValidMigrationPolicy>),
    watched: &Watched,
) {
    let requests = executor.store.update(|state| state.requests());
    let statuses = requests.iter().filter_map(|request| request.status());
    executor.metrics.show_migrations(statuses, now);
    for request in requests {
        let Some(ended) = request.ended() else {
            continue;
        };
        let kept = config
            .history
            .max(counts_for(executor, &request, default_policy));
        let is_old = ended.checked_add(kept).is_ok_and(|until| until <= now);
        if is_old && !executor.store.update(|state| state.is_withheld(&request)) {
            delete(executor, &request).await;
            watched.beat();
        }
    }
}

/// How long the next migration of a pod of the same ReplicaSet follows from this one (M14). Those of LocalReplicaSets are in their status.
fn counts_for(
    executor: &Executor,
    request: &RequestObject,
    default_policy: Option<&ValidMigrationPolicy>,
) -> Duration {
    if request.workload().is_none() {
        return Duration::ZERO;
    }
    let own = (executor.store).update(|state| state.native_policy(request));
    let policy = own.as_deref().or(default_policy);
    policy.map_or(Duration::ZERO, |policy| {
        if request.is_compaction() {
            policy.min_between.max(policy.min_between_compactions)
        } else {
            policy.min_between
        }
    })
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
