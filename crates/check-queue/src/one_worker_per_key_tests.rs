//! F25 as a property, over random additions, durations of work and cancelled waits, on paused time: a key has at most one
//! worker, no key is lost, and a key that is added while a worker processes it is processed again.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{DelayingQueue, DelayingQueueMetrics, WorkQueue, WorkQueueMetrics};

const KEYS: usize = 4;

#[derive(Clone, Debug)]
struct Addition {
    pause_ms: u64,
    key: usize,
    delay_ms: u64,
}

fn addition() -> impl Strategy<Value = Addition> {
    (0..40u64, 0..KEYS, 0..60u64).prop_map(|(pause_ms, key, delay_ms)| Addition {
        pause_ms,
        key,
        delay_ms,
    })
}

#[derive(Clone, Debug, Default)]
struct Seen {
    busy: bool,
    /// When the newest processing of the key began.
    started: Option<Instant>,
    /// Since when the key is to be processed.
    must_start_after: Option<Instant>,
}

type Log = Arc<parking_lot::Mutex<Vec<Seen>>>;

async fn worker(work: WorkQueue<usize>, log: Log, wait_ms: u64, work_ms: u64) {
    loop {
        // Waits that are cancelled again and again must not lose a notification.
        let Ok(next) = timeout(Duration::from_millis(wait_ms), work.get()).await else {
            continue;
        };
        let Some(key) = next else { return };
        {
            let seen = &mut log.lock()[*key];
            assert!(!seen.busy, "two workers on {}", *key);
            seen.busy = true;
            seen.started = Some(Instant::now());
            seen.must_start_after = None;
        }
        sleep(Duration::from_millis(work_ms)).await;
        log.lock()[*key].busy = false;
    }
}

fn add_to(work: &WorkQueue<usize>) -> impl FnMut(usize) + Send + 'static {
    let work = work.clone();
    move |key| work.add(key)
}

async fn run(additions: Vec<Addition>, workers: Vec<(u64, u64)>) -> Vec<Seen> {
    let to_check = DelayingQueue::new(DelayingQueueMetrics::default());
    let work = WorkQueue::new(WorkQueueMetrics::default());
    let cancel = CancellationToken::new();
    let log: Log = Arc::new(parking_lot::Mutex::new(vec![Seen::default(); KEYS]));
    let driver = tokio::spawn(to_check.clone().run(add_to(&work), cancel.clone()));
    let workers: Vec<_> = workers
        .into_iter()
        .map(|(wait_ms, work_ms)| tokio::spawn(worker(work.clone(), log.clone(), wait_ms, work_ms)))
        .collect();
    for Addition {
        pause_ms,
        key,
        delay_ms,
    } in additions
    {
        sleep(Duration::from_millis(pause_ms)).await;
        let now = Instant::now();
        log.lock()[key].must_start_after.get_or_insert(now);
        to_check.add_after(key, Duration::from_millis(delay_ms));
    }
    // Longer than any delay and all the work together: 40 times 50 ms by one worker.
    sleep(Duration::from_secs(3)).await;
    assert!(
        to_check.len() == 0 && work.is_idle(),
        "left over: {to_check:?} {work:?}"
    );
    cancel.cancel();
    work.shut_down();
    driver.await.expect("driver");
    for worker in workers {
        worker.await.expect("worker");
    }
    Arc::into_inner(log)
        .expect("all workers ended")
        .into_inner()
}

proptest! {
    #[test]
    fn f25_one_worker_per_key_and_no_lost_key(
        additions in prop::collection::vec(addition(), 1..40),
        workers in prop::collection::vec((1..30u64, 0..50u64), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("runtime");
        let added: Vec<_> = additions.iter().map(|addition| addition.key).collect();
        for (key, seen) in runtime.block_on(run(additions, workers)).into_iter().enumerate() {
            prop_assert_eq!(seen.started.is_some(), added.contains(&key), "key {} is lost or was never added", key);
            prop_assert!(seen.must_start_after.is_none(), "an addition of {} was never processed", key);
        }
    }
}
