//! Follows MigrationRequests, as `kubectl get --watch` does.

use std::collections::HashMap;

use fedrs_api::MigrationRequest;
use kube::{Resource, ResourceExt};
use reflector::{Collection, Error, EventHandler, InvalidObject, Reflector};

use crate::cluster_client::ClusterClient;

/// What a watch shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A request is new, or has changed.
    Request(Box<MigrationRequest>),
    /// The API server does not answer, or rejects the watch. It is asked again.
    Failure(String),
}

/// Passes to `show` what changes in the requests of a namespace, or of all, after those that are `known`. Does not end.
pub async fn watch(
    cluster: &ClusterClient,
    namespace: Option<&str>,
    known: &[MigrationRequest],
    show: impl FnMut(Change) + Send,
) {
    let path = MigrationRequest::url_path(&(), namespace);
    let versions = known.iter().map(|request| (key(request), version(request)));
    let handler = Handler {
        versions: versions.collect(),
        failure: None,
        show,
    };
    let collection = Collection::all(path);
    Reflector::new(cluster.client(), collection)
        .run(handler)
        .await;
}

/// A request by its namespace and name.
type Key = (Option<String>, String);

fn key(request: &MigrationRequest) -> Key {
    (request.namespace(), request.name_any())
}

fn version(request: &MigrationRequest) -> String {
    let version = request.metadata.resource_version.clone();
    version.unwrap_or_default()
}

struct Handler<F> {
    /// The version of each request that was shown.
    versions: HashMap<Key, String>,
    /// The failure that was shown last, until the API server answers.
    failure: Option<String>,
    show: F,
}

impl<F: FnMut(Change) + Send> EventHandler<MigrationRequest> for Handler<F> {
    fn on_init(&mut self) {}

    fn on_apply(&mut self, request: MigrationRequest) {
        let version = version(&request);
        let before = self.versions.insert(key(&request), version.clone());
        // Another list shows what was shown before.
        if before != Some(version) {
            (self.show)(Change::Request(Box::new(request)));
        }
    }

    fn on_delete(&mut self, request: MigrationRequest) {
        self.versions.remove(&key(&request));
    }

    fn on_init_done(&mut self, _resource_version: &str) {}

    fn on_error(&mut self, error: &Error) {
        let failure = error.to_string();
        if self.failure.as_ref() != Some(&failure) {
            (self.show)(Change::Failure(failure.clone()));
            self.failure = Some(failure);
        }
    }

    fn on_activity(&mut self) {
        self.failure = None;
    }

    fn on_invalid(&mut self, object: &InvalidObject) {
        (self.show)(Change::Failure(object.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str, version: &str) -> MigrationRequest {
        let mut request = MigrationRequest::new(name, fedrs_api::MigrationRequestSpec::default());
        request.metadata.resource_version = Some(version.to_owned());
        request
    }

    #[test]
    fn m1_each_change_of_a_request_is_shown_once() {
        let mut shown = Vec::new();
        let mut handler = Handler {
            versions: HashMap::from([((None, "old".to_owned()), "1".to_owned())]),
            failure: None,
            show: |change| match change {
                Change::Request(request) => {
                    shown.push(format!("{} {}", request.name_any(), version(&request)));
                }
                Change::Failure(failure) => shown.push(failure),
            },
        };
        handler.on_apply(request("old", "1"));
        handler.on_apply(request("new", "2"));
        handler.on_apply(request("old", "3"));
        // Another list.
        handler.on_apply(request("old", "3"));
        handler.on_delete(request("old", "4"));
        handler.on_apply(request("old", "5"));
        assert_eq!(shown, ["new 2", "old 3", "old 5"]);
    }
}
