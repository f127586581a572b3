//! Suspends a part of a process, as a scheduler or a debugger does.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
};

use parking_lot::Mutex;

/// Suspends a future: it is not polled. Clones suspend the same one.
#[derive(Clone, Default)]
pub struct Suspension(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_suspended: bool,
    waker: Option<Waker>,
}

impl Suspension {
    /// Runs `inner`, except while it is suspended.
    pub async fn around(self, inner: impl Future<Output = ()>) {
        let mut inner = std::pin::pin!(inner);
        poll_fn(|context| {
            let mut state = self.0.lock();
            if state.is_suspended {
                state.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            drop(state);
            inner.as_mut().poll(context)
        })
        .await;
    }

    /// Suspends it.
    pub fn suspend(&self) {
        self.0.lock().is_suspended = true;
    }

    /// Resumes it.
    pub fn resume(&self) {
        let mut state = self.0.lock();
        state.is_suspended = false;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}
