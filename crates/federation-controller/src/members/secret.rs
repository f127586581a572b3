//! Secrets with kubeconfigs, as the host shows them. Only those of [`names::KUBECONFIG_TYPE`] are ever asked for.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use fedrs_api::{annotations, names};
use reflector::Versioned;
use serde::Deserialize;
use serde_json::Value;

use super::kubeconfig::KubeconfigError;

/// A Secret as it comes over the wire, partially.
#[derive(Deserialize)]
pub(crate) struct SecretObject {
    metadata: SecretMeta,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecretMeta {
    name: String,
    resource_version: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Versioned for SecretObject {
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// What is used of a Secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KubeconfigSecret {
    /// The text of the kubeconfig, or why there is none.
    pub(super) text: Result<String, KubeconfigError>,
    /// Whether its token is to be renewed.
    pub(super) renew: bool,
}

impl SecretObject {
    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(crate) fn into_kubeconfig(self) -> KubeconfigSecret {
        let annotations = self.metadata.annotations.unwrap_or_default();
        let data = self.data.unwrap_or_default();
        KubeconfigSecret {
            text: text(data.get(names::KUBECONFIG_KEY).map(String::as_str)),
            renew: annotations
                .get(annotations::RENEW_TOKEN)
                .is_some_and(|it| it == "true"),
        }
    }
}

/// The kubeconfig in the data of a Secret that was read as JSON.
pub(super) fn kubeconfig_of(secret: &Value) -> Result<String, KubeconfigError> {
    text(secret["data"][names::KUBECONFIG_KEY].as_str())
}

/// Puts another kubeconfig into a Secret that was read as JSON.
pub(super) fn put_kubeconfig(secret: &mut Value, text: &str) {
    secret["data"][names::KUBECONFIG_KEY] = STANDARD.encode(text).into();
}

fn text(encoded: Option<&str>) -> Result<String, KubeconfigError> {
    let key = names::KUBECONFIG_KEY;
    let encoded = encoded.ok_or(KubeconfigError::NoKey(key))?;
    let bytes = STANDARD.decode(encoded).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or(KubeconfigError::NotText)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(object: Value) -> KubeconfigSecret {
        serde_json::from_value::<SecretObject>(object)
            .unwrap()
            .into_kubeconfig()
    }

    #[test]
    fn the_key_and_the_annotation_are_read() {
        let metadata = json!({ "name": "a", "resourceVersion": "1" });
        let renewed = json!({ "name": "a", "resourceVersion": "1", "annotations": { annotations::RENEW_TOKEN: "true" } });
        let found =
            read(json!({ "metadata": renewed, "data": { "kubeconfig": "YTog", "other": "!" } }));
        assert_eq!((found.text.unwrap(), found.renew), ("a: ".to_owned(), true));
        let message = |data: Value| {
            let found = read(json!({ "metadata": metadata, "data": data }));
            assert!(!found.renew);
            found.text.unwrap_err().to_string()
        };
        assert_eq!(
            message(json!({ "config": "YTog" })),
            "the Secret has no key \"kubeconfig\""
        );
        assert_eq!(message(Value::Null), "the Secret has no key \"kubeconfig\"");
        assert_eq!(
            message(json!({ "kubeconfig": "/w==" })),
            "the kubeconfig is not text"
        );
    }
}
