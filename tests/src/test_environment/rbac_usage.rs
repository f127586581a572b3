//! Checks from the audit logs of a whole run that each controller uses every RBAC rule that it has and lacks none.

use std::collections::BTreeSet;

use federation_controller::rbac::{ControllerAccount, Manifest};
use fedrs_api::{ClusterType, names};
use k8s_openapi::api::rbac::v1::PolicyRule;
use local_controller::rbac;

use super::{AuditEntry, Shared};

/// The prefix of the checked users: the account of the manifests, and those that `fedrs join` creates.
pub(super) const USERS: &str = "system:serviceaccount:fedrs-system:fedrs-controller";
/// The controller of LocalReplicaSets.
const LOCAL_USER: &str = "system:serviceaccount:fedrs-system:fedrs-replica-set-controller";
/// The service of EndpointSets: the account on the host, and those that `fedrs join` creates.
const DISCOVERY_USER: &str = "system:serviceaccount:fedrs-system:fedrs-discovery";
/// The Secret of a member that joins with discovery.
const DISCOVERY_SECRET: &str = "discovery-b";

/// Permissions that a run need not use.
const USED_ELSEWHERE: [(&str, &str, &str); 8] = [
    // Admission plugins check whether the user has them, where they are enabled.
    ("fedrs.dev", "federatedreplicasets/finalizers", "update"),
    ("fedrs.dev", "localreplicasets/finalizers", "update"),
    // After a watch that is late, or a write without an answer.
    ("", "nodes", "get"),
    ("policy", "poddisruptionbudgets", "get"),
    ("fedrs.dev", "migrationrequests", "get"),
    // A month after its end.
    ("fedrs.dev", "migrationrequests", "delete"),
    // Beside a PodDisruptionBudget of a user.
    ("policy", "poddisruptionbudgets", "delete"),
    // Of a set with more old templates than its limit.
    ("apps", "controllerrevisions", "delete"),
];

/// One of the accounts that are checked.
#[derive(Clone, Copy, Debug)]
enum Checked {
    /// The federated controller, in a cluster of this type.
    Federated(ClusterType),
    /// The controller of LocalReplicaSets, in a member.
    Local,
    /// The service of EndpointSets that authorizes clients and writes statuses, in a cluster of this type.
    Discovery(ClusterType),
}

impl Checked {
    fn manifests(self) -> Vec<Manifest> {
        match self {
            Self::Federated(cluster) => ControllerAccount::usual(cluster).manifests(),
            Self::Local => rbac::manifests(None, None),
            Self::Discovery(ClusterType::Member) => {
                discovery::rbac::manifests(ClusterType::Member, None, None)
            }
            Self::Discovery(ClusterType::Host) => {
                let mut manifests = discovery::rbac::writer_manifests(None, None);
                manifests.extend(discovery::rbac::authorizer_manifests(None, None));
                let namespace = names::SYSTEM_NAMESPACE;
                let secret = discovery::rbac::secret_manifests(namespace, DISCOVERY_SECRET);
                manifests.extend(secret);
                manifests
            }
        }
    }
}

impl Shared {
    /// The forbidden requests of the controller's accounts, and the permissions that no request used, one per line; empty if
    /// all is well. For local clusters.
    pub async fn rbac_findings(&self) -> Result<Vec<String>, String> {
        let control_planes = self.control_planes().await;
        let read = |directory, user| {
            super::audit_log::read(directory, user).map_err(|error| error.to_string())
        };
        let host = control_planes.host.directory();
        let of_members = |user| {
            let members = control_planes.members.iter();
            let entries = members.map(|member| read(member.directory(), user));
            entries
                .collect::<Result<Vec<_>, _>>()
                .map(|all| all.concat())
        };
        let all = [
            (Checked::Federated(ClusterType::Host), read(host, USERS)?),
            (Checked::Federated(ClusterType::Member), of_members(USERS)?),
            (Checked::Local, of_members(LOCAL_USER)?),
            (
                Checked::Discovery(ClusterType::Host),
                read(host, DISCOVERY_USER)?,
            ),
            (
                Checked::Discovery(ClusterType::Member),
                of_members(DISCOVERY_USER)?,
            ),
        ];
        let findings = all.map(|(account, requests)| findings(account, &requests));
        Ok(findings.concat())
    }
}

/// Forbidden requests that no permission covers, and permissions that no request used. A covered request may be forbidden all
/// the same: by an API server that has just started and has not read its roles yet, or after the account was deleted.
fn findings(account: Checked, requests: &[AuditEntry]) -> Vec<String> {
    let manifests = account.manifests();
    let grants = manifests.iter().flat_map(Manifest::grants);
    let permissions: Vec<_> = grants
        .flat_map(|grant| {
            permissions(&grant.rule)
                .into_iter()
                .map(|permission| (permission, grant.why))
        })
        .collect();
    let uncovered = requests
        .iter()
        .filter(|entry| {
            !entry.is_allowed
                && !permissions
                    .iter()
                    .any(|(permission, _)| permission.covers(entry))
        })
        .map(|entry| format!("{account:?}: forbidden: {} {}", entry.verb, entry.path));
    let unused = permissions
        .iter()
        .filter(|(permission, _)| {
            !is_used_elsewhere(
                account,
                (permission.group, permission.resource, permission.verb),
            )
        })
        .filter(|(permission, _)| {
            !requests
                .iter()
                .any(|entry| entry.is_allowed && permission.covers(entry))
        })
        .map(|(permission, why)| {
            format!("{account:?}: never used: {} ({why})", permission.describe())
        });
    let unique: BTreeSet<_> = uncovered.chain(unused).collect();
    unique.into_iter().collect()
}

