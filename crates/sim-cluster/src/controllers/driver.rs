//! The task that runs all controllers of a cluster.
//!
//! changes -> index -> every controller's `observe`; then the controller whose key is due first works on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::{Context, StoppedKubelets};
use super::controller::Worker;
use super::deployment::Deployments;
use super::disruption::DisruptionBudgets;
use super::event_expiry::EventExpiry;
use super::garbage_collector::GarbageCollector;
use super::index::Index;
use super::kubelet::Kubelets;
use super::namespace::Namespaces;
use super::node::{NodeLifecycle, PodCollector};
use super::quota::Quotas;
use super::replicaset::ReplicaSets;
use super::scheduler::Scheduler;
use super::settings::Settings;
use crate::api::{Api, ChangeEvent, Changes};
use crate::object::name;
use crate::resources::kinds;
use crate::store::Change;

/// The steps in a row before other tasks run, even if there is more work.
const STEPS_IN_A_ROW: u32 = 32;

/// The running controllers of one cluster. Dropping this stops them.
#[derive(Debug)]
pub(crate) struct Controllers {
    api: Api,
    dead: StoppedKubelets,
    power: Arc<Power>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What was stopped or started since the driver's last step.
#[derive(Debug, Default)]
struct Power {
    /// Whether all controllers are stopped.
    off: AtomicBool,
    /// Whether those of the kube-controller-manager are stopped.
    manager_off: AtomicBool,
    /// Nodes whose kubelet was stopped or started.
    switched: parking_lot::Mutex<Vec<String>>,
    notify: Notify,
}

/// Starts all controllers on `api`. They load the existing objects, then follow the changes.
///
/// # Panics
/// Outside of a tokio runtime.
pub(crate) fn spawn(api: &Api, settings: Settings) -> Controllers {
    let (dead, power, stop) = (
        StoppedKubelets::default(),
        Arc::new(Power::default()),
        CancellationToken::new(),
    );
    let driver = Driver::new(api, settings, dead.clone(), Arc::clone(&power));
    let task = tokio::spawn(driver.run(stop.clone()));
    Controllers {
        api: api.clone(),
        dead,
        power,
        stop,
        task,
    }
}

impl Controllers {
    /// Injects a fault: stops the node's kubelet at once. The status of its pods no longer changes, and after
    /// [`Settings::node_grace`] the node becomes unreachable.
    pub(crate) fn fail_node(&self, node: &str) {
        self.switch(node, true);
    }

    /// Starts the node's kubelet again.
    pub(crate) fn recover_node(&self, node: &str) {
        self.switch(node, false);
    }

    /// Injects a fault: all controllers stop, and all nodes with what runs on them.
    pub(crate) fn cut_power(&self) {
        self.power.off.store(true, Ordering::Relaxed);
        for node in self.api.list(&kinds::NODES, None) {
            self.dead.cut_power(name(&node));
        }
        self.power.notify.notify_one();
    }

    /// Starts the controllers again; nodes start by [`recover_node`](Self::recover_node).
    pub(crate) fn restore_power(&self) {
        self.power.off.store(false, Ordering::Relaxed);
        self.power.notify.notify_one();
    }

    /// Injects a fault: stops the kube-controller-manager, or starts it again.
    pub(crate) fn set_manager_stopped(&self, stopped: bool) {
        self.power.manager_off.store(stopped, Ordering::Relaxed);
        self.power.notify.notify_one();
    }

