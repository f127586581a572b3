//! Applies the steps of a join in order: the member first, then the token, then the host.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::config::Cluster;
use serde_json::Value;

use super::{
    namespaces::JoinNamespaces,
    plan::{self, ExistingObjects, Step},
    token,
};
use crate::{
    Error,
    cluster_client::{Clusters, RequestError},
    kubeconfig::KubeconfigSource,
    membership::Membership,
    object::{Write, WriteMode},
    progress::{ApplyResult, NewToken, Progress, Reporter, TokenProblem},
    stored_kubeconfig::{self, StoredKubeconfig},
};

/// Which cluster becomes a member, and how.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// The member's name: a DNS label.
    pub name: String,
    /// Labels for the MemberCluster.
    pub labels: BTreeMap<String, String>,
    /// The federation; empty for the one without a name.
    pub federation: String,
    /// The namespace of the controller on the host, and of its ServiceAccount in the member.
    pub namespace: String,
    /// In which namespaces of the member the controller gets permissions.
    pub namespaces: JoinNamespaces,
    /// The requested lifetime of the token.
    pub token_duration: Duration,
    /// How long to wait until the controller uses the member.
    pub timeout: Duration,
    /// Whether writes are persisted.
    pub mode: WriteMode,
    /// The user's kubeconfig of the member.
    pub member: KubeconfigSource,
    /// The address at which the controller connects to the member; `None` for the one in the kubeconfig.
    pub member_server: Option<String>,
    /// The image of the controller of LocalReplicaSets that is installed in the member, if one is.
    pub replica_sets: Option<String>,
    /// Whether discovery gets an account of its own in the member, and a Secret on the host.
    pub with_discovery: bool,
    /// Whether to store a kubeconfig that does not verify the member's certificate.
    pub allow_insecure: bool,
}

/// The inputs of a join.
pub(super) struct Join<'a> {
    pub(super) clusters: &'a Clusters<'a>,
    pub(super) request: &'a JoinRequest,
    pub(super) membership: Membership,
    /// How the controller connects to the member.
    pub(super) connection: Cluster,
}

/// The kubeconfig for the Secret, if it has to change, and the token in it, if that is new.
type Credentials = (Option<StoredKubeconfig>, Option<NewToken>);

