//! Waiting until the controller has taken a member up, and what to do if it doesn't.

use std::time::Duration;

use anyhow::bail;
use fedrs_api::MemberCluster;
use kube::ResourceExt;
use tokio::time::{Instant, sleep};

use crate::{
    cluster_client::ClusterClient,
    leader::{Leader, leader},
    member_cluster,
    membership::Membership,
    say::Say,
};

/// How often the member's state is looked at.
const PERIOD: Duration = Duration::from_millis(500);

/// What a MemberCluster says of its member.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// No controller has said anything yet.
    Unseen,
    /// Something is not as it should be yet.
    NotYet {
        /// The condition's reason.
        reason: String,
        /// Condition, reason and message.
        text: String,
    },
    /// It is used.
    Ready,
}

fn standing(member: &MemberCluster) -> Standing {
    let conditions = member.status.as_ref().map(|it| it.conditions.as_slice());
    let conditions = conditions.unwrap_or_default();
    let condition = |type_: &str| conditions.iter().find(|it| it.type_ == type_);
    let awaited = ["Ready", "Synced"].map(condition);
    if awaited[0].is_none() {
        return Standing::Unseen;
    }
    let open = awaited.into_iter().flatten().find(|it| it.status != "True");
    match open {
        None => Standing::Ready,
        Some(condition) => Standing::NotYet {
            reason: condition.reason.clone(),
            text: format!(
                "{} is {} ({}): {}",
                condition.type_, condition.status, condition.reason, condition.message
            ),
        },
    }
}

impl Standing {
    fn words(&self) -> &str {
        match self {
            Self::Unseen => "the controller has not looked at it yet",
            Self::NotYet { text, .. } => text,
            Self::Ready => "ready",
        }
    }

    /// What the user can do about it.
    fn advice(&self, membership: &Membership, leader: &Leader) -> String {
        let Membership {
            name, namespace, ..
        } = membership;
        match (self, leader) {
            (_, Leader::Stopped) => {
                format!("No controller runs: the Lease in namespace {namespace} is not held.")
            }
            (Self::Unseen, Leader::Unknown) => {
                format!("Does a controller run on this host, in namespace {namespace}? There is no Lease of one.")
            }
            (Self::Unseen, Leader::Runs(holder)) => {
                format!("A controller runs ({holder}); its log says what it waits for.")
            }
            (Self::NotYet { reason, .. }, _) if ["Unreachable", "ProbeFailing"].contains(&&**reason) => {
                "Where the controller runs, the member has to be reachable by the address in its kubeconfig; \
                 --member-server gives another one."
                    .to_owned()
            }
            _ => format!("`kubectl describe mc {name}` says more."),
        }
    }
}

/// Waits until the member is ready, telling what it is waiting for. Fails if it isn't within `patience`.
pub(super) async fn wait(
    host: &ClusterClient,
    membership: &Membership,
    patience: Duration,
    say: &mut Say,
) -> anyhow::Result<()> {
    let name = &membership.name;
    let until = Instant::now() + patience;
    loop {
        let member = member_cluster::existing(host, name).await?;
        let standing = standing(&member);
        if standing == Standing::Ready {
            if leader(host, &membership.namespace).await? == Leader::Stopped {
                say.warn("no controller runs: what follows is what the last one said");
            }
            say.line(format_args!("{name} is ready{}", about(&member)));
            return Ok(());
        }
        say.waiting(standing.words());
        if Instant::now() >= until {
            let leader = leader(host, &membership.namespace).await?;
            bail!(
                "{name} is not ready after {patience:?}: {}\n{}\n\
                 Everything is in place: it gets ready by itself once that is mended. The same command again only waits.",
                standing.words(),
                standing.advice(membership, &leader),
            );
        }
        sleep(PERIOD).await;
    }
}

/// What is known of a member, and what a user may have forgotten.
fn about(member: &MemberCluster) -> String {
    let mut text = String::new();
    if let Some(status) = &member.status {
        if let Some(version) = &status.version {
            text = format!(": Kubernetes {version}");
        }
        if let Some(nodes) = status.nodes {
            text = format!("{text}, {} of {} nodes ready", nodes.ready, nodes.total);
        }
    }
    let name = member.name_any();
    if member.spec.drain {
        text = format!("{text}; it is being drained: `fedrs uncordon {name}` ends that");
    } else if member.spec.unschedulable {
        text = format!("{text}; it is cordoned: `fedrs uncordon {name}` ends that");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(conditions: &[(&str, &str)]) -> MemberCluster {
        let condition = |(type_, status): &(&str, &str)| {
            json!({
                "type": type_, "status": status, "reason": "Because", "message": "so it is",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        let object = json!({
            "apiVersion": "fedrs.dev/v1alpha1", "kind": "MemberCluster",
            "metadata": { "name": "eu" }, "spec": {}, "status": { "conditions": conditions },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_member_is_ready_when_it_answers_and_is_watched() {
        assert_eq!(standing(&member(&[])), Standing::Unseen);
        let both = member(&[("Ready", "True"), ("Synced", "True")]);
        assert_eq!(standing(&both), Standing::Ready);
        for open in [
            [("Ready", "False"), ("Synced", "True")],
            [("Ready", "True"), ("Synced", "False")],
        ] {
            let standing = standing(&member(&open));
            assert!(standing.words().contains("False (Because): so it is"));
        }
    }
}
