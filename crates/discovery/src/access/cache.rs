//! What the host has said, for a while: each question is asked once at a time, and answers outlast a host that is away.

use std::{hash::Hash, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::recent::Recent;

/// For how long a question is not asked again after it could not be answered.
const RETRY: Duration = Duration::from_secs(5);

/// The host can't be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host does not say who may ask for this: try again")]
pub(crate) struct HostAway;

/// For how long an answer is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    /// Without asking again.
    pub(super) fresh: Duration,
    /// If the host can't be asked.
    pub(super) stale: Duration,
}

/// An answer of the host.
pub(super) trait Answer: Clone {
    /// For how long it is used.
    fn lifetime(&self) -> Lifetime;
}

/// The answers to questions.
#[derive(Debug)]
pub(super) struct Cache<K, V>(Mutex<Recent<K, Arc<Slot<V>>>>);

/// One question.
#[derive(Debug)]
struct Slot<V> {
    known: Mutex<Known<V>>,
    /// Held by who asks.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Known<V> {
    answer: Option<(V, Instant)>,
    failed: Option<Instant>,
}

impl<K: Eq + Hash + Clone, V: Answer> Cache<K, V> {
    /// A cache of so many answers.
    pub(super) fn new(most: usize) -> Self {
        Self(Mutex::new(Recent::new(most)))
    }

    /// The answer to a question, which `ask` asks the host if it is not known.
    ///
    /// # Errors
    /// If the host can't be asked, and has not answered lately.
    pub(super) async fn answer(
        &self,
        question: &K,
        ask: impl AsyncFnOnce() -> Result<V, HostAway>,
    ) -> Result<V, HostAway> {
        let slot = self.0.lock().get_or_insert_with(question, Slot::new);
        if let Some(answer) = slot.known.lock().usable() {
            return answer;
        }
        let _asking = slot.asking.lock().await;
        // Who asked before may have got it.
        if let Some(answer) = slot.known.lock().usable() {
            return answer;
        }
        let answer = ask().await;
        let mut known = slot.known.lock();
        let Ok(answer) = answer else {
            known.failed = Some(Instant::now());
            return known.stale();
        };
        known.answer = Some((answer.clone(), Instant::now()));
        known.failed = None;
        Ok(answer)
    }
}

impl<V> Slot<V> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            known: Mutex::new(Known {
                answer: None,
                failed: None,
            }),
            asking: tokio::sync::Mutex::default(),
        })
    }
}

impl<V: Answer> Known<V> {
    /// What is answered without asking; none if the host has to be asked.
    fn usable(&self) -> Option<Result<V, HostAway>> {
        if let Some((answer, at)) = &self.answer
            && at.elapsed() < answer.lifetime().fresh
        {
            return Some(Ok(answer.clone()));
        }
        let has_just_failed = self.failed.is_some_and(|at| at.elapsed() < RETRY);
        has_just_failed.then(|| self.stale())
    }

    /// What is answered while the host is away.
    fn stale(&self) -> Result<V, HostAway> {
        let usable = self.answer.as_ref();
        let usable = usable.filter(|(answer, at)| at.elapsed() < answer.lifetime().stale);
        usable.map(|(answer, _)| answer.clone()).ok_or(HostAway)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;
    use tokio::time::advance;

    use super::*;

    const FRESH: Duration = Duration::from_secs(60);
    const STALE: Duration = Duration::from_secs(3600);

    /// Whether something is allowed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Says(bool);

    impl Answer for Says {
        fn lifetime(&self) -> Lifetime {
            Lifetime {
                fresh: FRESH,
                stale: if self.0 { STALE } else { Duration::ZERO },
            }
        }
    }

    /// What is answered, and how often the host was asked for it.
    struct Asked {
        cache: Cache<u8, Says>,
        count: Cell<u32>,
    }

    impl Asked {
        fn new() -> Self {
            Self {
                cache: Cache::new(10),
                count: Cell::new(0),
            }
        }

        async fn ask(&self, says: Result<Says, HostAway>) -> Result<Says, HostAway> {
            let ask = async || {
                self.count.set(self.count.get() + 1);
                tokio::time::sleep(Duration::from_secs(1)).await;
                says
            };
            self.cache.answer(&1, ask).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_once_at_a_time_and_again_when_its_answer_is_old() {
        let asked = Asked::new();
        let all = join_all((0..10).map(|_| asked.ask(Ok(Says(true))))).await;
        assert_eq!((all, asked.count.get()), (vec![Ok(Says(true)); 10], 1));
        advance(FRESH).await;
        assert_eq!(
            (asked.ask(Ok(Says(false))).await, asked.count.get()),
            (Ok(Says(false)), 2)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_outlasts_a_host_that_is_away_for_a_time() {
        let asked = Asked::new();
        asked.ask(Ok(Says(true))).await.unwrap();
        advance(FRESH).await;
        assert_eq!(
            (asked.ask(Err(HostAway)).await, asked.count.get()),
            (Ok(Says(true)), 2)
        );
        assert_eq!(
            (asked.ask(Ok(Says(false))).await, asked.count.get()),
            (Ok(Says(true)), 2),
            "it has just failed"
        );
        advance(RETRY).await;
        assert_eq!(
            (asked.ask(Err(HostAway)).await, asked.count.get()),
            (Ok(Says(true)), 3)
        );
        advance(STALE).await;
        assert_eq!(asked.ask(Err(HostAway)).await, Err(HostAway));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_and_a_refusal_are_not_known_while_the_host_is_away() {
        let asked = Asked::new();
        let all = join_all((0..10).map(|_| asked.ask(Err(HostAway)))).await;
        assert_eq!((all, asked.count.get()), (vec![Err(HostAway); 10], 1));
        advance(RETRY).await;
        assert_eq!(asked.ask(Ok(Says(false))).await, Ok(Says(false)));
        advance(FRESH).await;
        assert_eq!(asked.ask(Err(HostAway)).await, Err(HostAway));
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_while_it_asks_leaves_the_question_to_others() {
        let asked = Asked::new();
        let left = tokio::time::timeout(Duration::from_millis(1), asked.ask(Ok(Says(true)))).await;
        left.unwrap_err();
        assert_eq!(
            (asked.ask(Ok(Says(true))).await, asked.count.get()),
            (Ok(Says(true)), 2)
        );
    }
}