impl Join<'_> {
    /// All steps, as far as they are known before the first write.
    pub(super) fn steps(&self, existing: &ExistingObjects) -> Vec<Step> {
        let mut steps = plan::member_steps(&self.membership, existing, None);
        steps.extend(self.replica_set_steps(existing, None));
        steps.extend(plan::discovery_steps(&self.membership, existing, None));
        steps.extend(self.host_steps(existing, None, None));
        steps
    }

    /// The steps on the host, the MemberCluster last. Without a kubeconfig of the controller, or of discovery, the one in the
    /// Secret stays.
    fn host_steps(
        &self,
        existing: &ExistingObjects,
        kubeconfig: Option<&str>,
        of_discovery: Option<&str>,
    ) -> Vec<Step> {
        let (membership, labels) = (&self.membership, &self.request.labels);
        let mut steps = plan::host_steps(membership, labels, existing, kubeconfig);
        let discovery = plan::discovery_host_steps(membership, existing, of_discovery);
        let last = steps.len() - 1;
        steps.splice(last..last, discovery);
        steps
    }

    fn replica_set_steps(&self, existing: &ExistingObjects, owner: Option<&str>) -> Vec<Step> {
        let image = self.request.replica_sets.as_deref();
        image.map_or_else(Vec::new, |image| {
            plan::replica_set_steps(&self.membership, existing, owner, image)
        })
    }

    /// Applies all steps and reports each.
    pub(super) async fn apply(
        &self,
        existing: &ExistingObjects,
        reporter: &mut dyn Reporter,
    ) -> Result<(), Error> {
        let mut role = None;
        let mut first = plan::member_steps(&self.membership, existing, None);
        first.truncate(plan::OWNER + 1);
        let mut now = first.clone();
        if plan::removes_permissions(&self.membership, existing) {
            // Not before the namespaces are empty.
            now.truncate(plan::OWNER);
        }
        for step in &now {
            role = self.apply_step(step, existing, None, reporter).await?;
        }
        // The other objects refer to the uid of the ClusterRole, which is known once that exists.
        let owner = role
            .as_ref()
            .and_then(|role| role["metadata"]["uid"].as_str());
        let steps = plan::member_steps(&self.membership, existing, owner);
        let replica_sets = self.replica_set_steps(existing, owner);
        let discovery = plan::discovery_steps(&self.membership, existing, owner);
        let rest = steps[first.len()..].iter();
        for step in rest.chain(&replica_sets).chain(&discovery) {
            self.apply_step(step, existing, None, reporter).await?;
        }
        self.apply_on_host(existing, reporter).await
    }

    async fn apply_on_host(
        &self,
        existing: &ExistingObjects,
        reporter: &mut dyn Reporter,
    ) -> Result<(), Error> {
        let account = self.membership.account();
        let (kubeconfig, token) = self
            .kubeconfig(existing, &account, existing.secret.as_ref())
            .await?;
        if kubeconfig.is_some() {
            for warning in stored_kubeconfig::warnings(&self.connection) {
                reporter.warn(warning);
            }
        }
        let (mut of_discovery, mut token_of_discovery) = (None, None);
        if self.membership.discovery {
            let account = self.membership.discovery_account();
            let secret = existing.discovery_secret();
            (of_discovery, token_of_discovery) =
                self.kubeconfig(existing, &account, secret).await?;
        }
        let tokens = [
            (self.membership.secret_ref(), token),
            (self.membership.discovery_secret_ref(), token_of_discovery),
        ];
        let steps = self.host_steps(existing, kubeconfig.as_deref(), of_discovery.as_deref());
        for step in steps {
            let token = tokens.iter().find(|(secret, _)| *secret == step.object);
            let token = token.and_then(|(_, token)| token.as_ref());
            self.apply_step(&step, existing, token, reporter).await?;
        }
        Ok(())
    }

    /// The kubeconfig of `account` that its `secret` has to have, if that has to change, and the token in it, if that is new.
    async fn kubeconfig(
        &self,
        existing: &ExistingObjects,
        account: &str,
        secret: Option<&Value>,
    ) -> Result<(Option<String>, Option<NewToken>), Error> {
        let (stored, token) = self.credentials(existing, account, secret).await?;
        let stored = stored.map(|stored| stored.to_yaml(&self.membership.name, account));
        Ok((stored.transpose()?, token))
    }

    /// Applies one step. Returns the object if it was written.
    pub(super) async fn apply_step(
        &self,
        step: &Step,
        existing: &ExistingObjects,
        token: Option<&NewToken>,
        reporter: &mut dyn Reporter,
    ) -> Result<Option<Value>, RequestError> {
        let cluster = self.clusters.client(step.cluster);
        // A dry run does not create the namespace, so the API server can't validate objects inside.
        let namespace = step.object.namespace.as_deref();
        let can_write = namespace.is_none_or(|name| existing.has_namespace(step.cluster, name));
        let mut result = match step.write {
            Write::None => ApplyResult::Unchanged,
            Write::Create(_) => ApplyResult::Created,
            Write::Patch(_) => ApplyResult::Configured,
        };
        let mut written = None;
        if self.request.mode == WriteMode::Persist || can_write {
            let response = cluster
                .write(&step.object, &step.write, self.request.mode)
                .await;
            written = match response {
                // A controller that has just started creates the namespace as well.
                Err(error) if error.code() == Some(409) && step.object.is::<Namespace>() => {
                    result = ApplyResult::Unchanged;
                    None
                }
                response => response?,
            };
        }
        reporter.progress(Progress::Applied {
            cluster: step.cluster,
            object: step.object.clone(),
            result,
            mode: self.request.mode,
            token: token.cloned(),
        });
        Ok(written)
    }

    /// Decides which kubeconfig the `secret` of `account` holds: the stored token stays while the member accepts it.
    async fn credentials(
        &self,
        existing: &ExistingObjects,
        account: &str,
        secret: Option<&Value>,
    ) -> Result<Credentials, RequestError> {
        let Some(secret) = secret else {
            return self.new_token(account, None).await;
        };
        let Some(stored) = StoredKubeconfig::of_secret(secret) else {
            let unreadable = Some(TokenProblem::Unreadable);
            return self.new_token(account, unreadable).await;
        };
        // An API server accepts the token of a deleted account for some more seconds.
        if !existing.has_account(account) {
            let deleted = Some(TokenProblem::AccountDeleted);
            return self.new_token(account, deleted).await;
        }
        let member = self.clusters.member;
        let problem = token::check(member, &self.membership, account, &stored).await?;
        if problem.is_some() {
            return self.new_token(account, problem).await;
        }
        if stored.connects_as(&self.connection) {
            return Ok((None, None));
        }
        let connection = self.connection.clone();
        let reconnected = StoredKubeconfig {
            connection,
            ..stored
        };
        Ok((Some(reconnected), None))
    }

    /// Requests a new token of `account`, which replaces one with the problem `replaces`. A dry run requests none.
    async fn new_token(
        &self,
        account: &str,
        replaces: Option<TokenProblem>,
    ) -> Result<Credentials, RequestError> {
        let mut text = String::new();
        let mut new = None;
        if self.request.mode == WriteMode::Persist {
            let token = token::request(
                self.clusters.member,
                &self.membership,
                account,
                self.request.token_duration,
            )
            .await?;
            text = token.token;
            new = Some(NewToken {
                account: account.to_owned(),
                expires: token.expiration_timestamp.0,
                replaces,
            });
        }
        let stored = StoredKubeconfig::with_token(self.connection.clone(), text);
        Ok((Some(stored), new))
    }
}
