//! Writes snapshots of what has changed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::directory::{SnapshotDirectory, SnapshotError};
use crate::{catalog::Catalog, kept::Mark, metrics::DiscoveryMetrics, state::State};

/// How often snapshots are written: a member that changes all the time has one write in this time.
const INTERVAL: Duration = Duration::from_secs(10);
/// How old the snapshot of what does not change may be: after a crash, its age is too high by that at most.
const REFRESH: SignedDuration = SignedDuration::from_mins(5);

/// Keeps snapshots of what `catalog` knows in `directory`, until `cancel`, and writes the last ones then.
///
/// A failure is logged and counted, and what failed is written again the next time.
pub async fn write_snapshots(
    directory: SnapshotDirectory,
    catalog: Arc<Catalog>,
    metrics: DiscoveryMetrics,
    cancel: CancellationToken,
) {
    let mut writer = Writer {
        directory,
        catalog,
        metrics,
        written: BTreeMap::new(),
    };
    loop {
        let pause = cancel.run_until_cancelled(tokio::time::sleep(INTERVAL));
        let is_end = pause.await.is_none();
        let refresh = if is_end {
            SignedDuration::ZERO
        } else {
            REFRESH
        };
        let write = move || {
            writer.write_due(refresh);
            writer
        };
        let wrote = tokio::task::spawn_blocking(write).await;
        writer = wrote.expect("writing snapshots does not panic");
        if is_end {
            return;
        }
    }
}

/// Whose snapshot it is: that of a member, or of the host.
type Of = Option<Arc<str>>;

struct Writer {
    directory: SnapshotDirectory,
    catalog: Arc<Catalog>,
    metrics: DiscoveryMetrics,
    /// What has been written since the start.
    written: BTreeMap<Of, Mark>,
}

impl Writer {
    /// Writes what has changed, or is older than `refresh`.
    fn write_due(&mut self, refresh: SignedDuration) {
        let (marks, _) = self.catalog.look(|state| marks(state, Timestamp::now()));
        let due = marks.into_iter();
        let due = due.filter(|(of, mark)| is_due(self.written.get(of), mark, refresh));
        let due: Vec<_> = due.map(|(of, _)| of).collect();
        if due.is_empty() {
            return;
        }
        let prepared = self.directory.prepare();
        if prepared.is_err() {
            self.metrics.count_snapshot(&prepared);
        }
        let failures: Vec<_> = match prepared {
            Ok(()) => due
                .into_iter()
                .filter_map(|of| self.write(of).err())
                .collect(),
            Err(error) => vec![error],
        };
        if let Some(error) = failures.first() {
            tracing::warn!(files = failures.len(), %error, "failed to write snapshots");
        }
    }

    fn write(&mut self, of: Of) -> Result<(), SnapshotError> {
        let written = self.try_to_write(&of);
        self.metrics.count_snapshot(&written);
        if let Some(mark) = written? {
            self.written.insert(of, mark);
        }
        Ok(())
    }

    /// Encodes and writes what is copied while watches wait. Returns its mark, if there is one now.
    fn try_to_write(&self, of: &Of) -> Result<Option<Mark>, SnapshotError> {
        let now = Timestamp::now();
        if let Some(member) = of {
            let (kept, version) = self.catalog.look(|state| state.keep_member(member, now));
            let Some(kept) = kept else { return Ok(None) };
            self.directory.write_member(&kept, version)?;
            return Ok(Some(kept.mark));
        }
        let (kept, version) = self.catalog.look(|state| state.keep_host(now));
        let Some(kept) = kept else { return Ok(None) };
        self.directory.write_host(&kept, version)?;
        Ok(Some(kept.mark))
    }
}

/// The marks of what can be written.
fn marks(state: &State, now: Timestamp) -> Vec<(Of, Mark)> {
    let host = state.host_mark(now).map(|mark| (None, mark));
    let members = state.members().filter_map(|member| {
        let mark = State::member_mark(member, now)?;
        Some((Some(Arc::clone(&member.name)), mark))
    });
    host.into_iter().chain(members).collect()
}

/// Whether what is known now has to be written, after that with the mark `written`.
fn is_due(written: Option<&Mark>, now: &Mark, refresh: SignedDuration) -> bool {
    written.is_none_or(|written| {
        let age = now.current_at.duration_since(written.current_at);
        written.revision != now.revision || (age >= refresh && !age.is_zero())
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::first(None, (0, 0), 300, true)]
    #[case::the_same(Some((4, 0)), (4, 0), 300, false)]
    #[case::changed(Some((4, 0)), (5, 0), 300, true)]
    #[case::current_for_long(Some((4, 0)), (4, 299), 300, false)]
    #[case::current_for_longer(Some((4, 0)), (4, 300), 300, true)]
    #[case::at_the_end(Some((4, 0)), (4, 1), 0, true)]
    #[case::at_the_end_stale(Some((4, 0)), (4, 0), 0, false)]
    #[case::the_clock_went_back(Some((4, 300)), (4, 0), 300, false)]
    fn d3_what_changes_is_written_and_what_does_not_rarely(
        #[case] written: Option<(u64, i64)>,
        #[case] now: (u64, i64),
        #[case] refresh: i64,
        #[case] expected: bool,
    ) {
        let mark = |(revision, second)| Mark {
            revision,
            current_at: Timestamp::from_second(second).unwrap(),
        };
        let refresh = SignedDuration::from_secs(refresh);
        let found = is_due(written.map(mark).as_ref(), &mark(now), refresh);
        assert_eq!(found, expected);
    }
}
