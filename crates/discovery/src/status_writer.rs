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
/// Sets whose statuses are written at the same time.
const AT_ONCE: usize = 8;
/// How long the host may take for a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes the status of each EndpointSet of `catalog` with `host` when it is another one, until `cancel`.
pub async fn write_statuses(host: &Client, catalog: &Arc<Catalog>, cancel: &CancellationToken) {
    let write = async {
        let mut changes = catalog.other_changes();
        while catalog.ready().is_err() && changes.changed().await.is_ok() {}
        catalog.begin_reports();
        loop {
            stream::iter(catalog.take_unreported())
                .for_each_concurrent(AT_ONCE, |key| write_status(host, catalog, key))
                .await;
            tokio::time::sleep(INTERVAL).await;
        }
    };
    cancel.run_until_cancelled(write).await;
}

/// Writes the status of a set, or tries again later.
async fn write_status(host: &Client, catalog: &Catalog, key: SetKey) {
    match try_to_write(host, catalog, &key).await {
        Ok(()) => {}
        // It is gone.
        Err(error) if error.code() == Some(404) => {}
        Err(error) => {
            if !error.is_failed_test() {
                tracing::warn!(set = %key, %error, "failed to write the status");
            }
            catalog.report_again(key);
        }
    }
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
