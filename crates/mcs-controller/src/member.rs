//! One member: its watches, its queue, and the workers that write to it. A member that does not answer delays no other.

use std::sync::Arc;

use controller_base::watchdog::Watchdog;
use kube::Client;
use reflector::{Collection, Reflector};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    export::{Export, Service},
    handler::Handler,
    import::Import,
    shared::{Queue, Shared},
    slice::Slice,
    watches::{Namespace, WatchedKind},
    worker::Worker,
};

/// Services of one member that are looked at at the same time.
const WORKERS: usize = 4;

/// Where the tasks of a member run.
#[derive(Clone)]
pub(crate) struct Tasks {
    pub(crate) tracker: TaskTracker,
    pub(crate) watchdog: Watchdog,
    pub(crate) cancel: CancellationToken,
    pub(crate) seed: u64,
}

/// Watches a member with `client`, and writes to it, until the tasks are cancelled.
pub(crate) fn start(shared: &Arc<Shared>, name: &Arc<str>, client: &Client, tasks: &Tasks) {
    shared.state.begin_member(name);
    shared.show(name);
    let queue = Queue::new();
    shared.add_queue(name, &queue);
    watch_kind::<Namespace>(shared, name, client, tasks);
    watch_kind::<Export>(shared, name, client, tasks);
    watch_kind::<Service>(shared, name, client, tasks);
    watch_kind::<Import>(shared, name, client, tasks);
    watch_kind::<Slice>(shared, name, client, tasks);
    for number in 0..WORKERS {
        let worker = Worker {
            shared: Arc::clone(shared),
            member: Arc::clone(name),
            client: client.clone(),
            queue: queue.clone(),
        };
        let watched = tasks.watchdog.watch(format!("worker {number} of {name}"));
        let cancel = tasks.cancel.clone();
        let work = async move { cancel.run_until_cancelled(worker.run(watched)).await };
        tasks.tracker.spawn(work);
    }
    tasks.tracker.spawn(queue.run(tasks.cancel.clone()));
}

fn watch_kind<T: WatchedKind>(
    shared: &Arc<Shared>,
    name: &Arc<str>,
    client: &Client,
    tasks: &Tasks,
) {
    let handler = Handler::<T>::new(shared, name);
    let reflector = Reflector::new(client.clone(), Collection::all(T::PATH))
        .seed(tasks.seed ^ xxh3_64(format!("{name}{}", T::PATH).as_bytes()));
    let cancel = tasks.cancel.clone();
    let watch = async move { cancel.run_until_cancelled(reflector.run(handler)).await };
    tasks.tracker.spawn(watch);
}
