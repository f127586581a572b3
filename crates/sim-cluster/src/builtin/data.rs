//! Validation of ConfigMaps and Secrets: keys, size, the requirements of a Secret's type, immutable fields.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::Value;

use super::checks::{fields, immutable};
use crate::field::FieldError;
use crate::names::explain_format;

/// The largest size of the data of a ConfigMap or Secret in bytes.
const BYTES_MAX: u64 = 1024 * 1024;
const KEY_FORMAT: &str = "[-._a-zA-Z0-9]+";

/// Validates the content of a ConfigMap.
pub(super) fn validate_config_map(object: &Value) -> Vec<FieldError> {
    let (mut errors, texts) = validate_keys(object, "data", str::len);
    let (more, bytes) = validate_keys(object, "binaryData", decoded_length);
    errors.extend(more);
    if texts + bytes > BYTES_MAX {
        errors.push(FieldError::too_long("", BYTES_MAX));
    }
    errors
}

/// Validates the content of a Secret.
pub(super) fn validate_secret(object: &Value) -> Vec<FieldError> {
    let (mut errors, bytes) = validate_keys(object, "data", decoded_length);
    if bytes > BYTES_MAX {
        errors.push(FieldError::too_long("data", BYTES_MAX));
    }
    errors.extend(validate_type(object));
    errors
}

/// Validates a change, apart from the new object itself.
pub(super) fn validate_data_update(kind: &str, old: &Value, new: &Value) -> Vec<FieldError> {
    const WORDS: &str = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if kind == "Secret" && old["type"] != new["type"] {
        errors.push(immutable("type", &new["type"]));
    }
    if old["immutable"] == Value::Bool(true) {
        if new["immutable"] != Value::Bool(true) {
            errors.push(FieldError::forbidden("immutable", WORDS));
        }
        for field in ["data", "binaryData"] {
            if old[field] != new[field] {
                errors.push(FieldError::forbidden(field, WORDS));
            }
        }
    }
    errors
}

/// The errors of the keys of a list, and the size of its values in bytes.
fn validate_keys(
    object: &Value,
    list: &str,
    length: impl Fn(&str) -> usize,
) -> (Vec<FieldError>, u64) {
    static KEY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&format!("^{KEY_FORMAT}$")).expect("the format is a constant"));
    let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in fields(&object[list]) {
        bytes += value.as_str().map_or(0, &length) as u64;
        if !KEY.is_match(key) {
            let detail = explain_format(words, KEY_FORMAT, &["key.name", "KEY_NAME", "key-name"]);
            let path = format!("{list}[{key}]");
            errors.push(FieldError::invalid(path, key.as_str(), detail));
        }
    }
    (errors, bytes)
}

/// The decoded size of a value in base64, which has been validated.
fn decoded_length(encoded: &str) -> usize {
    encoded.trim_end_matches('=').len() * 3 / 4
}

/// Validates the required fields of a Secret of a known type.
fn validate_type(object: &Value) -> Option<FieldError> {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let has = |key: &str| object["data"].get(key).is_some();
    let missing = |key: &str| FieldError::required(format!("data[{key}]"), "");
    let must_have = |key: &str| (!has(key)).then(|| missing(key));
    match object["type"].as_str().unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            let account = object["metadata"]["annotations"][ACCOUNT].as_str();
            let path = format!("metadata.annotations[{ACCOUNT}]");
            (account.unwrap_or_default().is_empty()).then(|| FieldError::required(path, ""))
        }
        "kubernetes.io/dockercfg" => validate_json(object, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => validate_json(object, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if has("username") || has("password") => None,
        "kubernetes.io/basic-auth" => Some(missing("username")),
        "kubernetes.io/ssh-auth" => must_have("ssh-privatekey"),
        "kubernetes.io/tls" => must_have("tls.crt").or_else(|| must_have("tls.key")),
        _ => None,
    }
}

/// The value of the key must exist and be JSON.
fn validate_json(object: &Value, key: &str) -> Option<FieldError> {
    let path = format!("data[{key}]");
    let Some(encoded) = object["data"][key].as_str() else {
        return Some(FieldError::required(path, ""));
    };
    let decoded = STANDARD.decode(encoded).unwrap_or_default();
    let error = serde_json::from_slice::<serde::de::IgnoredAny>(&decoded).err()?;
    Some(FieldError::invalid(
        path,
        "<secret contents redacted>",
        error.to_string(),
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case::any_type_of_ones_own("example.org/x", json!({}), "")]
    #[case::tls("kubernetes.io/tls", json!({"tls.crt": "", "tls.key": ""}), "")]
    #[case::tls_without_key("kubernetes.io/tls", json!({"tls.crt": ""}), "data[tls.key]: Required value")]
    #[case::basic("kubernetes.io/basic-auth", json!({"password": "YQ=="}), "")]
    #[case::basic_without("kubernetes.io/basic-auth", json!({}), "data[username]: Required value")]
    #[case::ssh("kubernetes.io/ssh-auth", json!({}), "data[ssh-privatekey]: Required value")]
    #[case::docker("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "e30="}), "")]
    #[case::docker_without("kubernetes.io/dockerconfigjson", json!({}), "data[.dockerconfigjson]: Required value")]
    #[case::docker_no_json("kubernetes.io/dockercfg", json!({".dockercfg": "eA=="}),
        "data[.dockercfg]: Invalid value: \"<secret contents redacted>\": expected value at line 1 column 1")]
    #[case::account("kubernetes.io/service-account-token", json!({}),
        "metadata.annotations[kubernetes.io/service-account.name]: Required value")]
    #[case::key("Opaque", json!({"a b": ""}), "data[a b]: Invalid value: \"a b\": a valid config key must consist of \
        alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for \
        validation is '[-._a-zA-Z0-9]+')")]
    fn a_secret_has_the_fields_that_its_type_requires(
        #[case] of_type: &str,
        #[case] data: Value,
        #[case] expected: &str,
    ) {
        let secret = json!({"metadata": {"name": "s"}, "type": of_type, "data": data});
        assert_eq!(texts(&validate_secret(&secret)).join("; "), expected);
    }

    #[test]
    fn the_size_is_that_of_the_decoded_bytes() {
        let secret = |bytes: usize| json!({"data": {"a": STANDARD.encode(vec![0; bytes])}});
        let limit = usize::try_from(BYTES_MAX).unwrap();
        assert_eq!(validate_secret(&secret(limit)), []);
        assert_eq!(
            texts(&validate_secret(&secret(limit + 1))),
            ["data: Too long: may not be more than 1048576 bytes"]
        );
        let map = json!({"data": {"a": "x"}, "binaryData": {"b": STANDARD.encode(vec![0; limit])}});
        assert_eq!(validate_config_map(&map).len(), 1);
    }

    #[test]
    fn immutable_data_does_not_change() {
        let old = json!({"type": "Opaque", "immutable": true, "data": {"a": "YQ=="}});
        for (new, expected) in [
            (old.clone(), vec![]),
            (
                json!({"type": "x", "data": {}}),
                vec![
                    "type: Invalid value: \"x\": field is immutable",
                    "immutable: Forbidden: field is immutable when `immutable` is set",
                    "data: Forbidden: field is immutable when `immutable` is set",
                ],
            ),
        ] {
            assert_eq!(texts(&validate_data_update("Secret", &old, &new)), expected);
        }
    }
}
