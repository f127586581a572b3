//! Requests to an API server, read from its audit log.

use std::{fs, io, path::Path};

use jiff::Timestamp;
use serde_json::Value;

/// One request with its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When the API server received the request.
    pub at: Timestamp,
    /// The user: `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// The ID of the token.
    pub credential: String,
    /// The RBAC verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// The API group; empty for the core group and for non-resource requests.
    pub group: String,
    /// The resource with its subresource, as in RBAC rules: `pods/status`. Empty for non-resource requests.
    pub resource: String,
    /// The object's name, if the request has one.
    pub name: String,
    /// The path, without the query.
    pub path: String,
    /// The HTTP status of the response.
    pub code: u64,
    /// Whether the authorizer allowed the request.
    pub is_allowed: bool,
}

impl AuditEntry {
    /// Whether the request changed an object.
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

/// The requests of users whose names start with `user`, from the audit logs in `directory`: the current one and the rotated
/// ones. In no particular order.
pub(crate) fn read(directory: &Path, user: &str) -> io::Result<Vec<AuditEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let file = entry?.path();
        let name = file.file_name().map(|name| name.to_string_lossy());
        let is_audit = name.is_some_and(|name| name.starts_with("audit"));
        if !is_audit || file.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let text = fs::read_to_string(file)?;
        let lines = text.lines().filter(|line| line.contains(user));
        entries.extend(lines.filter_map(AuditEntry::read));
    }
    entries.retain(|entry| entry.user.starts_with(user));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_parsed() {
        let line = r#"{"kind":"Event","stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/n/replicasets/web/status?x=1","verb":"patch",
            "user":{"username":"system:serviceaccount:n:s","extra":{"authentication.kubernetes.io/credential-id":["JTI=1"]}},
            "objectRef":{"resource":"replicasets","namespace":"n","name":"web","apiGroup":"apps","apiVersion":"v1","subresource":"status"},
            "responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-21T17:00:00.000001Z",
            "annotations":{"authorization.k8s.io/decision":"allow"}}"#;
        let entry = AuditEntry::read(line).unwrap();
        assert_eq!(
            (entry.group.as_str(), entry.resource.as_str()),
            ("apps", "replicasets/status")
        );
        assert_eq!(
            (entry.name.as_str(), entry.credential.as_str()),
            ("web", "JTI=1")
        );
        assert!(entry.wrote() && entry.is_allowed);
        assert_eq!(
            entry.path,
            "/apis/apps/v1/namespaces/n/replicasets/web/status"
        );
        assert_eq!(AuditEntry::read("{"), None, "a line that is being written");
    }
}
