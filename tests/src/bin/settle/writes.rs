//! Counts the writes of the controller at its clients: every request that is not a GET.
//!
//! controller -> client -> recorder (counts) -> transport -> cluster

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use http::{Method, Request};
use kube::client::Body;
use parking_lot::Mutex;
use tower::util::MapRequestLayer;

/// The writes to all clusters. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct WriteLog(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    /// The number of each kind, `cluster METHOD resource`.
    by_kind: BTreeMap<String, u64>,
    last: Option<Instant>,
}

impl WriteLog {
    /// A layer for the client of `cluster`.
    pub(super) fn recorder(
        &self,
        cluster: &str,
    ) -> MapRequestLayer<impl FnMut(Request<Body>) -> Request<Body> + Clone + Send + 'static> {
        let (log, cluster) = (self.clone(), cluster.to_owned());
        MapRequestLayer::new(move |request: Request<Body>| {
            log.record(&cluster, request.method(), request.uri().path());
            request
        })
    }

    /// The number of writes since the last call, by `cluster METHOD resource`.
    pub(super) fn take(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.0.lock().by_kind)
    }

    /// The time of the last write.
    pub(super) fn last_write(&self) -> Option<Instant> {
        self.0.lock().last
    }

    fn record(&self, cluster: &str, method: &Method, path: &str) {
        if matches!(*method, Method::GET | Method::HEAD) {
            return;
        }
        let kind = format!("{cluster} {method} {}", resource(path));
        let mut entries = self.0.lock();
        *entries.by_kind.entry(kind).or_default() += 1;
        entries.last = Some(Instant::now());
    }
}

/// The resource of a path, with its subresource: `replicasets`, `federatedreplicasets/status`.
fn resource(path: &str) -> String {
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let version = if parts.first() == Some(&"api") { 2 } else { 3 };
    parts.drain(..version.min(parts.len()));
    if parts.len() > 2 && parts[0] == "namespaces" {
        parts.drain(..2);
    }
    match parts.as_slice() {
        [plural, _, subresource, ..] => format!("{plural}/{subresource}"),
        [plural, ..] => (*plural).to_owned(),
        [] => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_are_counted() {
        let log = WriteLog::default();
        let set = "/apis/fedrs.dev/v1alpha1/namespaces/default/federatedreplicasets/web";
        for (method, path) in [
            (Method::GET, set.to_owned()),
            (Method::PATCH, set.to_owned()),
            (Method::PATCH, format!("{set}/status")),
            (Method::POST, "/api/v1/namespaces".to_owned()),
            (Method::POST, "/api/v1/namespaces/default/events".to_owned()),
        ] {
            log.record("host", &method, &path);
        }
        let kinds: Vec<String> = log.take().into_keys().collect();
        let expected = [
            "host PATCH federatedreplicasets",
            "host PATCH federatedreplicasets/status",
            "host POST events",
            "host POST namespaces",
        ];
        assert_eq!(kinds, expected);
        assert!(log.take().is_empty());
    }
}
