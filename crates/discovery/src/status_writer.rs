//! Writes the statuses of EndpointSets: one of several replicas of the service does.

use std::{sync::Arc, time::Duration};

use controller_base::calls::{self, CallError};
use fedrs_api::{EndpointSet, ValidEndpointSet};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::Client;
use serde::de::IgnoredAny;
use tokio_util::sync::CancellationToken;

use crate::{catalog::Catalog, set::SetKey};

/// The name of the Lease of who writes.
pub const LEASE: &str = "fedrs-discovery";
/// Who reports events about it.
pub const COMPONENT: &str = "fedrs-discovery";

/// How often statuses are written: a set that changes all the time has one write in this time.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long nothing is written after a failure: the host may be away.
const RETRY: Duration = Duration::from_secs(10);
/// Sets whose statuses are written at the same time.
const AT_ONCE: usize = 8;
/// How long the host may take for a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes the status of each EndpointSet of `catalog` with `host` when it is another one, until `cancel`.
pub async fn write_statuses(host: &Client, catalog: &Arc<Catalog>, cancel: &CancellationToken) {
    let write = async {
        catalog.begun().await;
        catalog.begin_reports();
        loop {
            let unreported = stream::iter(catalog.take_unreported());
            let written = unreported.map(|key| write_status(host, catalog, key));
            let failures = written
                .buffer_unordered(AT_ONCE)
                .filter_map(async |error| error);
            let failures: Vec<_> = failures.collect().await;
            if let Some(error) = failures.first() {
                tracing::warn!(sets = failures.len(), %error, "failed to write statuses");
            }
            let has_failed = !failures.is_empty();
            tokio::time::sleep(if has_failed { RETRY } else { INTERVAL }).await;
        }
    };
    cancel.run_until_cancelled(write).await;
}

/// Writes the status of a set, or leaves it for the next time. Returns what failed, unless another writer was faster.
async fn write_status(host: &Client, catalog: &Catalog, key: SetKey) -> Option<CallError> {
    let error = try_to_write(host, catalog, &key).await.err()?;
    // It is gone.
    if error.code() == Some(404) {
        return None;
    }
    catalog.report_again(key);
    (!error.is_failed_test()).then_some(error)
}

async fn try_to_write(host: &Client, catalog: &Catalog, key: &SetKey) -> Result<(), CallError> {
    let SetKey { namespace, name } = key;
    let path = format!("/apis/fedrs.dev/v1alpha1/namespaces/{namespace}/endpointsets/{name}");
    let object: EndpointSet = calls::within(CALL_TIMEOUT, calls::get(host, &path)).await?;
    let Some((report, version)) = catalog.report(key) else {
        return Ok(());
    };
    // The watch is behind: it brings this spec, and with it another look.
    if ValidEndpointSet::check(&object.spec).map(Arc::new) != report.set {
        return Ok(());
    }
    let (metadata, previous) = (object.metadata, object.status);
    let known = previous.clone().unwrap_or_default();
    let status = report.status((version, metadata.generation), &known, Timestamp::now());
    if previous.as_ref() == Some(&status) {
        return Ok(());
    }
    let seen = (
        metadata.uid.as_deref(),
        metadata.resource_version.as_deref(),
    );
    let call = calls::put_status::<IgnoredAny>(host, &path, seen, &status);
    calls::within(CALL_TIMEOUT, call).await.map(|_| ())
}
