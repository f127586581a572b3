//! Quotas in the scenario's namespace of a member.

use serde_json::{Value, json};

use super::TestEnvironment;

/// The name of the quota.
const NAME: &str = "capacity";

impl TestEnvironment {
    /// Limits a `resource`, such as `pods`, in a member to `most` from now on, until the quota is
    /// [removed](Self::remove_quota).
    pub async fn set_quota(&self, member: &str, resource: &str, most: u64) {
        let hard = json!({ resource: most.to_string() });
        let quota = json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": { "name": NAME },
            "spec": { "hard": hard },
        });
        let made = self.on_member(member, "POST", &self.quotas(), &quota).await;
        made.expect("a quota can be made");
        self.wait_until("the quota is in force", 30, async |env| {
            let path = format!("{}/{NAME}", env.quotas());
            let quota = env.on_member(member, "GET", &path, &Value::Null).await;
            quota.is_ok_and(|quota| quota["status"]["hard"] == hard)
        })
        .await;
    }

    /// Removes the quota in a member.
    pub async fn remove_quota(&self, member: &str) {
        let path = format!("{}/{NAME}", self.quotas());
        let removed = self.on_member(member, "DELETE", &path, &Value::Null).await;
        removed.expect("a quota can be deleted");
    }

    fn quotas(&self) -> String {
        format!("/api/v1/namespaces/{}/resourcequotas", self.namespace)
    }
}
