//! Names of the API, and those by which the controller knows its own objects.

/// The version of the API: sigs.k8s.io/mcs-api v0.5.2 serves it beside `v1beta1`.
pub(crate) const API_VERSION: &str = "multicluster.x-k8s.io/v1alpha1";
/// The API group.
pub(crate) const GROUP: &str = "multicluster.x-k8s.io";

/// On an imported EndpointSlice: the name of its ServiceImport.
pub(crate) const SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";
/// On an imported EndpointSlice: the member whose endpoints it has.
pub(crate) const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// On a member's own EndpointSlice: the name of its Service.
pub(crate) const LOCAL_SERVICE_NAME: &str = "kubernetes.io/service-name";
/// On an EndpointSlice: who manages it.
pub(crate) const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// On a ServiceImport: who manages it.
pub(crate) const IMPORT_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of both: only objects with it are ever changed.
pub(crate) const MANAGER: &str = "mcs-controller.fedrs.dev";
/// On a ServiceImport: the keys of the labels and annotations that exports gave it. Others are not touched.
pub(crate) const EXPORTED_KEYS: &str = "mcs-controller.fedrs.dev/exported-keys";

/// Collections of all namespaces.
pub(crate) const EXPORTS: &str = "/apis/multicluster.x-k8s.io/v1alpha1/serviceexports";
pub(crate) const IMPORTS: &str = "/apis/multicluster.x-k8s.io/v1alpha1/serviceimports";
pub(crate) const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
pub(crate) const SERVICES: &str = "/api/v1/services";
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";

/// The path of a collection's objects in a namespace.
pub(crate) fn in_namespace(collection: &str, namespace: &str) -> String {
    let (api, resource) = collection
        .rsplit_once('/')
        .expect("a collection has a path");
    format!("{api}/namespaces/{namespace}/{resource}")
}

/// Whether the controller has to do with objects of this namespace: it writes nothing into Kubernetes' own.
pub(crate) fn is_served(namespace: &str) -> bool {
    !namespace.starts_with(fedrs_api::names::KUBERNETES_NAMESPACES)
}
