//! Validation of the specification of pods, also in templates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{fields, items, one_of};
use super::placement::validate_placement;
use super::pod_resources::quantity;
use crate::field::FieldError;
use crate::names::{is_dns1123_label, is_dns1123_subdomain};

/// Validates a pod's specification at `path`, with its defaults.
pub(super) fn validate_pod_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes = validate_volumes(spec, path, &mut errors);
    validate_containers(spec, path, &volumes, &mut errors);
    errors.extend(one_of(
        spec,
        path,
        "restartPolicy",
        &["Always", "OnFailure", "Never"],
    ));
    errors.extend(one_of(
        spec,
        path,
        "dnsPolicy",
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    ));
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(
            format!("{path}.activeDeadlineSeconds"),
            seconds,
            detail,
        ));
    }
    for field in ["nodeName", "serviceAccountName", "priorityClassName"] {
        if let Some(name) = spec[field].as_str() {
            let wrong = is_dns1123_subdomain(name);
            errors.extend(
                wrong
                    .into_iter()
                    .map(|what| FieldError::invalid(format!("{path}.{field}"), name, what)),
            );
        }
    }
    errors.extend(validate_placement(spec, path));
    errors
}

fn validate_volumes<'a>(
    spec: &'a Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in items(spec, "volumes") {
        let at = format!("{path}.volumes[{index}]");
        let name = volume["name"].as_str().unwrap_or_default();
        validate_name(name, &format!("{at}.name"), &mut names, errors);
        let sources = volume.as_object().map_or(0, |fields| {
            fields.keys().filter(|key| *key != "name").count()
        });
        if sources == 0 {
            errors.push(FieldError::required(&at, "must specify a volume type"));
        } else if sources > 1 {
            let second = volume
                .as_object()
                .and_then(|fields| fields.keys().filter(|key| *key != "name").nth(1));
            let second = second.map(String::as_str).unwrap_or_default();
            errors.push(FieldError::forbidden(
                format!("{at}.{second}"),
                "may not specify more than 1 volume type",
            ));
        }
    }
    names
}

/// Validates a name that must be a unique DNS label.
fn validate_name<'a>(
    name: &'a str,
    at: &str,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    if name.is_empty() {
        errors.push(FieldError::required(at, ""));
        return;
    }
    errors.extend(
        is_dns1123_label(name)
            .into_iter()
            .map(|what| FieldError::invalid(at, name, what)),
    );
    if !seen.insert(name) {
        errors.push(FieldError::duplicate(at, name));
    }
}

fn validate_containers(
    spec: &Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    if items(spec, "containers").next().is_none() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (index, container) in items(spec, list) {
            let at = format!("{path}.{list}[{index}]");
            let name = container["name"].as_str().unwrap_or_default();
            validate_name(name, &format!("{at}.name"), &mut names, errors);
            validate_container(container, &at, volumes, errors);
        }
    }
}

fn validate_container(
    container: &Value,
    at: &str,
    volumes: &BTreeSet<&str>,
    errors: &mut Vec<FieldError>,
) {
    let image = container["image"].as_str().unwrap_or_default();
    if image.is_empty() {
        errors.push(FieldError::required(format!("{at}.image"), ""));
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(format!("{at}.image"), image, detail));
    }
    validate_ports(container, at, errors);
    for (index, variable) in items(container, "env") {
        if variable["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("{at}.env[{index}].name"), ""));
        }
    }
    let mut paths = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts") {
        let mount_at = format!("{at}.volumeMounts[{index}]");
        match mount["name"].as_str().unwrap_or_default() {
            "" => errors.push(FieldError::required(format!("{mount_at}.name"), "")),
            name if !volumes.contains(name) => {
                errors.push(FieldError::new(
                    crate::field::FieldErrorKind::NotFound,
                    format!("{mount_at}.name"),
                    name,
                    "",
                ));
            }
            _ => {}
        }
        match mount["mountPath"].as_str().unwrap_or_default() {
            "" => errors.push(FieldError::required(format!("{mount_at}.mountPath"), "")),
            path if !paths.insert(path) => {
                errors.push(FieldError::invalid(
                    format!("{mount_at}.mountPath"),
                    path,
                    "must be unique",
                ));
            }
            _ => {}
        }
    }
    errors.extend(one_of(
        container,
        at,
        "imagePullPolicy",
        &["Always", "IfNotPresent", "Never"],
    ));
    errors.extend(one_of(
        container,
        at,
        "terminationMessagePolicy",
        &["FallbackToLogsOnError", "File"],
    ));
    validate_resources(&container["resources"], &format!("{at}.resources"), errors);
}

fn validate_ports(container: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (index, port) in items(container, "ports") {
        let port_at = format!("{at}.ports[{index}]");
        if let Some(name) = port["name"].as_str()
            && !names.insert(name)
        {
            errors.push(FieldError::duplicate(format!("{port_at}.name"), name));
        }
        for field in ["containerPort", "hostPort"] {
            match port[field].as_i64() {
                None | Some(0) if field == "hostPort" => {}
                None | Some(0) => {
                    errors.push(FieldError::required(format!("{port_at}.{field}"), ""));
                }
                Some(number) if (1..=65535).contains(&number) => {}
                Some(number) => {
                    let detail = "must be between 1 and 65535, inclusive";
                    errors.push(FieldError::invalid(
                        format!("{port_at}.{field}"),
                        number,
                        detail,
                    ));
                }
            }
        }
        errors.extend(one_of(port, &port_at, "protocol", &["SCTP", "TCP", "UDP"]));
    }
}

fn validate_resources(resources: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for of in ["limits", "requests"] {
        for (name, value) in fields(&resources[of]) {
            let Some(amount) = quantity(value) else {
                continue;
            };
            let path = format!("{at}.{of}");
            if amount.is_negative() {
                let detail = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(
                    format!("{path}[{name}]"),
                    amount.to_string(),
                    detail,
                ));
            }
            let limit = quantity(&resources["limits"][name]).filter(|_| of == "requests");
            if let Some(limit) = limit.filter(|limit| amount > *limit) {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(FieldError::invalid(path, amount.to_string(), detail));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn pod(spec: &Value) -> Value {
        let mut pod = json!({ "spec": spec });
        super::super::defaults("Pod", &mut pod);
        pod
    }

    #[rstest]
    #[case(json!({}), "spec.containers: Required value")]
    #[case(json!({"containers": [{"name": "a"}]}), "spec.containers[0].image: Required value")]
    #[case(json!({"containers": [{"name": "A", "image": "x"}]}), "spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must")]
    #[case(json!({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}), "spec.containers[1].name: Duplicate value: \"a\"")]
    #[case(json!({"restartPolicy": "Sometimes", "containers": [{"name": "a", "image": "x"}]}), "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"")]
    #[case(json!({"containers": [{"name": "a", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}), "spec.containers[0].volumeMounts[0].name: Not found: \"v\"")]
    #[case(json!({"containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}), "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1")]
    fn a_bad_specification_is_explained(#[case] spec: Value, #[case] message: &str) {
        let errors = validate_pod_spec(&pod(&spec)["spec"], "spec");
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].to_string().starts_with(message), "{}", errors[0]);
    }
}
