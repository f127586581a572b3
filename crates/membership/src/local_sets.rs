//! The local sets that a federation leaves in a member: a drained one keeps them, at no replicas.

use fedrs_api::{labels, pluralize};
use serde_json::{Value, json};

use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::Membership,
    say::Say,
};

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

fn of_list(list: &Value) -> Vec<LocalSet> {
    let items = list["items"].as_array().into_iter().flatten();
    let sets = items.map(|set| {
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

/// Deletes the local sets that the federation has in `member` at no replicas, and tells which others stay.
pub(crate) async fn remove_empty(
    member: &ClusterClient,
    membership: &Membership,
    say: &mut Say,
) -> Result<(), RequestError> {
    let label = |mark: &str, value: &str| format!("{}%3D{value}", mark.replace('/', "%2F"));
    let uri = format!(
        "/apis/apps/v1/replicasets?labelSelector={}%2C{}",
        label(labels::FEDERATION, membership.federation_label()),
        label(labels::MEMBER_CLUSTER, &membership.name)
    );
    let list = member
        .send("list the federation's replicasets", "GET", &uri, None)
        .await?;
    let (empty, running): (Vec<_>, Vec<_>) =
        of_list(&list).into_iter().partition(|it| it.replicas == 0);
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
            format_args!("left, with {}", pluralize(set.replicas, "replica")),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_empty_when_nothing_is_asked_for_and_nothing_is_left() {
        let set = |name: &str, spec: u64, status: u64| {
            json!({
                "metadata": {
                    "namespace": "default", "name": name, "uid": "u", "resourceVersion": "1",
                },
                "spec": { "replicas": spec }, "status": { "replicas": status },
            })
        };
        let list =
            json!({ "items": [set("empty", 0, 0), set("starting", 2, 1), set("ending", 0, 3)] });
        let found: Vec<_> = of_list(&list)
            .into_iter()
            .map(|it| (it.name, it.replicas))
            .collect();
        let expected = [
            ("default/empty", 0),
            ("default/starting", 2),
            ("default/ending", 3),
        ];
        assert_eq!(
            found,
            expected.map(|(name, replicas)| (name.to_owned(), replicas))
        );
    }
}
