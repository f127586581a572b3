//! How many bytes of the responses of one API server may be in memory at a time, over all its lists, watches and calls.
//!
//! A response is in memory as a whole, and of a watch the line that has not ended. A small one always may be. A larger one
//! reserves its limit at once before it is read on: none holds a part of the budget while it waits for more, so that they
//! cannot wait for each other.

use std::{sync::Arc, time::Duration};

use http::Response;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::error::ErrorKind;

/// What each response may take without a reservation: most objects are smaller.
const SMALL: usize = 32 << 10;
/// How long a response waits until others are read.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The bytes of larger responses that may be in memory at a time. A response that has it as an
/// [extension](http::Extensions) is read within it, and any other one without a limit on all of them together.
#[derive(Clone, Debug)]
pub struct ByteBudget {
    kib: Arc<Semaphore>,
    bytes: usize,
}

impl ByteBudget {
    /// A budget of `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            kib: Arc::new(Semaphore::new(bytes >> 10)),
            bytes,
        }
    }
}

/// What one response takes of the budget.
pub(crate) struct Reservation {
    budget: Option<ByteBudget>,
    is_large: bool,
    held: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// None yet, of the budget that `response` has.
    pub(crate) fn of<B>(response: &Response<B>) -> Self {
        Self {
            budget: response.extensions().get().cloned(),
            is_large: false,
            held: None,
        }
    }

    /// Waits until `bytes` of the response may be in memory, which has `limit` at most. Returns whether they make it large.
    pub(crate) async fn reserve(&mut self, bytes: usize, limit: usize) -> Result<bool, ErrorKind> {
        if self.is_large || bytes <= SMALL {
            return Ok(false);
        }
        if let Some(budget) = &self.budget {
            let kib = limit.min(budget.bytes) >> 10;
            let kib = u32::try_from(kib).unwrap_or(u32::MAX);
            let held = Arc::clone(&budget.kib).acquire_many_owned(kib);
            let Ok(held) = timeout(MAX_WAIT, held).await else {
                let bytes = budget.bytes;
                return Err(ErrorKind::TooManyBytes { bytes });
            };
            self.held = held.ok();
        }
        self.is_large = true;
        Ok(true)
    }

    /// Ends the reservation if no more than `bytes` are in memory by now. Returns whether it did.
    pub(crate) fn release(&mut self, bytes: usize) -> bool {
        let has_shrunk = self.is_large && bytes <= SMALL;
        if has_shrunk {
            self.is_large = false;
            self.held = None;
        }
        has_shrunk
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::join_all};
    use tokio::time::Instant;

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn reservation(budget: &ByteBudget) -> Reservation {
        let mut response = Response::new(());
        response.extensions_mut().insert(budget.clone());
        Reservation::of(&response)
    }

    #[tokio::test(start_paused = true)]
    async fn s5_large_responses_wait_for_each_other_and_small_ones_do_not() {
        let budget = ByteBudget::new(2 * LIMIT);
        let mut all: Vec<_> = std::iter::repeat_with(|| reservation(&budget))
            .take(3)
            .collect();
        for response in &mut all {
            response.reserve(SMALL, LIMIT).await.unwrap();
        }
        let [first, second, third] = &mut all[..] else {
            panic!("three");
        };
        assert!(first.reserve(SMALL + 1, LIMIT).await.unwrap());
        assert!(!first.reserve(LIMIT, LIMIT).await.unwrap());
        second.reserve(LIMIT, LIMIT).await.unwrap();
        assert!(third.reserve(LIMIT, LIMIT).now_or_never().is_none());
        assert!(!first.release(SMALL + 1));
        assert!(first.release(SMALL));
        third.reserve(LIMIT, LIMIT).await.unwrap();
        let error = first.reserve(LIMIT, LIMIT).await.unwrap_err();
        let expected = "the responses that are being read have more than 2097152 bytes together";
        assert_eq!(error.to_string(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn s5_responses_that_grow_at_the_same_time_do_not_wait_for_ever() {
        let budget = ByteBudget::new(LIMIT + (LIMIT >> 1));
        let started = Instant::now();
        let responses = (0..10).map(async |_| {
            let mut response = reservation(&budget);
            for bytes in (0..=LIMIT).step_by(SMALL) {
                response.reserve(bytes, LIMIT).await.unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        join_all(responses).await;
        assert!(started.elapsed() < MAX_WAIT);
        let mut larger_than_the_budget = reservation(&budget);
        let done = larger_than_the_budget.reserve(LIMIT, 100 * LIMIT).await;
        assert!(done.is_ok());
    }
}
