//! Confirms the nodes of a member that has returned: their pods count as available once the node's kubelet has renewed its
//! Lease.
//!
//! ```text
//! returned --> list Leases of nodes, again and again, until each ready node has renewed its own --> nothing
//! ```
//!
//! After a loss of power the API server answers first, and all pods say that they are ready until the node controller has
//! missed their nodes. The times in two Leases of one node are compared, or two heartbeats in its status if it has no Lease,
//! and never with a clock.

use std::{collections::HashMap, time::Duration};

use reflector::{
    ClientReceiver, Collection, Error, ReflectorSettings,
    partial::{name, null_as_default},
};
use serde::Deserialize;
use tokio::time::timeout;
use tracing::{debug, info};

use crate::{
    cluster_info::text_hash,
    handlers::{Notifier, Rejections},
    nodes::MAX_NODES,
};

/// How the nodes of a returned member are confirmed.
#[derive(Clone, Debug)]
pub struct NodeLeaseSettings {
    /// The time between two lists of the Leases. Default 5 s: kubelets renew theirs every 10 s.
    pub period: Duration,
    /// The time within which a page must be complete. Default 30 s.
    pub timeout: Duration,
}

impl Default for NodeLeaseSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
        }
    }
}

/// The fields of a Lease that matter.
#[derive(Debug, Deserialize)]
pub(crate) struct LeaseObject {
    metadata: LeaseMetadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: LeaseSpec,
}

#[derive(Debug, Deserialize)]
struct LeaseMetadata {
    #[serde(deserialize_with = "name")]
    name: Box<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    #[serde(default, deserialize_with = "text_hash")]
    renew_time: Option<u64>,
}

/// Confirms the nodes each time the member returns, without an end.
pub(crate) async fn run(clients: ClientReceiver, settings: NodeLeaseSettings, notifier: &Notifier) {
    let returned = &notifier.store.returned;
    let mut rejections = Rejections::default();
    let mut is_confirming = false;
    loop {
        if !is_confirming {
            returned.notified().await;
        }
        is_confirming = match list(&clients, &settings).await {
            Ok(leases) => {
                rejections.end();
                !observe(notifier, &leases)
            }
            Err(error) if rejections.counts(&error, &notifier.store) => {
                info!(%error, "the Leases of the nodes can't be read: the nodes are not confirmed");
                notifier.change_nodes(|nodes, _| nodes.end_confirmation());
                false
            }
            Err(error) => {
                debug!(%error, "failed to list the Leases of the nodes");
                true
            }
        };
        if is_confirming {
            // If the member returns again, the next list is the first one of a new confirmation.
            let _again = timeout(settings.period, returned.notified()).await;
        }
    }
}

/// Takes in one list. Returns whether all nodes are confirmed.
fn observe(notifier: &Notifier, leases: &HashMap<Box<str>, u64>) -> bool {
    let mut is_complete = false;
    notifier.change_nodes(|nodes, now| {
        let changed;
        (changed, is_complete) = nodes.observe_leases(leases, now);
        changed
    });
    if is_complete {
        notifier.change_nodes(|nodes, _| nodes.end_confirmation());
    }
    is_complete
}

/// Hashes of the times of all Leases, by the names of the nodes.
async fn list(
    clients: &ClientReceiver,
    settings: &NodeLeaseSettings,
) -> Result<HashMap<Box<str>, u64>, Error> {
    let settings = ReflectorSettings {
        page_timeout: settings.timeout,
        ..ReflectorSettings::default()
    };
    let leases = Collection::all("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases");
    let mut times = HashMap::new();
    let take = |lease: Result<LeaseObject, _>| {
        if let Ok(lease) = lease
            && times.len() < MAX_NODES
        {
            let time = lease.spec.renew_time.unwrap_or_default();
            times.insert(lease.metadata.name, time);
        }
    };
    reflector::list(clients.clone(), leases, &settings, take).await?;
    Ok(times)
}
