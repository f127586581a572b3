//! List types, map types and merge keys, which the Go types specify and k8s-openapi omits.
//!
//! The definitions get them as the `x-kubernetes-*` extensions that the API server publishes. Strategic merge patch uses the
//! `patch-*` extensions, server-side apply the `list-*` and `map-type` ones. Lists that are not in the table are atomic.

use serde_json::{Value, json};

/// The identity of the items of a list.
struct ListRule {
    /// Last part of the definition's name after the API group's prefix, such as `core.v1.PodSpec`.
    definition: &'static str,
    field: &'static str,
    /// Server-side apply: the keys of a list of type `map`; empty for `set`.
    keys: &'static [&'static str],
    /// Strategic merge patch: the merge key; empty for none.
    merge_key: &'static str,
    /// Strategic merge patch: `merge` or `merge,retainKeys`; empty for replace.
    strategy: &'static str,
}

const fn map(
    definition: &'static str,
    field: &'static str,
    keys: &'static [&'static str],
    merge_key: &'static str,
) -> ListRule {
    ListRule {
        definition,
        field,
        keys,
        merge_key,
        strategy: "merge",
    }
}

const fn keep(
    definition: &'static str,
    field: &'static str,
    keys: &'static [&'static str],
    merge_key: &'static str,
) -> ListRule {
    ListRule {
        definition,
        field,
        keys,
        merge_key,
        strategy: "merge,retainKeys",
    }
}

/// A list of type `map` for server-side apply that a strategic merge patch replaces.
const fn apply_only(
    definition: &'static str,
    field: &'static str,
    keys: &'static [&'static str],
) -> ListRule {
    ListRule {
        definition,
        field,
        keys,
        merge_key: "",
        strategy: "",
    }
}

const fn set(definition: &'static str, field: &'static str) -> ListRule {
    ListRule {
        definition,
        field,
        keys: &[],
        merge_key: "",
        strategy: "merge",
    }
}

const TYPE: &[&str] = &["type"];
const NAME: &[&str] = &["name"];

const LISTS: &[ListRule] = &[
    map("core.v1.PodSpec", "containers", NAME, "name"),
    map("core.v1.PodSpec", "initContainers", NAME, "name"),
    map("core.v1.PodSpec", "ephemeralContainers", NAME, "name"),
    keep("core.v1.PodSpec", "volumes", NAME, "name"),
    keep("core.v1.PodSpec", "resourceClaims", NAME, "name"),
    map("core.v1.PodSpec", "imagePullSecrets", NAME, "name"),
    map("core.v1.PodSpec", "hostAliases", &["ip"], "ip"),
    map("core.v1.PodSpec", "schedulingGates", NAME, "name"),
    map(
        "core.v1.PodSpec",
        "topologySpreadConstraints",
        &["topologyKey", "whenUnsatisfiable"],
        "topologyKey",
    ),
    map("core.v1.PodStatus", "conditions", TYPE, "type"),
    map("core.v1.PodStatus", "podIPs", &["ip"], "ip"),
    keep("core.v1.PodStatus", "resourceClaimStatuses", NAME, "name"),
    map("core.v1.Container", "env", NAME, "name"),
    map(
        "core.v1.Container",
        "ports",
        &["containerPort", "protocol"],
        "containerPort",
    ),
    map(
        "core.v1.Container",
        "volumeMounts",
        &["mountPath"],
        "mountPath",
    ),
    map(
        "core.v1.Container",
        "volumeDevices",
        &["devicePath"],
        "devicePath",
    ),
    map("core.v1.EphemeralContainer", "env", NAME, "name"),
    map(
        "core.v1.EphemeralContainer",
        "ports",
        &["containerPort", "protocol"],
        "containerPort",
    ),
    map(
        "core.v1.EphemeralContainer",
        "volumeMounts",
        &["mountPath"],
        "mountPath",
    ),
    map(
        "core.v1.EphemeralContainer",
        "volumeDevices",
        &["devicePath"],
        "devicePath",
    ),
    apply_only("core.v1.ResourceRequirements", "claims", NAME),
    set("core.v1.NodeSpec", "podCIDRs"),
    map("core.v1.NodeStatus", "addresses", TYPE, "type"),
    map("core.v1.NodeStatus", "conditions", TYPE, "type"),
    map("core.v1.NamespaceStatus", "conditions", TYPE, "type"),
    map(
        "core.v1.PersistentVolumeClaimStatus",
        "conditions",
        TYPE,
        "type",
    ),
    map(
        "core.v1.ServiceSpec",
        "ports",
        &["port", "protocol"],
        "port",
    ),
    map("core.v1.ServiceStatus", "conditions", TYPE, "type"),
    map("core.v1.ServiceAccount", "secrets", NAME, "name"),
    map("apps.v1.DeploymentStatus", "conditions", TYPE, "type"),
    map("apps.v1.ReplicaSetStatus", "conditions", TYPE, "type"),
    apply_only(
        "autoscaling.v2.HorizontalPodAutoscalerStatus",
        "conditions",
        TYPE,
    ),
    map(
        "policy.v1.PodDisruptionBudgetStatus",
        "conditions",
        TYPE,
        "type",
    ),
    apply_only(
        "apiextensions.v1.CustomResourceDefinitionStatus",
        "conditions",
        TYPE,
    ),
    ListRule {
        definition: "apiextensions.v1.JSONSchemaProps",
        field: "x-kubernetes-validations",
        keys: &["rule"],
        merge_key: "rule",
        strategy: "merge",
    },
    set("meta.v1.ObjectMeta", "finalizers"),
    map("meta.v1.ObjectMeta", "ownerReferences", &["uid"], "uid"),
];

