//! A kind: its names, its subresources and, for a custom kind, the fields of its definition.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::schema::{CustomSchema, TypeInfo};

/// A kind in one version; cheap to clone. Two are equal if group, version and plural are.
#[derive(Clone, Debug)]
pub struct Kind(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    info: KindInfo,
    /// Looked up on first use: most kinds are never used.
    builtin_type: OnceLock<Option<TypeInfo>>,
}

/// The description of a kind.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version: `v1`.
    pub version: String,
    /// `ReplicaSet`.
    pub kind: String,
    /// `ReplicaSetList`.
    pub list_kind: String,
    /// `replicasets`.
    pub plural: String,
    /// `replicaset`.
    pub singular: String,
    /// `rs`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// `status`, `scale`, `binding`, ... in the order of discovery.
    pub(crate) subresources: Vec<Subresource>,
    /// The collection of its objects, which all versions of a kind share.
    pub(crate) storage: Arc<str>,
    /// For custom kinds: the version in the definition.
    pub(crate) custom: Option<Arc<CustomVersion>>,
}

/// A subresource: its name and the kind of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subresource {
    /// `status`.
    pub name: String,
    /// The kind of its body.
    pub kind: String,
    /// The group and version of that kind; `None` means those of the parent.
    pub group_version: Option<(String, String)>,
}

/// A version of a custom kind, from its definition.
#[derive(Clone, Debug)]
pub(crate) struct CustomVersion {
    /// `spec.versions[i]` of the definition.
    pub version: Value,
    /// `spec.versions[i].schema.openAPIV3Schema`, or a schema that preserves all fields.
    pub schema: CustomSchema,
    /// The definition's name, `<plural>.<group>`.
    pub definition: String,
    /// The paths of `subresources.scale`.
    pub scale: Option<ScalePaths>,
}

/// The paths of the fields that `scale` of a custom kind shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// Of `spec.replicas`.
    pub spec_replicas: String,
    /// Of `status.replicas`.
    pub status_replicas: String,
    /// Of `status.selector`, a string.
    pub label_selector: Option<String>,
}

impl Kind {
    /// Makes a kind from its description.
    pub fn new(info: KindInfo) -> Self {
        Self(Arc::new(Inner {
            info,
            builtin_type: OnceLock::new(),
        }))
    }

    /// A kind that is only the body of a subresource (`Scale`, `TokenRequest`), for messages.
    pub(crate) fn of_body(group: &str, kind: &str) -> Self {
        Self::new(KindInfo {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            list_kind: String::new(),
            plural: kind.to_owned(),
            singular: String::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            subresources: Vec::new(),
            storage: Arc::from(kind),
            custom: None,
        })
    }

    /// The key of an object in etcd: `/registry/leases/default/a`.
    pub(crate) fn storage_key(&self, namespace: &str, name: &str) -> String {
        let directory = match &*self.storage {
            "nodes" => "minions".to_owned(),
            "services" => "services/specs".to_owned(),
            "customresourcedefinitions.apiextensions.k8s.io" => {
                format!("{}/{}", self.group, self.plural)
            }
            _ if self.is_custom() => format!("{}/{}", self.group, self.plural),
            _ => self.plural.clone(),
        };
        let place = if self.namespaced {
            format!("{namespace}/{name}")
        } else {
            name.to_owned()
        };
        format!("/registry/{directory}/{place}")
    }

    /// `apps/v1`, `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `replicasets.apps`, `pods`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether the kind has a subresource of that name.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|each| each.name == name)
    }

    /// Whether its objects are answered and not stored: `SelfSubjectAccessReview` and others.
    pub fn is_review(&self) -> bool {
        matches!(
            self.group.as_str(),
            "authorization.k8s.io" | "authentication.k8s.io"
        )
    }

    /// The type of a built-in kind, if its schema is known.
    pub(crate) fn builtin_type(&self) -> Option<&TypeInfo> {
        let look_up = || TypeInfo::builtin(&self.group, &self.version, &self.kind);
        self.0.builtin_type.get_or_init(look_up).as_ref()
    }

    /// Whether a `CustomResourceDefinition` defines the kind.
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }
}

impl Deref for Kind {
    type Target = KindInfo;

    fn deref(&self) -> &KindInfo {
        &self.0.info
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.plural == other.plural
                && self.group == other.group
                && self.version == other.version)
    }
}

impl Eq for Kind {}