    /// Stops the controllers and waits until they have stopped.
    pub(crate) async fn shutdown(mut self) {
        self.stop.cancel();
        // A panic in the driver is a bug in this crate: it is propagated.
        if let Err(error) = (&mut self.task).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    fn switch(&self, node: &str, dead: bool) {
        if self.dead.set(node, dead, self.api.clock().now()) {
            self.power.switched.lock().push(node.to_owned());
            self.power.notify.notify_one();
        }
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Driver {
    context: Context,
    changes: Changes,
    controllers: Vec<Box<dyn Worker>>,
    power: Arc<Power>,
}

impl Driver {
    fn new(api: &Api, settings: Settings, dead: StoppedKubelets, power: Arc<Power>) -> Self {
        let changes = api.changes();
        let context = Context::new(api, settings, dead);
        let mut driver = Self {
            controllers: controllers(&context),
            context,
            changes,
            power,
        };
        driver.load();
        driver
    }

    /// Loads all objects of the API into new controllers.
    fn load(&mut self) {
        self.context.index = Index::default();
        self.controllers = controllers(&self.context);
        let mut seen = std::collections::BTreeSet::new();
        let kinds = self.context.api.kinds();
        let present: Vec<Change> = kinds
            .iter()
            .filter(|kind| seen.insert(kind.storage.clone()))
            .flat_map(|kind| {
                let objects = self.context.api.list(kind, None);
                objects
                    .into_iter()
                    .map(|object| Change::found(kind, object))
            })
            .collect();
        // The index holds all objects before a controller sees the first: an owner that is listed later is not missing.
        for change in &present {
            self.context.index.apply(change);
        }
        for change in &present {
            self.tell(change);
        }
    }

    fn tell(&mut self, change: &Change) {
        for controller in &mut self.controllers {
            controller.observe(change, &self.context);
        }
    }

    fn take_in(&mut self, event: ChangeEvent) {
        match event {
            ChangeEvent::Change(change) => {
                self.context.index.apply(&change);
                self.tell(&change);
            }
            ChangeEvent::Resync => self.load(),
        }
    }

    /// Observes everything that happened since the last step.
    fn catch_up(&mut self) {
        while let Some(event) = self.changes.try_next() {
            self.take_in(event);
        }
        let switched = std::mem::take(&mut *self.power.switched.lock());
        for node in switched {
            for controller in &mut self.controllers {
                controller.power_changed(&node, &self.context);
            }
        }
    }

    /// Lets the controller that is due first work on one key; of two, the one listed first. Otherwise returns when the next
    /// is due.
    fn step(&mut self) -> Result<(), Option<Instant>> {
        let manager_off = self.power.manager_off.load(Ordering::Relaxed);
        let due = self.controllers.iter_mut().map(|controller| {
            let is_off = manager_off && controller.is_managed();
            if is_off { None } else { controller.due() }
        });
        let first = (due.enumerate())
            .filter_map(|(place, due)| Some((due?, place)))
            .min();
        match first {
            Some((due, place)) if due <= Instant::now() => {
                self.controllers[place].work(&mut self.context);
                Ok(())
            }
            later => Err(later.map(|(due, _)| due)),
        }
    }

    async fn run(mut self, stop: CancellationToken) {
        let mut steps = 0;
        while !stop.is_cancelled() {
            if self.power.off.load(Ordering::Relaxed) {
                self.wait_for_power(&stop).await;
                continue;
            }
            self.catch_up();
            match self.step() {
                Ok(()) => {
                    steps = (steps + 1) % STEPS_IN_A_ROW;
                    if steps == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Err(next) => self.wait(next, &stop).await,
            }
        }
    }

    /// Waits until the power is back; controllers that start again know only what the API server has stored.
    async fn wait_for_power(&mut self, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.power.notify.notified() => self.load(),
        }
    }

    async fn wait(&mut self, next: Option<Instant>, stop: &CancellationToken) {
        let timer = async {
            match next {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            event = self.changes.next() => event,
            () = self.power.notify.notified() => return,
            () = timer => return,
        };
        self.take_in(event);
    }
}

/// All controllers; of two that are due at the same time the first works first.
fn controllers(context: &Context) -> Vec<Box<dyn Worker>> {
    vec![
        Box::new(Namespaces::new(context)),
        Box::new(NodeLifecycle::new(context)),
        Box::new(Kubelets::new()),
        Box::new(GarbageCollector::new(context)),
        Box::new(Deployments::new(context)),
        Box::new(ReplicaSets::new(context)),
        Box::new(Scheduler::new(context)),
        Box::new(PodCollector::new(context)),
        Box::new(Quotas::new(context)),
        Box::new(DisruptionBudgets::new(context)),
        Box::new(EventExpiry::new(context)),
    ]
}