/// Objects that are atomic for server-side apply.
const ATOMIC_MAPS: &[&str] = &[
    "autoscaling.v1.CrossVersionObjectReference",
    "core.v1.ConfigMapKeySelector",
    "core.v1.FileKeySelector",
    "core.v1.LocalObjectReference",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "core.v1.ObjectFieldSelector",
    "core.v1.ObjectReference",
    "core.v1.ResourceFieldSelector",
    "core.v1.ScopeSelector",
    "core.v1.ScopedResourceSelectorRequirement",
    "core.v1.SecretKeySelector",
    "core.v1.SecretReference",
    "core.v1.TypedLocalObjectReference",
    "core.v1.EndpointAddress",
    "core.v1.EndpointPort",
    "discovery.v1.EndpointPort",
    "rbac.v1.RoleRef",
    "rbac.v1.Subject",
    "meta.v1.LabelSelector",
    "meta.v1.OwnerReference",
];

/// Fields with maps that are atomic for server-side apply.
const ATOMIC_MAP_FIELDS: &[(&str, &str)] = &[
    ("core.v1.PodSpec", "nodeSelector"),
    ("core.v1.ServiceSpec", "selector"),
];

/// Fields with a strategy that are not lists.
const RETAIN_KEYS_FIELDS: &[(&str, &str)] = &[("apps.v1.DeploymentSpec", "strategy")];

/// Defaults of fields that are list keys.
const KEY_DEFAULTS: &[(&str, &str, &str)] = &[
    ("core.v1.ContainerPort", "protocol", "TCP"),
    ("core.v1.ServicePort", "protocol", "TCP"),
];

/// Adds the extensions to the definition called `name`.
pub(super) fn annotate(name: &str, definition: &mut Value) {
    let is = |suffix: &str| {
        name.strip_suffix(suffix)
            .is_some_and(|front| front.ends_with('.'))
    };
    if ATOMIC_MAPS.iter().any(|suffix| is(suffix)) {
        definition["x-kubernetes-map-type"] = "atomic".into();
    }
    let Some(Value::Object(properties)) = definition.get_mut("properties") else {
        return;
    };
    for (field, property) in properties.iter_mut() {
        if property["type"] == "array" {
            match LISTS
                .iter()
                .find(|rule| rule.field == field && is(rule.definition))
            {
                Some(rule) => rule.write(property),
                None => property["x-kubernetes-list-type"] = "atomic".into(),
            }
        }
        if ATOMIC_MAP_FIELDS
            .iter()
            .any(|(definition, name)| name == field && is(definition))
        {
            property["x-kubernetes-map-type"] = "atomic".into();
        }
        if let Some((_, _, default)) = KEY_DEFAULTS
            .iter()
            .find(|(definition, name, _)| name == field && is(definition))
        {
            property["default"] = (*default).into();
        }
        if RETAIN_KEYS_FIELDS
            .iter()
            .any(|(definition, name)| name == field && is(definition))
        {
            property["x-kubernetes-patch-strategy"] = "retainKeys".into();
        }
    }
}

impl ListRule {
    fn write(&self, property: &mut Value) {
        if self.keys.is_empty() {
            property["x-kubernetes-list-type"] = "set".into();
        } else {
            property["x-kubernetes-list-type"] = "map".into();
            property["x-kubernetes-list-map-keys"] = json!(self.keys);
        }
        if !self.merge_key.is_empty() {
            property["x-kubernetes-patch-merge-key"] = self.merge_key.into();
        }
        if !self.strategy.is_empty() {
            property["x-kubernetes-patch-strategy"] = self.strategy.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::definitions::definitions;
    use super::*;

    #[test]
    fn every_rule_names_a_field_that_exists() {
        for rule in LISTS {
            let found = definitions().iter().any(|(name, definition)| {
                name.ends_with(&format!(".{}", rule.definition))
                    && definition["properties"][rule.field]["x-kubernetes-list-type"] != Value::Null
            });
            assert!(found, "{}.{}", rule.definition, rule.field);
        }
    }
}
