//! Panics of a run: of any task, also where nobody waits for it.

use std::{cell::RefCell, sync::Once};

thread_local! {
    /// The panics of the run on this thread; `None` outside of a run.
    static RUN: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Records the panics of this thread from now on, and prints none.
pub(super) fn record() {
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_recorded = RUN.with_borrow_mut(|run| match run {
                Some(panics) => {
                    panics.push(panic.to_string());
                    true
                }
                None => false,
            });
            if !is_recorded {
                print(panic);
            }
        }));
    });
    RUN.set(Some(Vec::new()));
}

/// The first panic since [`record`], which ends.
pub(super) fn take() -> Option<String> {
    RUN.take()?.into_iter().next()
}
