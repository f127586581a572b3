//! The lines of a watch, from chunks cut anywhere.

use bytes::{Buf, Bytes, BytesMut};

/// A line of a watch, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line.
    Whole(Bytes),
    /// One that went on beyond the limit; it was thrown away.
    TooLong,
}

/// Collects chunks into lines. Holds at most one line and one chunk.
#[derive(Debug)]
pub(crate) struct Lines {
    rest: BytesMut,
    /// Up to here, `rest` was searched for an end.
    searched: usize,
    limit: usize,
    /// Whether what comes up to the next end belongs to a line that was too long.
    skipping: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            rest: BytesMut::new(),
            searched: 0,
            limit,
            skipping: false,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.rest.extend_from_slice(chunk);
    }

    /// The next line that is complete, or known to be too long. Blank lines are passed over. What follows the last
    /// end when the stream ends is not a line: its object would be cut.
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
        let mut lines = Lines::new(limit);
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
    fn lines_end_where_they_end() {
        assert_eq!(
            split(&[b"a", b"b\nc", b"\n\n \nd"], 10),
            [whole("ab"), whole("c")]
        );
    }

    #[test]
    fn a_line_without_end_is_thrown_away_and_the_next_is_read() {
        assert_eq!(
            split(&[b"abcd", b"efgh", b"ij\nk\n"], 3),
            [Line::TooLong, whole("k")]
        );
        assert_eq!(split(&[b"abcd\nk\n"], 3), [Line::TooLong, whole("k")]);
        let mut lines = Lines::new(3);
        for _ in 0..1000 {
            lines.push(b"abcd");
            assert_eq!(lines.next(), None);
        }
        assert!(
            lines.rest.capacity() < 100,
            "an endless line must not pile up"
        );
    }

    proptest! {
        #[test]
        fn where_chunks_are_cut_does_not_matter(bytes in "[ab\n]{0,60}", cuts in prop::collection::vec(1..5usize, 60)) {
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
