//! Validation of ConfigMaps and Secrets: keys, size, the requirements of a Secret's type, immutable fields.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::Value;

use crate::names::explain_format;
use crate::validation::Field;

/// The largest size of the data of a ConfigMap or Secret in bytes.
const BYTES_MAX: u64 = 1024 * 1024;
const KEY_FORMAT: &str = "[-._a-zA-Z0-9]+";

/// Validates the content of a ConfigMap.
pub(super) fn validate_config_map(object: &Field<'_>) {
    let texts = validate_keys(&object.field("data"), str::len);
    let bytes = validate_keys(&object.field("binaryData"), decoded_length);
    object.require_at_most(texts + bytes, BYTES_MAX);
}

/// Validates the content of a Secret.
pub(super) fn validate_secret(object: &Field<'_>) {
    let data = object.field("data");
    data.require_at_most(validate_keys(&data, decoded_length), BYTES_MAX);
    validate_type(object, &data);
}

/// Validates the fields of a ConfigMap or Secret that do not change.
pub(super) fn validate_data_update(kind: &str, old: &Value, new: &Field<'_>) {
    const WORDS: &str = "field is immutable when `immutable` is set";
    if kind == "Secret" {
        new.field("type").require_unchanged(&old["type"]);
    }
    if old["immutable"] != true {
        return;
    }
    for name in ["immutable", "data", "binaryData"] {
        let field = new.field(name);
        if *field.value != old[name] {
            field.forbidden(WORDS);
        }
    }
}

/// Validates the keys of a map. Returns the length of its values in bytes.
fn validate_keys(map: &Field<'_>, length: impl Fn(&str) -> usize) -> u64 {
    static KEY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&format!("^{KEY_FORMAT}$")).expect("the format is a constant"));
    let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
    let mut bytes = 0;
    for (key, value) in map.entries() {
        bytes += length(value.text()) as u64;
        if !KEY.is_match(key) {
            let examples = &["key.name", "KEY_NAME", "key-name"];
            value.invalid_as(key.as_str(), &explain_format(words, KEY_FORMAT, examples));
        }
    }
    bytes
}

/// The number of bytes that a text in base64 decodes to.
fn decoded_length(encoded: &str) -> usize {
    encoded.trim_end_matches('=').len() * 3 / 4
}

/// Validates what the type of a Secret requires.
fn validate_type(object: &Field<'_>, data: &Field<'_>) {
    let require = |key: &str| {
        if data.value[key].is_null() {
            data.entry(key).required("");
        }
    };
    match object.field("type").text() {
        "kubernetes.io/service-account-token" => {
            let annotations = object.field("metadata").field("annotations");
            annotations
                .entry("kubernetes.io/service-account.name")
                .require_text("");
        }
        "kubernetes.io/dockercfg" => validate_json(&data.entry(".dockercfg")),
        "kubernetes.io/dockerconfigjson" => validate_json(&data.entry(".dockerconfigjson")),
        "kubernetes.io/basic-auth" if data.value["password"].is_null() => require("username"),
        "kubernetes.io/ssh-auth" => require("ssh-privatekey"),
        "kubernetes.io/tls" if data.value["tls.crt"].is_null() => require("tls.crt"),
        "kubernetes.io/tls" => require("tls.key"),
        _ => {}
    }
}

/// Validates an entry of a Secret that must be JSON.
fn validate_json(entry: &Field<'_>) {
    let Some(encoded) = entry.value.as_str() else {
        return entry.required("");
    };
    let decoded = STANDARD.decode(encoded).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&decoded) {
        entry.invalid_as("<secret contents redacted>", &error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::field::FieldError;
    use crate::validation::errors_of;

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
        assert_eq!(
            texts(&errors_of(&secret, validate_secret)).join("; "),
            expected
        );
    }

    #[test]
    fn the_size_is_that_of_the_decoded_bytes() {
        let secret = |bytes: usize| json!({"data": {"a": STANDARD.encode(vec![0; bytes])}});
        let limit = usize::try_from(BYTES_MAX).unwrap();
        assert_eq!(errors_of(&secret(limit), validate_secret), []);
        assert_eq!(
            texts(&errors_of(&secret(limit + 1), validate_secret)),
            ["data: Too long: may not be more than 1048576 bytes"]
        );
        let map = json!({"data": {"a": "x"}, "binaryData": {"b": STANDARD.encode(vec![0; limit])}});
        assert_eq!(errors_of(&map, validate_config_map).len(), 1);
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
            assert_eq!(
                texts(&errors_of(&new, |new| validate_data_update(
                    "Secret", &old, new
                ))),
                expected
            );
        }
    }
}