/// Whether a run on local clusters need not use this permission: its group, resource and verb.
fn is_used_elsewhere(account: Checked, permission: (&str, &str, &str)) -> bool {
    // The events of discovery are those of its election: only a process that is the leader twice repeats one.
    let is_of_repeated_election =
        matches!(account, Checked::Discovery(_)) && permission == ("", "events", "patch");
    is_of_repeated_election || USED_ELSEWHERE.contains(&permission)
}

/// One verb for one resource, or for one path.
struct Permission<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    path: &'a str,
    /// The names of the objects that the permission is restricted to, if any.
    names: &'a [String],
}

fn permissions(rule: &PolicyRule) -> Vec<Permission<'_>> {
    let mut permissions = Vec::new();
    let names = rule.resource_names.as_deref().unwrap_or_default();
    for verb in &rule.verbs {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                permissions.push(Permission {
                    verb,
                    group,
                    resource,
                    path: "",
                    names,
                });
            }
        }
        for path in rule.non_resource_urls.iter().flatten() {
            permissions.push(Permission {
                verb,
                group: "",
                resource: "",
                path,
                names,
            });
        }
    }
    permissions
}

impl Permission<'_> {
    /// Resource names are the account's own name: accounts that `fedrs join` creates have other names.
    fn covers(&self, request: &AuditEntry) -> bool {
        let account = request.user.rsplit(':').next().unwrap_or_default();
        let is_named = self.names.is_empty()
            || self.names.contains(&request.name)
            || self.names.iter().any(|name| account.starts_with(name)) && request.name == account;
        let is_path = self.path.is_empty() || self.path == request.path;
        (self.verb, self.group, self.resource) == (&request.verb, &request.group, &request.resource)
            && is_named
            && is_path
    }

    fn describe(&self) -> String {
        let Self {
            verb,
            group,
            resource,
            path,
            names,
        } = self;
        let group = if group.is_empty() {
            String::new()
        } else {
            format!(".{group}")
        };
        format!("{verb} {resource}{group}{path} {}", names.join(" "))
            .trim_end()
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn request(verb: &str, group: &str, resource: &str, path: &str) -> AuditEntry {
        AuditEntry {
            at: Timestamp::UNIX_EPOCH,
            user: USERS.to_owned(),
            credential: String::new(),
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: String::new(),
            path: path.to_owned(),
            code: 200,
            is_allowed: true,
        }
    }

    const MEMBER: Checked = Checked::Federated(ClusterType::Member);

    /// A request for each permission of an account.
    fn all(account: Checked) -> Vec<AuditEntry> {
        let mut all = Vec::new();
        for manifest in account.manifests() {
            for grant in manifest.grants() {
                for permission in permissions(&grant.rule) {
                    let mut entry = request(
                        permission.verb,
                        permission.group,
                        permission.resource,
                        permission.path,
                    );
                    entry.name = permission.names.first().cloned().unwrap_or_default();
                    all.push(entry);
                }
            }
        }
        all
    }

    #[test]
    fn an_unused_permission_is_reported() {
        for account in [
            Checked::Federated(ClusterType::Host),
            MEMBER,
            Checked::Local,
            Checked::Discovery(ClusterType::Host),
            Checked::Discovery(ClusterType::Member),
        ] {
            let all = all(account);
            assert_eq!(findings(account, &all), Vec::<String>::new());
            for left_out in 0..all.len() {
                let mut fewer = all.clone();
                let gone = fewer.remove(left_out);
                let is_used = is_used_elsewhere(account, (&gone.group, &gone.resource, &gone.verb));
                let expected = usize::from(!is_used);
                let findings = findings(account, &fewer);
                assert_eq!(findings.len(), expected, "{gone:?}: {findings:?}");
            }
        }
    }

    #[test]
    fn a_forbidden_request_is_reported_once() {
        let mut all = all(MEMBER);
        let mut forbidden = request("get", "", "secrets", "/api/v1/namespaces/n/secrets/s");
        forbidden.is_allowed = false;
        all.extend([forbidden.clone(), forbidden]);
        let expected = ["Federated(Member): forbidden: get /api/v1/namespaces/n/secrets/s"];
        assert_eq!(findings(MEMBER, &all), expected);
    }

    #[test]
    fn a_forbidden_request_is_no_use_of_a_permission() {
        let mut all = all(MEMBER);
        let nodes = all
            .iter_mut()
            .find(|entry| entry.resource == "nodes")
            .unwrap();
        nodes.is_allowed = false;
        let findings = findings(MEMBER, &all);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].starts_with("Federated(Member): never used: list nodes"),
            "{findings:?}"
        );
    }

    #[test]
    fn an_account_of_fedrs_join_uses_permissions_by_its_own_name() {
        let mut deletion = request("delete", "rbac.authorization.k8s.io", "clusterroles", "");
        deletion.user = format!("{USERS}-5f1c2d3e");
        deletion.name = "fedrs-controller-5f1c2d3e".to_owned();
        let names = ["fedrs-controller".to_owned()];
        let permission = Permission {
            verb: "delete",
            group: "rbac.authorization.k8s.io",
            resource: "clusterroles",
            path: "",
            names: &names,
        };
        assert!(permission.covers(&deletion));
        deletion.name = "cluster-admin".to_owned();
        assert!(!permission.covers(&deletion));
    }
}
