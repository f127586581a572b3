//! Carrying the steps of a join out, one after another: the member first, then the token, then the host.

use std::{collections::BTreeMap, time::Duration};

use kube::config::Cluster;
use serde_json::Value;

use super::{
    plan::{self, Found, Step},
    token::{self, Verdict},
};
use crate::{
    cluster_client::{ClusterClient, Side},
    member_kubeconfig::{self, Stored},
    membership::Membership,
    object::{Change, NAMESPACE, SECRET, Write},
    say::Say,
};

/// All that a join works with.
pub(super) struct Join<'a> {
    pub(super) host: &'a ClusterClient,
    pub(super) member: &'a ClusterClient,
    pub(super) membership: Membership,
    /// Labels that the user wants on the MemberCluster.
    pub(super) labels: BTreeMap<String, String>,
    /// How the controller reaches the member.
    pub(super) route: Cluster,
    pub(super) token_duration: Duration,
    pub(super) write: Write,
}

/// What is to be in the Secret.
enum Credentials {
    /// What is there.
    Kept,
    /// The same token, by another way to the member.
    Rerouted(String),
    /// A new token.
    New {
        /// With the token.
        kubeconfig: String,
        /// What to say of it.
        told: String,
    },
}

impl Join<'_> {
    /// All steps, as far as they can be told beforehand.
    pub(super) fn steps(&self, found: &Found) -> Vec<Step> {
        let mut steps = plan::in_member(&self.membership, found, None);
        steps.extend(plan::on_host(&self.membership, &self.labels, found, None));
        steps
    }

    /// Carries out all steps, telling each.
    pub(super) async fn carry_out(&self, found: &Found, say: &mut Say) -> anyhow::Result<()> {
        let mut role = None;
        let mut first = plan::in_member(&self.membership, found, None);
        first.truncate(plan::OWNER + 1);
        for step in &first {
            role = self.take(step, found, say, None).await?;
        }
        // What the role owns names its uid, which is known once it is there.
        let owner = role.as_ref().and_then(|it| it["metadata"]["uid"].as_str());
        for step in plan::in_member(&self.membership, found, owner).split_off(first.len()) {
            self.take(&step, found, say, None).await?;
        }
        let credentials = self.credentials(found).await?;
        let (kubeconfig, told) = match &credentials {
            Credentials::Kept => (None, None),
            Credentials::Rerouted(kubeconfig) => (Some(kubeconfig), None),
            Credentials::New { kubeconfig, told } => (Some(kubeconfig), Some(told)),
        };
        if kubeconfig.is_some() {
            for doubt in member_kubeconfig::doubts(&self.route) {
                say.warn(doubt);
            }
        }
        let kubeconfig = kubeconfig.map(String::as_str);
        for step in plan::on_host(&self.membership, &self.labels, found, kubeconfig) {
            let more = told.filter(|_| step.address.kind == SECRET);
            self.take(&step, found, say, more.map(String::as_str))
                .await?;
        }
        Ok(())
    }

    /// Carries out one step; `more` is said of it besides. Answers the object, if it was written.
    async fn take(
        &self,
        step: &Step,
        found: &Found,
        say: &mut Say,
        more: Option<&str>,
    ) -> anyhow::Result<Option<Value>> {
        let (remote, namespace) = match step.side {
            Side::Host => (self.host, &found.host_namespace),
            Side::Member => (self.member, &found.member_namespace),
        };
        // In a dry run the namespace isn't made, and nothing in it can be tried.
        let placed = step.address.namespace.is_none() || namespace.is_some();
        let mut change = &step.change;
        let mut written = None;
        if self.write == Write::Real || placed {
            let answer = remote.carry_out(&step.address, change, self.write).await;
            written = match answer {
                // A controller that starts just now makes it, too.
                Err(failure) if failure.code() == Some(409) && step.address.kind == NAMESPACE => {
                    change = &Change::None;
                    None
                }
                answer => answer?,
            };
        }
        let done = done(change, self.write);
        let more = more.map(|it| format!(": {it}")).unwrap_or_default();
        say.step(step.side, &step.address, format_args!("{done}{more}"));
        Ok(written)
    }

    /// Decides what the Secret is to hold: the stored token as long as the member accepts it.
    async fn credentials(&self, found: &Found) -> anyhow::Result<Credentials> {
        let stored = found.secret.as_ref().map(Stored::of_secret);
        let why = match stored {
            None => None,
            Some(None) => Some("the old one could not be read"),
            // An API server goes on accepting the token of an account that is gone for some seconds.
            Some(Some(_)) if !found.has_account() => Some("the old one's account was gone"),
            Some(Some(stored)) => {
                match token::judge(self.member, &self.membership, &stored).await? {
                    Verdict::Good if stored.takes(&self.route) => return Ok(Credentials::Kept),
                    Verdict::Good => {
                        let rerouted = Stored {
                            route: self.route.clone(),
                            ..stored
                        };
                        return Ok(Credentials::Rerouted(self.kubeconfig(&rerouted)?));
                    }
                    Verdict::Bad(why) => Some(why),
                }
            }
        };
        self.new_token(why).await
    }

    /// Has a token made; in a dry run none. `why` the stored one isn't kept.
    async fn new_token(&self, why: Option<&str>) -> anyhow::Result<Credentials> {
        let (text, until) = match self.write {
            Write::DryRun => (String::new(), String::new()),
            Write::Real => {
                let token =
                    token::request(self.member, &self.membership, self.token_duration).await?;
                (token.text, format!(", good until {:.0}", token.expires))
            }
        };
        let told = match why {
            None => format!("with a token of {}{until}", self.membership.account()),
            Some(why) => format!("renewed token{until}; {why}"),
        };
        let stored = Stored::with_token(self.route.clone(), text);
        let kubeconfig = self.kubeconfig(&stored)?;
        Ok(Credentials::New { kubeconfig, told })
    }

    fn kubeconfig(&self, stored: &Stored) -> anyhow::Result<String> {
        stored.to_yaml(&self.membership.name, &self.membership.account())
    }
}

/// What was done, in a word or two.
fn done(change: &Change, write: Write) -> &'static str {
    match (change, write) {
        (Change::None, _) => "unchanged",
        (Change::Create(_), Write::Real) => "created",
        (Change::Create(_), Write::DryRun) => "would be created",
        (Change::Patch(_), Write::Real) => "updated",
        (Change::Patch(_), Write::DryRun) => "would be updated",
    }
}
