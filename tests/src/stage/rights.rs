//! The proof that the controller has no right that it doesn't use, and lacks none: from the audit logs of a whole run.

use std::collections::BTreeSet;

use federation_controller::rbac::{Access, Manifest, Place};
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{Asked, Shared};

/// What users whose rights are looked at are called: the account of the manifests, and those that `fedrs join` makes.
pub(super) const USERS: &str = "system:serviceaccount:fedrs-system:fedrs-controller";
/// A right that no request needs: an admission plugin of the host asks whether the user has it.
const ASKED_BY_ADMISSION: (&str, &str, &str) =
    ("fedrs.dev", "federatedreplicasets/finalizers", "update");

impl Shared {
    /// What was refused to the controller's accounts, and which of their rights nobody used, one in a line; empty if all
    /// is well. For local clusters.
    pub async fn rights_to_doubt(&self) -> Result<Vec<String>, String> {
        let fleet = self.fleet().await;
        let read = |folder| super::audit::read(folder, USERS).map_err(|it| it.to_string());
        let host = read(fleet.host.folder())?;
        let mut members = Vec::new();
        for member in &fleet.members {
            members.extend(read(member.folder())?);
        }
        let mut doubts = doubts(Place::Host, &host);
        doubts.extend(self::doubts(Place::Member, &members));
        Ok(doubts)
    }
}

/// What no right covers and was asked for, and rights that were never used. What a right covers may be refused all the
/// same: by an API server that has just started and not read its roles yet, or once the account was taken away.
fn doubts(place: Place, asked: &[Asked]) -> Vec<String> {
    let manifests = Access::usual(place).manifests();
    let grants = manifests.iter().flat_map(Manifest::grants);
    let rights: Vec<_> = grants
        .flat_map(|grant| rights(&grant.rule).into_iter().map(|it| (it, grant.why)))
        .collect();
    let uncovered = asked
        .iter()
        .filter(|it| !it.is_allowed && !rights.iter().any(|(right, _)| right.covers(it)))
        .map(|it| format!("{place:?}: refused: {} {}", it.verb, it.path));
    let unused = rights
        .iter()
        .filter(|(right, _)| !right.is_asked_by_admission())
        .filter(|(right, _)| !asked.iter().any(|it| it.is_allowed && right.covers(it)))
        .map(|(right, why)| format!("{place:?}: never used: {} ({why})", right.words()));
    let unique: BTreeSet<_> = uncovered.chain(unused).collect();
    unique.into_iter().collect()
}

/// One verb for one resource, or for one path.
struct Right<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    path: &'a str,
    /// For objects of these names alone, where there are any.
    names: &'a [String],
}

fn rights(rule: &PolicyRule) -> Vec<Right<'_>> {
    let mut rights = Vec::new();
    let names = rule.resource_names.as_deref().unwrap_or_default();
    for verb in &rule.verbs {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                rights.push(Right {
                    verb,
                    group,
                    resource,
                    path: "",
                    names,
                });
            }
        }
        for path in rule.non_resource_urls.iter().flatten() {
            rights.push(Right {
                verb,
                group: "",
                resource: "",
                path,
                names,
            });
        }
    }
    rights
}

impl Right<'_> {
    fn is_asked_by_admission(&self) -> bool {
        (self.group, self.resource, self.verb) == ASKED_BY_ADMISSION
    }

    /// Names are the account's own: one that `fedrs join` made has others.
    fn covers(&self, asked: &Asked) -> bool {
        let account = asked.user.rsplit(':').next().unwrap_or_default();
        let is_named = self.names.is_empty()
            || self.names.contains(&asked.name)
            || self.names.iter().any(|it| account.starts_with(it)) && asked.name == account;
        let is_path = self.path.is_empty() || self.path == asked.path;
        (self.verb, self.group, self.resource) == (&asked.verb, &asked.group, &asked.resource)
            && is_named
            && is_path
    }

    fn words(&self) -> String {
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

    fn asked(verb: &str, group: &str, resource: &str, path: &str) -> Asked {
        Asked {
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

    /// Each right of a place, used once.
    fn all(place: Place) -> Vec<Asked> {
        let mut all = Vec::new();
        for manifest in Access::usual(place).manifests() {
            for grant in manifest.grants() {
                for right in rights(&grant.rule) {
                    let mut it = asked(right.verb, right.group, right.resource, right.path);
                    it.name = right.names.first().cloned().unwrap_or_default();
                    all.push(it);
                }
            }
        }
        all
    }

    #[test]
    fn a_right_that_is_not_used_is_named() {
        for place in [Place::Host, Place::Member] {
            let all = all(place);
            assert_eq!(doubts(place, &all), Vec::<String>::new());
            for left_out in 0..all.len() {
                let mut fewer = all.clone();
                let gone = fewer.remove(left_out);
                let by_admission = (
                    gone.group.as_str(),
                    gone.resource.as_str(),
                    gone.verb.as_str(),
                );
                let expected = usize::from(by_admission != ASKED_BY_ADMISSION);
                let doubts = doubts(place, &fewer);
                assert_eq!(doubts.len(), expected, "{gone:?}: {doubts:?}");
            }
        }
    }

    #[test]
    fn what_no_right_covers_is_named_once() {
        let mut all = all(Place::Member);
        let mut refused = asked("get", "", "secrets", "/api/v1/namespaces/n/secrets/s");
        refused.is_allowed = false;
        all.extend([refused.clone(), refused]);
        let expected = ["Member: refused: get /api/v1/namespaces/n/secrets/s"];
        assert_eq!(doubts(Place::Member, &all), expected);
    }

    #[test]
    fn what_is_refused_is_no_use() {
        let mut all = all(Place::Member);
        let nodes = all.iter_mut().find(|it| it.resource == "nodes").unwrap();
        nodes.is_allowed = false;
        let doubts = doubts(Place::Member, &all);
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        assert!(
            doubts[0].starts_with("Member: never used: list nodes"),
            "{doubts:?}"
        );
    }

    #[test]
    fn an_account_of_join_uses_rights_by_its_own_name() {
        let mut deletion = asked("delete", "rbac.authorization.k8s.io", "clusterroles", "");
        deletion.user = format!("{USERS}-5f1c2d3e");
        deletion.name = "fedrs-controller-5f1c2d3e".to_owned();
        let names = ["fedrs-controller".to_owned()];
        let right = Right {
            verb: "delete",
            group: "rbac.authorization.k8s.io",
            resource: "clusterroles",
            path: "",
            names: &names,
        };
        assert!(right.covers(&deletion));
        deletion.name = "cluster-admin".to_owned();
        assert!(!right.covers(&deletion));
    }
}
