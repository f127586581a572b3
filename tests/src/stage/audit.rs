//! What was asked of an API server, by its audit log.

use std::{fs, io, path::Path};

use jiff::Timestamp;
use serde_json::Value;

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it came.
    pub at: Timestamp,
    /// Whose it was: `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// The id of the token.
    pub credential: String,
    /// As RBAC has it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// The group of what it was about; empty for the core's, and for what is no resource.
    pub group: String,
    /// With a subresource, as RBAC has it: `pods/status`. Empty for what is no resource.
    pub resource: String,
    /// The object's name, where the request has one.
    pub name: String,
    /// The path, without the query.
    pub path: String,
    /// The HTTP status of the answer.
    pub code: u64,
    /// Whether the authorizer let it pass.
    pub is_allowed: bool,
}

impl Asked {
    /// Whether it changed something.
    pub fn wrote(&self) -> bool {
        let reads = ["get", "list", "watch"].contains(&self.verb.as_str());
        !reads && (200..300).contains(&self.code)
    }

    fn read(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| {
            let text = event.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let resource = match text("/objectRef/subresource").as_str() {
            "" => text("/objectRef/resource"),
            subresource => format!("{}/{subresource}", text("/objectRef/resource")),
        };
        let path = text("/requestURI");
        Some(Self {
            at: text("/requestReceivedTimestamp").parse().ok()?,
            user: text("/user/username"),
            credential: text("/user/extra/authentication.kubernetes.io~1credential-id/0"),
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource,
            name: text("/objectRef/name"),
            path: path.split('?').next().unwrap_or_default().to_owned(),
            code: event.pointer("/responseStatus/code")?.as_u64()?,
            is_allowed: text("/annotations/authorization.k8s.io~1decision") == "allow",
        })
    }
}

/// What users whose names begin with `user` have asked for, as the logs in `folder` have it: the present one and those
/// that were put aside. In no order.
pub(super) fn read(folder: &Path, user: &str) -> io::Result<Vec<Asked>> {
    let mut asked = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !(name.starts_with("audit") && name.ends_with(".log")) {
            continue;
        }
        let text = fs::read_to_string(entry.path())?;
        let lines = text.lines().filter(|line| line.contains(user));
        asked.extend(lines.filter_map(Asked::read));
    }
    asked.retain(|it| it.user.starts_with(user));
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_read() {
        let line = r#"{"kind":"Event","stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/n/replicasets/web/status?x=1","verb":"patch",
            "user":{"username":"system:serviceaccount:n:s","extra":{"authentication.kubernetes.io/credential-id":["JTI=1"]}},
            "objectRef":{"resource":"replicasets","namespace":"n","name":"web","apiGroup":"apps","apiVersion":"v1","subresource":"status"},
            "responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-21T17:00:00.000001Z",
            "annotations":{"authorization.k8s.io/decision":"allow"}}"#;
        let asked = Asked::read(line).unwrap();
        assert_eq!(
            (asked.group.as_str(), asked.resource.as_str()),
            ("apps", "replicasets/status")
        );
        assert_eq!(
            (asked.name.as_str(), asked.credential.as_str()),
            ("web", "JTI=1")
        );
        assert!(asked.wrote() && asked.is_allowed);
        assert_eq!(
            asked.path,
            "/apis/apps/v1/namespaces/n/replicasets/web/status"
        );
        assert_eq!(Asked::read("{"), None, "a line that is being written");
    }
}
