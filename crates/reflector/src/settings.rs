//! How a collection is listed and watched, and what a server may send.

use std::time::Duration;

/// How a collection is listed and watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorSettings {
    /// Objects per page. Default 500, as client-go.
    pub page_size: u32,
    /// Time within which a page is complete. Default 30 s.
    pub page_timeout: Duration,
    /// Time within which the server answers a watch request with response headers, and before it one for a list of a single
    /// object. Default 10 s.
    pub watch_open_timeout: Duration,
    /// Time after which the server ends a watch (`timeoutSeconds`), less up to a tenth. Default 200 s, as some load
    /// balancers drop idle connections after 240 s.
    pub watch_timeout: Duration,
    /// Time after which a silent watch is reopened. Default 90 s: API servers send bookmarks 60 to 62 s apart.
    pub max_silence: Duration,
    /// Time after which the server ends a reopened watch: soon, as its end is the answer. Default 5 s.
    pub confirm_timeout: Duration,
    /// A watch that ends sooner is counted and delays the next one, even if it ends cleanly. Default 5 s.
    pub min_watch_duration: Duration,
    /// The pause after the first failure; each further failure doubles it. Default 500 ms.
    pub initial_backoff: Duration,
    /// The longest pause after failures. Default 30 s.
    pub max_backoff: Duration,
    /// The longest pause after short watches that ended cleanly. Default 5 s: the server reports no problem, and events
    /// in the pause arrive late.
    pub max_short_watch_backoff: Duration,
    /// Whether a list follows a watch that broke, was silent or could not be opened, instead of the next watch. Default
    /// `false`, as a list of many objects is expensive. A server that was restored from a backup is noticed without it, unless
    /// it has given as many new versions since as it has lost.
    pub relist_after_break: bool,
    /// Time after which a list follows a watch that broke, ended early or could not be opened, less up to a tenth: what such a
    /// server hides is known by then. Default 30 min, as a list of many objects is expensive.
    pub relist_within: Duration,
    /// How much a server may send.
    pub limits: Limits,
}

impl Default for ReflectorSettings {
    fn default() -> Self {
        Self {
            page_size: 500,
            page_timeout: Duration::from_secs(30),
            watch_open_timeout: Duration::from_secs(10),
            watch_timeout: Duration::from_secs(200),
            max_silence: Duration::from_secs(90),
            confirm_timeout: Duration::from_secs(5),
            min_watch_duration: Duration::from_secs(5),
            initial_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(30),
            max_short_watch_backoff: Duration::from_secs(5),
            relist_after_break: false,
            relist_within: Duration::from_secs(30 * 60),
            limits: Limits::default(),
        }
    }
}

/// How many bytes a server may send, by what they are. At most one page, or one watch line and one chunk of the
/// response, is in memory at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One object as JSON; a larger one is skipped and reported as [invalid](crate::InvalidObject). Default 4 MiB: etcd
    /// stores requests of up to 1.5 MiB, and JSON takes about twice the bytes of the stored protobuf.
    pub object_bytes: usize,
    /// The body of one page of a list. Of a larger one half as many objects are requested; a page of one object that is
    /// still larger fails the list. Default 8 MiB: 500 objects of 16 KiB each.
    pub page_bytes: usize,
    /// Pages of a list; one with more fails. Default 1000: half a million objects.
    pub pages: u32,
    /// One line of a watch; a longer one is skipped and reported as [invalid](crate::InvalidObject). Default 4 KiB more
    /// than an object, for the envelope of the event.
    pub watch_line_bytes: usize,
    /// The body of a response that is an error; a larger one is not read. Default 1 MiB: a `Status` may quote a whole
    /// object.
    pub error_body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let object_bytes = 4 << 20;
        Self {
            object_bytes,
            page_bytes: 8 << 20,
            pages: 1000,
            watch_line_bytes: object_bytes + (4 << 10),
            error_body_bytes: 1 << 20,
        }
    }
}
