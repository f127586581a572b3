//! Limits of the scenario's namespace in a member.

use serde_json::{Value, json};

use super::Stage;

/// The name of the quota.
const NAME: &str = "room";

impl Stage {
    /// From now on there is no more than `most` of `resource`, such as `pods`, in a member, until that is
    /// [taken back](Self::unlimit).
    pub async fn limit(&self, member: &str, resource: &str, most: u64) {
        let hard = json!({ resource: most.to_string() });
        let quota = json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": { "name": NAME },
            "spec": { "hard": hard },
        });
        let made = self.on_member(member, "POST", &self.quotas(), &quota).await;
        made.expect("a quota can be made");
        self.wait_until("the quota is in force", 30, async |it| {
            let path = format!("{}/{NAME}", it.quotas());
            let quota = it.on_member(member, "GET", &path, &Value::Null).await;
            quota.is_ok_and(|it| it["status"]["hard"] == hard)
        })
        .await;
    }

    /// Takes the limit in a member back.
    pub async fn unlimit(&self, member: &str) {
        let path = format!("{}/{NAME}", self.quotas());
        let removed = self.on_member(member, "DELETE", &path, &Value::Null).await;
        removed.expect("a quota can be deleted");
    }

    fn quotas(&self) -> String {
        format!("/api/v1/namespaces/{}/resourcequotas", self.namespace)
    }
}
