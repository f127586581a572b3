//! Members with Secrets: `fedrs join` and `fedrs unjoin` as a user runs them

use std::{fs, path::PathBuf, process::Command};

use control_plane::{ServiceAccount, Validity};
use fedrs_api::{
    annotations,
    names::{self, CONTROLLER},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{TestEnvironment, program, service_account};

/// The collection of Secrets in the controller's namespace.
pub(super) fn secrets() -> String {
    format!("/api/v1/namespaces/{}/secrets", names::SYSTEM_NAMESPACE)
}

/// The collection of MemberClusters.
pub(super) const MEMBERS: &str = "/apis/fedrs.dev/v1alpha1/memberclusters";

impl TestEnvironment {
    /// Runs `fedrs join` as an administrator of both clusters. Panics with its output if it fails.
    pub async fn join(&self, member: &str) -> String {
        self.join_with(member, &[]).await
    }

    /// As [`join`](Self::join), with further options.
    pub async fn join_with(&self, member: &str, options: &[&str]) -> String {
        let files = self.kubeconfigs(member);
        let mut arguments = vec!["join".to_owned(), member.to_owned()];
        arguments.extend(["--member-kubeconfig".to_owned(), shown(files.member())]);
        let route = &self.real().shared.members[member];
        if route.proxy.is_some() {
            // The controller reaches the member through a proxy.
            arguments.extend(["--member-server".to_owned(), server(&route.controlled)]);
        }
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        self.fedrs(&files, arguments).await
    }

    /// Runs `fedrs unjoin` as a user without a kubeconfig of the member.
    pub async fn unjoin(&self, member: &str) -> String {
        let files = self.kubeconfigs(member);
        self.fedrs(&files, vec!["unjoin".to_owned(), member.to_owned()])
            .await
    }

    async fn fedrs(&self, files: &Files, arguments: Vec<String>) -> String {
        let host = shown(files.host());
        let ran = tokio::task::spawn_blocking(move || {
            Command::new(program::path())
                .args(&arguments)
                .args(["--host-kubeconfig", &host])
                .output()
        });
        let output = ran.await.expect("the task does not panic");
        let output = output.expect("the program can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let output_text = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{output_text}");
        output_text
    }

    fn kubeconfigs(&self, member: &str) -> Files {
        let files = Files(TempDir::with_prefix("fedrs-user-").expect("a temporary directory"));
        let shared = self.real().shared;
        fs::write(files.host(), &shared.host).expect("a file can be written");
        let member = &shared.members[member].direct;
        fs::write(files.member(), member).expect("a file can be written");
        files
    }

    /// Adds `member` by hand: a Secret with a token of the controller's account that expires soon and is to be renewed
    /// ([`Capability::AuditLog`](super::Capability)). Returns the kubeconfig.
    pub async fn join_with_an_old_token(&self, member: &str) -> String {
        const LIFE: i64 = 600;
        const AGE: i64 = 400;
        let path = format!(
            "/api/v1/namespaces/{}/serviceaccounts/{CONTROLLER}",
            names::SYSTEM_NAMESPACE
        );
        let found = self.on_member(member, "GET", &path, &Value::Null).await;
        let found = found.expect("the account is there");
        let account = ServiceAccount {
            namespace: names::SYSTEM_NAMESPACE.to_owned(),
            name: CONTROLLER.to_owned(),
            uid: found["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        let now = Timestamp::now().as_second();
        let validity = Validity {
            issued: now - AGE,
            expires: now - AGE + LIFE,
        };
        let shared = self.real().shared;
        let token = {
            let mut control_planes = shared.control_planes().await;
            let cluster = control_planes.member(member).expect("it is a member");
            let token = cluster.token(&account, validity);
            token.expect("a token can be signed")
        };
        let route = &shared.members[member].controlled;
        let kubeconfig = service_account::with_user(route, &json!({ "token": token }));
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": names::KUBECONFIG_TYPE,
            "metadata": { "name": secret_name(member), "annotations": { annotations::RENEW_TOKEN: "true" } },
            "stringData": { names::KUBECONFIG_KEY: kubeconfig },
        });
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1",
            "kind": "MemberCluster",
            "metadata": { "name": member },
            "spec": { "secretRef": { "name": secret_name(member) } },
        });
        for (path, object) in [(secrets().as_str(), secret), (MEMBERS, object)] {
            let made = self.on_host("POST", path, &object).await;
            made.expect("members can be made by hand");
        }
        self.stored_kubeconfig(member).await
    }

    /// The stored kubeconfig in the Secret of a member.
    pub async fn stored_kubeconfig(&self, member: &str) -> String {
        let path = format!("{}/{}", secrets(), secret_name(member));
        let secret = self.on_host("GET", &path, &Value::Null).await;
        let secret = secret.expect("the Secret is there");
        let text = secret["data"][names::KUBECONFIG_KEY].as_str();
        text.unwrap_or_default().to_owned()
    }

    /// The status of a condition of a MemberCluster: `True`, `False`, or none.
    pub async fn member_condition(&self, member: &str, type_: &str) -> Option<String> {
        let path = format!("{MEMBERS}/{member}");
        let object = self.on_host("GET", &path, &Value::Null).await.ok()?;
        let conditions = object.pointer("/status/conditions")?.as_array()?;
        let condition = conditions
            .iter()
            .find(|condition| condition["type"] == type_)?;
        condition["status"].as_str().map(str::to_owned)
    }
}

/// The name that `fedrs join` gives the Secret.
fn secret_name(member: &str) -> String {
    format!("member-{member}")
}

/// The kubeconfigs of a user.
struct Files(TempDir);

impl Files {
    fn host(&self) -> PathBuf {
        self.0.path().join("host.yaml")
    }

    fn member(&self) -> PathBuf {
        self.0.path().join("member.yaml")
    }
}

fn shown(path: PathBuf) -> String {
    path.into_os_string()
        .into_string()
        .expect("temporary directories have plain names")
}

/// The server that one of our kubeconfigs names.
fn server(kubeconfig: &str) -> String {
    let kubeconfig: Value = serde_json::from_str(kubeconfig).expect("ours are JSON");
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str();
    server.unwrap_or_default().to_owned()
}
