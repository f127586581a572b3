//! Secrets with kubeconfigs, as the host shows them. Only those of [`names::KUBECONFIG_TYPE`] are ever asked for.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use fedrs_api::{annotations, names};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use reflector::Collection;
use serde_json::Value;

use super::kubeconfig::{Kubeconfig, KubeconfigError};
use crate::config::SecretKubeconfigs;

/// What is used of a Secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KubeconfigSecret {
    /// The text of the kubeconfig, or why there is none.
    pub(super) text: Result<String, KubeconfigError>,
    /// Whether its token is to be renewed.
    pub(super) renew: bool,
}

impl KubeconfigSecret {
    /// Its kubeconfig, if it has one that is `allowed`.
    pub(super) fn kubeconfig(
        &self,
        allowed: SecretKubeconfigs,
    ) -> Result<Kubeconfig, KubeconfigError> {
        let kubeconfig = Kubeconfig::read(self.text.as_ref().map_err(Clone::clone)?)?;
        kubeconfig.check_permitted(allowed)?;
        Ok(kubeconfig.in_directory(Path::new("/")))
    }
}

/// The collection of the Secrets with kubeconfigs in a namespace: all, or the one of a name.
pub(crate) fn collection(namespace: &str, name: Option<&str>) -> Collection {
    let mut fields = format!("type={}", names::KUBECONFIG_TYPE);
    if let Some(name) = name {
        fields = format!("metadata.name={name},{fields}");
    }
    Collection::with_fields(format!("/api/v1/namespaces/{namespace}/secrets"), fields)
}

impl From<Secret> for KubeconfigSecret {
    fn from(secret: Secret) -> Self {
        let renew = secret.annotations().get(annotations::RENEW_TOKEN);
        let renew = renew.is_some_and(|value| value == "true");
        let content = secret
            .data
            .unwrap_or_default()
            .remove(names::KUBECONFIG_KEY);
        Self {
            text: text(content.map(|content| content.0)),
            renew,
        }
    }
}

/// The kubeconfig in the data of a Secret that was read as JSON.
pub(super) fn kubeconfig_of(secret: &Value) -> Result<String, KubeconfigError> {
    let encoded = secret["data"][names::KUBECONFIG_KEY].as_str();
    text(encoded.and_then(|encoded| STANDARD.decode(encoded).ok()))
}

/// Puts another kubeconfig into a Secret that was read as JSON.
pub(super) fn put_kubeconfig(secret: &mut Value, text: &str) {
    secret["data"][names::KUBECONFIG_KEY] = STANDARD.encode(text).into();
}

fn text(content: Option<Vec<u8>>) -> Result<String, KubeconfigError> {
    let content = content.ok_or(KubeconfigError::NoKey(names::KUBECONFIG_KEY))?;
    String::from_utf8(content).map_err(|_| KubeconfigError::NotText)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(object: Value) -> KubeconfigSecret {
        serde_json::from_value::<Secret>(object).unwrap().into()
    }

    #[test]
    fn the_key_and_the_annotation_are_read() {
        let metadata = json!({ "name": "a", "resourceVersion": "1" });
        let renewed = json!({ "name": "a", "resourceVersion": "1", "annotations": { annotations::RENEW_TOKEN: "true" } });
        let found =
            read(json!({ "metadata": renewed, "data": { "kubeconfig": "YTog", "other": "eA==" } }));
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
            "the kubeconfig is not UTF-8 text"
        );
    }
}
