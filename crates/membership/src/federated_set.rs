//! Requests for the federated sets of a host, FederatedReplicaSets and FederatedDeployments alike.
//!
//! They are not decoded with the request: one that this version of fedrs can't read must not hide the others.

use fedrs_api::{FederatedDeployment, FederatedReplicaSet, ObjectKey, RolloutStatus, SetKind};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error,
    cluster_client::{ClusterClient, RequestError},
    object::none_if_not_found,
    read_set::FederatedSet,
    set_ref::{SetRef, kinds, lower},
};

/// Objects of one page of a list.
const PAGE_SIZE: u32 = 500;

/// An object of the host that is a federated set.
#[derive(Clone, Debug)]
pub(crate) struct SetObject {
    pub(crate) kind: SetKind,
    pub(crate) object: DynamicObject,
}

impl SetObject {
    /// The key of the set.
    pub(crate) fn key(&self) -> ObjectKey {
        let namespace = self.object.namespace().unwrap_or_default();
        ObjectKey::of_kind(self.kind, namespace, self.object.name_any())
    }

    /// The federation that handles the set.
    pub(crate) fn federation(&self) -> &str {
        let federation = &self.object.data["spec"]["federation"];
        federation.as_str().unwrap_or_default()
    }

    /// Reads the set.
    pub(crate) fn read(mut self) -> Result<FederatedSet, Error> {
        let set = self.key();
        remove_unreadable_record(&mut self.object.data);
        let read = match self.kind {
            SetKind::FederatedReplicaSet => self.object.try_parse().map(FederatedSet::of_frs),
            SetKind::FederatedDeployment => {
                self.object.try_parse().map(FederatedSet::of_deployment)
            }
        };
        read.map_err(|error| Error::SetUnreadable {
            set,
            reason: error.to_string(),
        })
    }
}

/// Removes from a set what is lent to members if it can't be read: it is the controller's own, and another version may write
/// it otherwise.
pub(crate) fn remove_unreadable_record(object: &mut Value) {
    if let Some(rollout) = object.pointer_mut("/status/rollout")
        && RolloutStatus::deserialize(&*rollout).is_err()
        && let Some(rollout) = rollout.as_object_mut()
    {
        rollout.remove("record");
    }
}

/// The sets of this kind in `namespace`, or in all namespaces.
pub(crate) fn api(
    host: &ClusterClient,
    kind: SetKind,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = resource(kind);
    match namespace {
        Some(namespace) => Api::namespaced_with(host.client(), namespace, &resource),
        None => Api::all_with(host.client(), &resource),
    }
}

/// All sets of a kind in `namespace`, or in all namespaces. Fails with the status 404 if the CRD is not installed.
pub(crate) async fn list_kind(
    host: &ClusterClient,
    kind: SetKind,
    namespace: Option<&str>,
) -> Result<Vec<SetObject>, RequestError> {
    let sets = api(host, kind, namespace);
    let mut found = Vec::new();
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let operation = format!("list {}", plural(kind));
        let list = host.call(operation, sets.list(&page)).await?;
        found.extend((list.items.into_iter()).map(|object| SetObject { kind, object }));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// All sets of both kinds in all namespaces, also if the CRD of one kind is not installed; `None` if neither is.
pub(crate) async fn list(host: &ClusterClient) -> Result<Option<Vec<SetObject>>, RequestError> {
    let mut all = None;
    for kind in SetKind::ALL {
        if let Some(sets) = none_if_not_found(list_kind(host, kind, None).await)? {
            all.get_or_insert_with(Vec::new).extend(sets);
        }
    }
    Ok(all)
}

/// The set of a kind. Fails with the status 404 if the CRD is not installed.
pub(crate) async fn get(
    host: &ClusterClient,
    kind: SetKind,
    namespace: &str,
    name: &str,
) -> Result<Option<SetObject>, RequestError> {
    let operation = format!("get {} {namespace}/{name}", lower(kind));
    let sets = api(host, kind, Some(namespace));
    let found = host.call(operation, sets.get_opt(name)).await?;
    Ok(found.map(|object| SetObject { kind, object }))
}

/// The set that the user names. Without a kind, exactly one set must have the name.
pub(crate) async fn find(host: &ClusterClient, set: &SetRef) -> Result<SetObject, Error> {
    let SetRef {
        namespace, name, ..
    } = set;
    let mut found = Vec::new();
    let mut failed = None;
    for kind in kinds(set.kind) {
        match get(host, *kind, namespace, name).await {
            Ok(object) => found.extend(object),
            // The other kind may have it: one CRD may not be installed, and a user may have permissions for one kind only.
            Err(error) if matches!(error.code(), Some(403 | 404)) => {
                failed.get_or_insert((error, *kind));
            }
            Err(error) => return Err(error.into()),
        }
    }
    match (found.len(), failed) {
        (1, _) => Ok(found.remove(0)),
        (0, None) => Err(Error::SetNotFound(set.clone())),
        (0, Some((error, kind))) => Err(unreadable(error, || {
            format!(
                "get {}.fedrs.dev in the namespace {namespace}",
                plural(kind)
            )
        })),
        _ => Err(Error::AmbiguousSet {
            namespace: namespace.clone(),
            name: name.clone(),
        }),
    }
}

/// Why sets can't be read: the CRDs are not installed, or the user lacks the permission to `need`.
pub(crate) fn unreadable(error: RequestError, need: impl FnOnce() -> String) -> Error {
    match error.code() {
        Some(404) => Error::CrdsMissing,
        Some(403) => Error::MayNotRead {
            error,
            need: need(),
        },
        _ => Error::Request(error),
    }
}

/// `federateddeployments`.
pub(crate) fn plural(kind: SetKind) -> String {
    resource(kind).plural
}

fn resource(kind: SetKind) -> ApiResource {
    match kind {
        SetKind::FederatedReplicaSet => ApiResource::erase::<FederatedReplicaSet>(&()),
        SetKind::FederatedDeployment => ApiResource::erase::<FederatedDeployment>(&()),
    }
}
