//! Whether the other end of a connection takes what is sent to it.
//!
//! ```text
//! TcpStream --> Monitored: writes that can't proceed ----.
//!                                                        +--> Progress --> the connection is cut off
//! response body --> Watched: frames that are not taken --'
//! ```
//!
//! A write to the socket can't proceed while the client reads nothing at all. With HTTP/2, a client may read, and take nothing of
//! one response: the server then asks the body for no more.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};

/// What a connection waits for its client to take.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Since when a write to the socket can't proceed.
    write: Option<Instant>,
    /// Since when the last frame of each response is being sent.
    frames: HashMap<u64, Instant>,
    /// The number of the latest response.
    last: u64,
}

impl Progress {
    /// Whether the client has taken nothing of something for this long.
    pub(super) fn is_stuck(&self, now: Instant, patience: Duration) -> bool {
        let waiting = self.0.lock();
        let mut since = waiting.frames.values().chain(&waiting.write);
        since.any(|since| now.saturating_duration_since(*since) >= patience)
    }

    fn wrote<T>(&self, poll: &Poll<T>) {
        let mut waiting = self.0.lock();
        waiting.write = match poll {
            Poll::Ready(_) => None,
            Poll::Pending => waiting.write.or_else(|| Some(Instant::now())),
        };
    }
}

/// A socket that reports whether writes proceed.
#[derive(Debug)]
pub(super) struct Monitored {
    stream: TcpStream,
    progress: Arc<Progress>,
}

impl Monitored {
    pub(super) fn new(stream: TcpStream, progress: Arc<Progress>) -> Self {
        Self { stream, progress }
    }
}

impl AsyncRead for Monitored {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Monitored {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.progress.wrote(&poll);
        poll
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.progress.wrote(&poll);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The body of a response that reports whether the client takes its frames: the server asks for the next one only then.
#[derive(Debug)]
pub(super) struct Watched {
    body: Body,
    number: u64,
    progress: Arc<Progress>,
}

impl Watched {
    pub(super) fn new(body: Body, progress: Arc<Progress>) -> Self {
        let mut waiting = progress.0.lock();
        waiting.last += 1;
        let number = waiting.last;
        drop(waiting);
        Self {
            body,
            number,
            progress,
        }
    }
}

impl HttpBody for Watched {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let poll = Pin::new(&mut self.body).poll_frame(context);
        let mut waiting = self.progress.0.lock();
        if let Poll::Ready(Some(_)) = poll {
            waiting.frames.insert(self.number, Instant::now());
        } else {
            waiting.frames.remove(&self.number);
        }
        drop(waiting);
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.progress.0.lock().frames.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_is_not_taken_is_noticed_until_the_next_one_is_asked_for() {
        let progress = Arc::new(Progress::default());
        let mut body = Watched::new(Body::from("text"), Arc::clone(&progress));
        let is_stuck = || progress.is_stuck(Instant::now(), PATIENCE);
        tokio::time::advance(2 * PATIENCE).await;
        assert!(!is_stuck(), "nothing has been sent");
        poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert!(!is_stuck());
        tokio::time::advance(PATIENCE).await;
        assert!(is_stuck());
        poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert!(!is_stuck(), "it was taken");
        poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        drop(body);
        tokio::time::advance(2 * PATIENCE).await;
        assert!(!is_stuck(), "the response has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_can_not_proceed_is_noticed_until_it_does() {
        let progress = Progress::default();
        progress.wrote(&Poll::<()>::Pending);
        tokio::time::advance(PATIENCE / 2).await;
        progress.wrote(&Poll::<()>::Pending);
        tokio::time::advance(PATIENCE / 2).await;
        assert!(progress.is_stuck(Instant::now(), PATIENCE));
        progress.wrote(&Poll::Ready(()));
        assert!(!progress.is_stuck(Instant::now(), PATIENCE));
    }
}
