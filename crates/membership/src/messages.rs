//! The texts of progress, warnings and plans. The error types own those of errors; the test below shows all of them.

use std::fmt;

use fedrs_api::pluralize;

use crate::{
    cluster_client::Side,
    drain::pending::{DrainPending, PendingReplicas, PendingSet},
    explain::{Explanation, Observation},
    join::readiness::{Exclusion, Hint, Readiness, ReadyMember},
    object::{ObjectRef, WriteMode},
    progress::{ApplyResult, KeepReason, Leftovers, NewToken, Progress, TokenProblem, Warning},
    uninstall::{Remaining, UninstallPlan},
};

/// The number of objects that are listed when a namespace is not empty.
const LISTED_OBJECTS: usize = 5;

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { side, url, version } => {
                write!(f, "{}{url} runs Kubernetes {version}", column(*side))
            }
            Self::HostIsMember => f.write_str("The host becomes a member of itself."),
            Self::Applied {
                side,
                object,
                result,
                mode,
                token,
            } => {
                let side = column(*side);
                write!(f, "{side}{object} {result}{}", dry_run(*mode))?;
                token.as_ref().map_or(Ok(()), |token| write!(f, "{token}"))
            }
            Self::DryRunComplete => f.write_str("Dry run: no changes were made."),
            Self::WaitingForMember(readiness) => write!(f, "waiting: {readiness}"),
            Self::MemberReady(member) => member.fmt(f),
            Self::Cordoned(name) => write!(f, "membercluster/{name} cordoned"),
            Self::AlreadyCordoned(name) => write!(f, "membercluster/{name} already cordoned"),
            Self::Uncordoned {
                name,
                canceled_drain,
            } => {
                let canceled = if *canceled_drain {
                    ", drain canceled"
                } else {
                    ""
                };
                write!(f, "membercluster/{name} uncordoned{canceled}")
            }
            Self::NotCordoned(name) => write!(f, "membercluster/{name} already uncordoned"),
            Self::Draining(name) => write!(f, "membercluster/{name} draining"),
            Self::AlreadyDraining(name) => write!(f, "membercluster/{name} already draining"),
            Self::WaitingForDrain(pending) => write!(f, "waiting: {pending}"),
            Self::Drained(name) => write!(f, "membercluster/{name} drained"),
            Self::Member(name) => write!(f, "{name}:"),
            Self::Deleted { side, object } => write!(f, "{}{object} deleted", column(*side)),
            Self::Kept {
                side,
                object,
                reason,
            } => write!(f, "{}{object} kept: {reason}", column(*side)),
            Self::ReplicaSetDeleted { namespace, name } => {
                let side = column(Side::Member);
                write!(
                    f,
                    "{side}replicaset/{namespace}/{name} deleted: it had no replicas"
                )
            }
            Self::ReplicaSetKept {
                namespace,
                name,
                replicas,
            } => {
                let (side, replicas) = (column(Side::Member), pluralize(*replicas, "replica"));
                write!(
                    f,
                    "{side}replicaset/{namespace}/{name} kept: it has {replicas}"
                )
            }
            Self::MemberUnchanged(name) => write!(
                f,
                "No changes were made in the cluster {name}. Its ReplicaSets keep running if it still exists."
            ),
            Self::ManualCleanup(leftovers) => leftovers.fmt(f),
            Self::Unjoined(name) => write!(f, "{name} is no longer a member"),
            Self::FinalizersRemoved(sets) => {
                let (side, sets) = (column(Side::Host), pluralize(*sets, "FederatedReplicaSet"));
                write!(f, "{side}removed the finalizers of {sets}")
            }
        }
    }
}

/// The first column of a line about an object.
fn column(side: Side) -> String {
    format!("{:<8}", side.to_string())
}

fn dry_run(mode: WriteMode) -> &'static str {
    match mode {
        WriteMode::Persist => "",
        WriteMode::DryRun => " (dry run)",
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name.to_lowercase(), self.name)
    }
}

impl fmt::Display for ApplyResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "unchanged",
            Self::Created => "created",
            Self::Configured => "configured",
        })
    }
}

impl fmt::Display for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account,
            expires,
            replaces,
        } = self;
        write!(
            f,
            ": new token for serviceaccount/{account}, expires {expires:.0}"
        )?;
        let problem = match replaces {
            None => return Ok(()),
            Some(TokenProblem::Unreadable) => "is unreadable",
            Some(TokenProblem::AccountDeleted) => "belongs to a deleted ServiceAccount",
            Some(TokenProblem::Rejected) => "has expired or was revoked",
            Some(TokenProblem::OtherAccount) => "belongs to another account",
        };
        write!(f, " (the previous token {problem})")
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCreatedByJoin => f.write_str("not created by fedrs join"),
            Self::NotEmpty(objects) => {
                let mut listed: Vec<&str> = objects.iter().map(String::as_str).collect();
                if listed.len() > LISTED_OBJECTS {
                    listed.truncate(LISTED_OBJECTS);
                    listed.push("and others");
                }
                write!(f, "it contains {}", listed.join(", "))
            }
            Self::UnknownContents(error) => write!(f, "cannot list its contents ({error})"),
            Self::RequiresMemberKubeconfig => {
                f.write_str("set --member-kubeconfig to delete it if it is empty")
            }
        }
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotObserved => f.write_str("the controller has not observed the member yet"),
            Self::NotReady {
                condition,
                status,
                reason,
                message,
            } => write!(f, "{condition} is {status} ({reason}): {message}"),
            Self::Ready(member) => member.fmt(f),
        }
    }
}

