//! Replicas that are fed by this one: what has changed since each of them was told.

use std::collections::BTreeMap;

use tokio::sync::watch;

use crate::changes::Changes;

/// Which replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReplicaId(u64);

/// The replicas.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    replicas: BTreeMap<ReplicaId, Replica>,
    /// How many there have been.
    count: u64,
}

#[derive(Debug)]
struct Replica {
    /// What it was not told. Has at most a name for each pod and set that exists, or has gone since.
    changes: Changes,
    signal: watch::Sender<()>,
}

impl Replicas {
    pub(crate) fn add(&mut self) -> (ReplicaId, watch::Receiver<()>) {
        self.count += 1;
        let (signal, changed) = watch::channel(());
        let changes = Changes::default();
        let replica = ReplicaId(self.count);
        self.replicas.insert(replica, Replica { changes, signal });
        (replica, changed)
    }

    pub(crate) fn remove(&mut self, replica: ReplicaId) {
        self.replicas.remove(&replica);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }

    /// Something has changed.
    pub(crate) fn add_changes(&mut self, changes: &Changes) {
        for replica in self.replicas.values_mut() {
            replica.changes.add(changes.clone());
            replica.signal.send_replace(());
        }
    }

    /// What has changed since the last call.
    pub(crate) fn take(&mut self, replica: ReplicaId) -> Changes {
        let replica = self.replicas.get_mut(&replica);
        let changes = replica.map(|replica| std::mem::take(&mut replica.changes));
        changes.unwrap_or_default()
    }
}
