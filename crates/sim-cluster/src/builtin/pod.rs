//! Validation of the specification of pods, also in templates.

use std::collections::BTreeSet;

use super::placement::validate_placement;
use super::pod_resources::quantity;
use crate::field::FieldErrorKind;
use crate::names::{is_dns1123_label, is_dns1123_subdomain};
use crate::validation::Field;

/// Validates a pod's specification, with its defaults.
pub(super) fn validate_pod_spec(spec: &Field<'_>) {
    let volumes = validate_volumes(&spec.field("volumes"));
    validate_containers(spec, &volumes);
    spec.field("restartPolicy")
        .require_one_of(&["Always", "OnFailure", "Never"]);
    spec.field("dnsPolicy").require_one_of(&[
        "ClusterFirstWithHostNet",
        "ClusterFirst",
        "Default",
        "None",
    ]);
    let deadline = spec.field("activeDeadlineSeconds");
    if deadline
        .number()
        .is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds))
    {
        deadline.invalid("must be between 1 and 2147483647, inclusive");
    }
    for field in ["nodeName", "serviceAccountName", "priorityClassName"] {
        let name = spec.field(field);
        if name.value.is_string() {
            name.invalid_text(name.text(), is_dns1123_subdomain(name.text()));
        }
    }
    validate_placement(spec);
}

/// Validates the volumes. Returns their names.
fn validate_volumes<'a>(volumes: &Field<'a>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for volume in volumes.items() {
        validate_name(&volume.field("name"), &mut names);
        let fields = volume.value.as_object().into_iter().flatten();
        let mut sources = fields.map(|(key, _)| key).filter(|key| *key != "name");
        match (sources.next(), sources.next()) {
            (None, _) => volume.required("must specify a volume type"),
            (_, None) => {}
            (_, Some(second)) => {
                let detail = "may not specify more than 1 volume type";
                volume.field(second).forbidden(detail);
            }
        }
    }
    names
}

/// Validates a name that must be a unique DNS label.
fn validate_name<'a>(name: &Field<'a>, seen: &mut BTreeSet<&'a str>) {
    if name.require_text("") {
        name.invalid_text(name.text(), is_dns1123_label(name.text()));
        if !seen.insert(name.text()) {
            name.duplicate();
        }
    }
}

fn validate_containers(spec: &Field<'_>, volumes: &BTreeSet<&str>) {
    if spec.field("containers").len() == 0 {
        spec.field("containers").required("");
    }
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.field(list).items() {
            validate_name(&container.field("name"), &mut names);
            validate_container(&container, volumes);
        }
    }
}

fn validate_container(container: &Field<'_>, volumes: &BTreeSet<&str>) {
    let image = container.field("image");
    if image.require_text("") && image.text().trim() != image.text() {
        image.invalid("must not have leading or trailing whitespace");
    }
    validate_ports(&container.field("ports"));
    for variable in container.field("env").items() {
        variable.field("name").require_text("");
    }
    let mut paths = BTreeSet::new();
    for mount in container.field("volumeMounts").items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if name.require_text("") && !volumes.contains(name.text()) {
            name.report(FieldErrorKind::NotFound, name.text(), "");
        }
        if path.require_text("") && !paths.insert(path.text()) {
            path.invalid("must be unique");
        }
    }
    container
        .field("imagePullPolicy")
        .require_one_of(&["Always", "IfNotPresent", "Never"]);
    container
        .field("terminationMessagePolicy")
        .require_one_of(&["FallbackToLogsOnError", "File"]);
    validate_resources(&container.field("resources"));
}

fn validate_ports(ports: &Field<'_>) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if name.value.is_string() && !names.insert(name.text()) {
            name.duplicate();
        }
        for field in ["containerPort", "hostPort"] {
            let number = port.field(field);
            match number.number().unwrap_or(0) {
                0 if field == "hostPort" => {}
                0 => number.required(""),
                1..=65535 => {}
                _ => number.invalid("must be between 1 and 65535, inclusive"),
            }
        }
        port.field("protocol")
            .require_one_of(&["SCTP", "TCP", "UDP"]);
    }
}

pub(super) fn validate_resources(resources: &Field<'_>) {
    for amounts in ["limits", "requests"].map(|name| resources.field(name)) {
        for (name, value) in amounts.entries() {
            let Some(amount) = quantity(value.value) else {
                continue;
            };
            if amount.is_negative() {
                let detail = "must be greater than or equal to 0";
                value.invalid_as(amount.to_string(), detail);
            }
            // A limit is not above itself.
            if let Some(limit) = quantity(&resources.value["limits"][name])
                && amount > limit
            {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                amounts.invalid_as(amount.to_string(), &detail);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::errors_of;
    use rstest::rstest;
    use serde_json::{Value, json};

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
        let errors = errors_of(&pod(&spec), |pod| validate_pod_spec(&pod.field("spec")));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].to_string().starts_with(message), "{}", errors[0]);
    }
}