impl fmt::Display for ReadyMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(f, "{name} is ready")?;
        if let Some(version) = &self.version {
            write!(f, ": Kubernetes {version}")?;
        }
        if let Some((ready, total)) = self.nodes {
            write!(f, ", {ready} of {} ready", pluralize(total, "node"))?;
        }
        let excluded = match self.excluded {
            None => return Ok(()),
            Some(Exclusion::Cordoned) => "cordoned",
            Some(Exclusion::Draining) => "draining",
        };
        write!(
            f,
            ". It gets no replicas because it is {excluded}: run `fedrs uncordon {name}`"
        )
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartController(namespace) => write!(
                f,
                "No controller is running: no process holds the Lease in namespace {namespace}."
            ),
            Self::CheckNamespace(namespace) => write!(
                f,
                "Check that a controller runs on the host with the namespace {namespace}: it has no Lease there."
            ),
            Self::ReadLog(holder) => {
                write!(f, "See the log of the controller {holder} for the cause.")
            }
            Self::CheckConnection => f.write_str(
                "Check that the controller can connect to the address in the member's kubeconfig. Set another address \
                 with --member-server.",
            ),
            Self::Describe(name) => {
                write!(f, "Run `kubectl describe mc {name}` for details.")
            }
        }
    }
}

impl fmt::Display for DrainPending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotObserved => {
                f.write_str("the controller has not observed the drain (is it running?)")
            }
            Self::Terminating => f.write_str("the last replicas are terminating"),
            Self::NotDrained(message) => f.write_str(message),
            Self::Replicas(replicas) => replicas.fmt(f),
        }
    }
}

impl fmt::Display for PendingReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.not_ready {
            write!(f, "the member is not ready ({message}); ")?;
        }
        let mut sets: Vec<String> = self.sets.iter().map(ToString::to_string).collect();
        if self.other_sets > 0 {
            sets.push(pluralize(self.other_sets, "more set"));
        }
        let replicas = pluralize(self.replicas, "replica");
        write!(f, "{replicas} left: {}", sets.join(", "))
    }
}

impl fmt::Display for PendingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.set, self.replicas)?;
        if self.blocked_by.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.blocked_by.join("; "))
        }
    }
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, namespace } = self;
        write!(
            f,
            "The member may still have clusterrole/{account} and a ServiceAccount with a valid token. To delete them, run \
             with a kubeconfig of the member:\n  \
             kubectl delete clusterrole {account}\n  \
             kubectl delete namespace {namespace}      # only if it contains nothing else"
        )
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(error) => error.fmt(f),
            Self::InsecureSkipTlsVerify => f.write_str(
                "the member's kubeconfig sets insecure-skip-tls-verify: the controller sends its token to an unverified \
                 server",
            ),
            Self::LoopbackServer(server) => write!(
                f,
                "{server} is reachable from this machine only: if the controller runs elsewhere, set the member's address \
                 with --member-server"
            ),
            Self::ControllerStopped => {
                f.write_str("no controller is running: the status of the member may be outdated")
            }
        }
    }
}

impl fmt::Display for UninstallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sets > 0 {
            writeln!(
                f,
                "  removes the finalizers of {}; deleting them no longer waits for members",
                pluralize(self.sets, "FederatedReplicaSet")
            )?;
        }
        if !self.members.is_empty() {
            writeln!(
                f,
                "  removes {} ({}) with all objects that join created",
                pluralize(self.members.len(), "member"),
                self.members.join(", ")
            )?;
        }
        if let Some(namespace) = &self.namespace {
            writeln!(f, "  deletes the namespace {namespace} if it is empty then")?;
        }
        f.write_str("ReplicaSets in the members keep running.")
    }
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = "FederatedReplicaSet";
        match self {
            Self::Nothing => f.write_str("The CRDs are not installed."),
            Self::Crds { sets } => write!(
                f,
                "{} and the CRDs remain: run `fedrs crds | kubectl delete -f -` to delete them.",
                pluralize(*sets, kind)
            ),
            Self::SharedCrds { sets, other_sets } => write!(
                f,
                "{} and the CRDs remain. Other federations need the CRDs: they have {}.",
                pluralize(*sets, kind),
                pluralize(*other_sets, kind)
            ),
        }
    }
}

/// The counts of a set in one sentence.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let desired = pluralize(self.desired_replicas, "replica");
        write!(f, "{}/{}: {desired} desired", self.namespace, self.name)?;
        let status = &self.status;
        if self.observation != Observation::Missing {
            write!(f, ", {} placed", status.placed_replicas)?;
            if status.unplaced_replicas > 0 {
                write!(f, ", {} not placed", status.unplaced_replicas)?;
            }
            let (ready, available) = (status.ready_replicas, status.available_replicas);
            write!(f, ", {ready} ready, {available} available")?;
        }
        match self.observation {
            Observation::Missing => {
                f.write_str("\nThe controller has not observed the FederatedReplicaSet yet.")
            }
            Observation::Outdated => {
                f.write_str("\nThe controller has not observed the latest spec yet.")
            }
            Observation::Current => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
