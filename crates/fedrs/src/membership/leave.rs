//! Taking away what `fedrs join` made in a cluster.

use serde_json::Value;

use super::{names, objects::Membership};
use crate::{
    object::{Address, CLUSTER_ROLE, NAMESPACE},
    remote::{Failure, Remote},
    say::Say,
};

/// Who takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A user who may delete roles.
    User,
    /// The controller's account itself: it may delete its role, and what that owns goes with it.
    Account,
}

/// Takes the account and its rights out of `member`, telling each. Answers whether anything was there.
pub(crate) async fn account(
    member: &Remote,
    membership: &Membership,
    by: By,
    say: &mut Say,
) -> Result<bool, Failure> {
    let mut addresses: Vec<Address> = membership.in_member("").iter().map(Address::of).collect();
    if by == By::Account {
        addresses.retain(|it| it.kind == CLUSTER_ROLE);
    }
    // The owner last: as long as it is there, the work isn't done.
    addresses.reverse();
    let mut any = false;
    for address in addresses {
        if member.delete(&address).await? {
            say.step(member.side, &address, "deleted");
            any = true;
        }
    }
    Ok(any)
}

/// Deletes the namespace, if join made it and nothing is in it any more; telling so, or why not.
pub(crate) async fn namespace(
    remote: &Remote,
    membership: &Membership,
    say: &mut Say,
) -> Result<(), Failure> {
    let address = membership.namespace_address();
    let Some(found) = remote.get(&address).await? else {
        return Ok(());
    };
    if !names::is_ours(&found) {
        say.step(remote.side, &address, "left: join did not make it");
        return Ok(());
    }
    let inside = match contents(remote, &membership.namespace).await {
        // Who may not look must not delete.
        Err(failure) if failure.code() == Some(403) => vec![format!("who knows what ({failure})")],
        inside => inside?,
    };
    if inside.is_empty() {
        remote.delete(&address).await?;
        say.step(remote.side, &address, "deleted");
    } else {
        let inside = inside.join(", ");
        say.step(remote.side, &address, format_args!("left: {inside} in it"));
    }
    Ok(())
}

/// Kinds that show that a namespace is in use, with the objects that every namespace has.
const CONTENTS: [(&str, &str, &[&str]); 12] = [
    ("/api/v1", "serviceaccounts", &["default"]),
    ("/api/v1", "secrets", &[]),
    ("/api/v1", "pods", &[]),
    ("/api/v1", "services", &[]),
    ("/api/v1", "persistentvolumeclaims", &[]),
    (
        "/api/v1",
        "configmaps",
        &["kube-root-ca.crt", "openshift-service-ca.crt"],
    ),
    ("/apis/apps/v1", "deployments", &[]),
    ("/apis/apps/v1", "statefulsets", &[]),
    ("/apis/apps/v1", "daemonsets", &[]),
    ("/apis/apps/v1", "replicasets", &[]),
    ("/apis/batch/v1", "jobs", &[]),
    ("/apis/batch/v1", "cronjobs", &[]),
];

/// What is in a namespace that somebody may need.
async fn contents(remote: &Remote, namespace: &str) -> Result<Vec<String>, Failure> {
    let mut inside = Vec::new();
    for (api, plural, usual) in CONTENTS {
        let uri = format!("{api}/namespaces/{namespace}/{plural}");
        let doing = format!("list {plural} in namespace {namespace}");
        match remote.send(doing, "GET", &uri, None).await {
            // A cluster may do without the kind.
            Err(failure) if failure.code() == Some(404) => {}
            list => inside.extend(unusual(&list?, plural, usual)),
        }
    }
    Ok(inside)
}

/// Objects of a list that are not `usual` and not on their way out.
fn unusual(list: &Value, plural: &str, usual: &[&str]) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    let staying = items
        .map(|it| &it["metadata"])
        .filter(|it| it["deletionTimestamp"].is_null());
    let names = staying.filter_map(|it| it["name"].as_str());
    let singular = plural.trim_end_matches('s');
    names
        .filter(|name| !usual.contains(name))
        .map(|name| format!("{singular}/{name}"))
        .collect()
}

/// What is left in a member where nothing could be taken away, and how a user does it.
pub(crate) fn by_hand(membership: &Membership) -> String {
    let Membership { namespace, .. } = membership;
    let account = membership.account();
    format!(
        "left in the member, with a token that goes on being good: clusterrole/{account}, and the account that it owns. With a kubeconfig of the member:\n  \
         kubectl delete clusterrole {account}\n  \
         kubectl delete {} {namespace}      # if nothing else is in it",
        NAMESPACE.name.to_lowercase()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_every_namespace_has_is_no_use() {
        let list = json!({ "items": [
            { "metadata": { "name": "default" } },
            { "metadata": { "name": "leaving", "deletionTimestamp": "2026-01-01T00:00:00Z" } },
            { "metadata": { "name": "fedrs-controller" } },
        ] });
        assert_eq!(
            unusual(&list, "serviceaccounts", &["default"]),
            ["serviceaccount/fedrs-controller"]
        );
    }
}
