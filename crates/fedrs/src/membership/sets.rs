//! The local sets that a federation leaves in a member: a drained one keeps them, at no replicas.

use std::collections::BTreeSet;

use fedrs_api::{FederatedReplicaSet, marks};
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use crate::{
    remote::{Failure, Remote},
    say::{Say, count},
};

/// The federations that the host's sets belong to, as local sets are labelled: its own id, and those with a name (F40).
pub(crate) async fn federations(host: &Remote, host_id: &str) -> Result<BTreeSet<String>, Failure> {
    let sets: Api<FederatedReplicaSet> = Api::all(host.client());
    let everything = ListParams::default();
    let list = host
        .call("list federatedreplicasets", sets.list(&everything))
        .await?;
    let named = list.items.into_iter().map(|it| it.spec.federation);
    let named = named.filter(|it| !it.is_empty());
    Ok(named.chain([host_id.to_owned()]).collect())
}

/// A local set, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
struct LocalSet {
    path: String,
    name: String,
    uid: String,
    resource_version: String,
    /// Asked for or still there, whichever is more.
    replicas: usize,
}

fn of_federations(list: &Value, federations: &BTreeSet<String>) -> Vec<LocalSet> {
    let items = list["items"].as_array().into_iter().flatten();
    let ours = items.filter(|it| {
        let federation = it["metadata"]["labels"][marks::FEDERATION].as_str();
        federation.is_some_and(|it| federations.contains(it))
    });
    let sets = ours.map(|set| {
        let text = |field: &str| {
            set["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let number = |part: &str| {
            let replicas = set[part]["replicas"].as_u64().unwrap_or_default();
            usize::try_from(replicas).unwrap_or(usize::MAX)
        };
        LocalSet {
            path: format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{name}"),
            name: format!("{namespace}/{name}"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            replicas: number("spec").max(number("status")),
        }
    });
    sets.collect()
}

/// Deletes the local sets that `federations` have in `member` at no replicas, and tells which others stay.
pub(crate) async fn remove_empty(
    member: &Remote,
    name: &str,
    federations: &BTreeSet<String>,
    say: &mut Say,
) -> Result<(), Failure> {
    let uri = format!(
        "/apis/apps/v1/replicasets?labelSelector={}%3D{name}",
        marks::MEMBER.replace('/', "%2F")
    );
    let list = member
        .send("list the federation's replicasets", "GET", &uri, None)
        .await?;
    let (empty, running): (Vec<_>, Vec<_>) = of_federations(&list, federations)
        .into_iter()
        .partition(|it| it.replicas == 0);
    for set in &empty {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": { "uid": set.uid, "resourceVersion": set.resource_version },
        });
        let doing = format!("delete replicaset {}", set.name);
        match member
            .send(doing, "DELETE", &set.path, Some(&options))
            .await
        {
            Err(failure) if failure.code() == Some(404) => {}
            answer => drop(answer?),
        }
        say.step(
            member.side,
            format_args!("replicaset/{}", set.name),
            "deleted: it was empty",
        );
    }
    for set in &running {
        say.step(
            member.side,
            format_args!("replicaset/{}", set.name),
            format_args!("left, with {}", count(set.replicas, "replica")),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_federations_sets_are_not_touched() {
        let set = |name: &str, federation: &str, spec: u64, status: u64| {
            json!({
                "metadata": {
                    "namespace": "default", "name": name, "uid": "u", "resourceVersion": "1",
                    "labels": { marks::FEDERATION: federation },
                },
                "spec": { "replicas": spec }, "status": { "replicas": status },
            })
        };
        let list = json!({ "items": [
            set("ours", "host", 0, 0), set("named", "blue", 2, 1), set("theirs", "other", 0, 0),
            set("ending", "host", 0, 3),
        ] });
        let federations = ["host", "blue"].map(str::to_owned).into();
        let found: Vec<_> = of_federations(&list, &federations)
            .into_iter()
            .map(|it| (it.name, it.replicas))
            .collect();
        let expected = [
            ("default/ours", 0),
            ("default/named", 2),
            ("default/ending", 3),
        ];
        assert_eq!(
            found,
            expected.map(|(name, replicas)| (name.to_owned(), replicas))
        );
    }
}
