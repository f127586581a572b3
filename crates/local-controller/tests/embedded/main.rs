//! The controller on an embedded cluster, on paused time but for HTTP: what users see of its pods, and that it writes nothing more than needed.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

mod copies;
mod disruption;
mod evictions;
mod faults;
mod http_webhook;
mod leave;
mod marks;
mod migrations;
mod native;
mod notifications;
mod ownership;
mod rack;
mod resizes;
mod restarts;
mod revisions;
mod scaling;
mod shutdown;
mod status;
mod test_webhook;
mod tracks;
mod updates;
mod world;
