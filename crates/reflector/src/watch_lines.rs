//! Splits the chunks of a watch, which end anywhere, into lines.

use bytes::{Buf, Bytes, BytesMut};

/// A line of a watch, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line.
    Whole(Bytes),
    /// A line longer than the limit; it was discarded.
    TooLong,
}

/// Collects chunks into lines. Holds at most one line and one chunk.
#[derive(Debug)]
pub(crate) struct WatchLines {
    rest: BytesMut,
    /// `rest` contains no line end before this position.
    searched: usize,
    limit: usize,
    /// Whether the bytes up to the next line end belong to a line that is too long.
    skipping: bool,
}

impl WatchLines {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            rest: BytesMut::new(),
            searched: 0,
            limit,
            skipping: false,
        }
    }

    /// The bytes that it holds.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Takes the memory for a line of any length at once: a buffer that grows bit by bit takes up to twice as much.
    pub(crate) fn grow(&mut self) {
        self.rest.reserve(self.limit);
    }

    /// Gives back the memory of lines that were longer than what it holds.
    pub(crate) fn shrink(&mut self) {
        self.rest = BytesMut::from(&self.rest[..]);
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.rest.extend_from_slice(chunk);
    }

    /// The next line that is complete or known to be too long. Skips blank lines. Bytes after the last line end are
    /// not a line when the stream ends: the object would be incomplete.
    pub(crate) fn next(&mut self) -> Option<Line> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.rest[self.searched..]) else {
                self.searched = self.rest.len();
                if self.rest.len() > self.limit {
                    self.rest.clear();
                    self.searched = 0;
                    self.skipping = true;
                }
                return None;
            };
            let line = self.rest.split_to(self.searched + end).freeze();
            self.rest.advance(1);
            self.searched = 0;
            if std::mem::take(&mut self.skipping) || line.len() > self.limit {
                return Some(Line::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]], limit: usize) -> Vec<Line> {
        let mut lines = WatchLines::new(limit);
        let mut all = Vec::new();
        for chunk in chunks {
            lines.push(chunk);
            all.extend(std::iter::from_fn(|| lines.next()));
        }
        all
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn chunks_are_joined_and_split_at_line_ends() {
        assert_eq!(
            split(&[b"a", b"b\nc", b"\n\n \nd"], 10),
            [whole("ab"), whole("c")]
        );
    }

    #[test]
    fn a_line_over_the_limit_is_discarded_and_the_next_is_read() {
        assert_eq!(
            split(&[b"abcd", b"efgh", b"ij\nk\n"], 3),
            [Line::TooLong, whole("k")]
        );
        assert_eq!(split(&[b"abcd\nk\n"], 3), [Line::TooLong, whole("k")]);
        let mut lines = WatchLines::new(3);
        for _ in 0..1000 {
            lines.push(b"abcd");
            assert_eq!(lines.next(), None);
        }
        assert!(
            lines.rest.capacity() < 100,
            "an endless line must not use memory"
        );
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunk_boundaries(bytes in "[ab\n]{0,60}", cuts in prop::collection::vec(1..5usize, 60)) {
            let mut rest = bytes.as_bytes();
            let mut chunks = Vec::new();
            for cut in cuts {
                let (chunk, tail) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = tail;
            }
            prop_assert_eq!(split(&chunks, 4), split(&[bytes.as_bytes()], 4));
        }
    }
}
