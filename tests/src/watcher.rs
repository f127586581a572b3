//! An independent look at what runs: whether it ever dipped (F20).

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use sim_cluster::{Api, kinds};
use tokio_util::{sync::CancellationToken, sync::DropGuard};

use crate::Fleet;

/// How often it looks, in simulated time.
const PERIOD: Duration = Duration::from_millis(5);

/// Watches the available replicas of one set over all members.
pub struct ReadyWatcher {
    seen: Arc<Mutex<Seen>>,
    _stop: DropGuard,
}

#[derive(Debug, Default)]
struct Seen {
    /// The fewest since the last reset, and the most.
    lowest: Option<u64>,
    highest: u64,
}

impl ReadyWatcher {
    /// Watches from now on.
    pub fn start(fleet: &Fleet, name: &str) -> Self {
        let names = fleet.member_names();
        let apis: Vec<Api> = names
            .iter()
            .map(|it| fleet.member(it).api().clone())
            .collect();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let cancel = CancellationToken::new();
        let (shared, name) = (Arc::clone(&seen), name.to_owned());
        tokio::spawn(cancel.clone().run_until_cancelled_owned(async move {
            loop {
                let available = apis.iter().map(|api| available(api, &name)).sum();
                shared.lock().look(available);
                tokio::time::sleep(PERIOD).await;
            }
        }));
        Self {
            seen,
            _stop: cancel.drop_guard(),
        }
    }

    /// The fewest that were available at once since it started.
    pub fn lowest(&self) -> u64 {
        self.seen.lock().lowest.unwrap_or(0)
    }

    /// The most that were available at once since it started.
    pub fn highest(&self) -> u64 {
        self.seen.lock().highest
    }
}

impl Seen {
    fn look(&mut self, available: u64) {
        self.lowest = Some(
            self.lowest
                .map_or(available, |lowest| lowest.min(available)),
        );
        self.highest = self.highest.max(available);
    }
}

fn available(api: &Api, name: &str) -> u64 {
    let pods = api.list(&kinds::PODS, Some("default"));
    let ready = pods.iter().filter(|pod| {
        let metadata = &pod["metadata"];
        let owned = metadata["ownerReferences"][0]["name"] == name;
        let conditions = pod["status"]["conditions"].as_array();
        let ready = conditions.is_some_and(|it| {
            it.iter()
                .any(|it| it["type"] == "Ready" && it["status"] == "True")
        });
        owned && ready && metadata.get("deletionTimestamp").is_none()
    });
    ready.count() as u64
}
