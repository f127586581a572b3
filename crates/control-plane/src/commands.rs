//! The command line of each program: pure, so that one file shows how a cluster is configured.

use std::{net::IpAddr, path::Path, process::Command};

use crate::{
    address::{API_PORT, ETCD_PEER_PORT, ETCD_PORT},
    nodes::MANAGED,
    pki::Pki,
    programs::{Program, Programs},
    tokens::ISSUER,
};

/// The controllers that tests need. The others cost time, and some need clouds, kubelets or certificates.
const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,garbage-collector-controller,\
    replicaset-controller,deployment-controller,disruption-controller,horizontal-pod-autoscaler-controller,\
    node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller,\
    resourcequota-controller,clusterrole-aggregation-controller,endpointslice-controller";

// Timeouts of the controllers, in seconds: shorter than by default, since tests wait for them.

/// The time from the last heartbeat of a node until it is not ready. With less than 20 s, a busy machine loses nodes.
const NODE_GRACE: u32 = 20;
/// How long pods tolerate a node that is not ready.
const TOLERATION: u32 = 10;

/// The parameters that the command lines of one cluster share.
pub(crate) struct Settings<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) directory: &'a Path,
    pub(crate) pki: &'a Pki,
    pub(crate) address: IpAddr,
    /// Whether the API server logs each request, without bodies, to `audit.log`.
    pub(crate) audit: bool,
}

impl Settings<'_> {
    /// The command line of `program` in the cluster's directory; without arguments for one that is not a part of a cluster.
    pub(crate) fn command(&self, program: Program) -> Command {
        let mut command = Command::new(self.programs.path(program));
        // Proxies and kubeconfigs of the caller's environment don't apply.
        command.env_clear().current_dir(self.directory);
        match program {
            Program::Etcd => self.etcd(&mut command),
            Program::ApiServer => self.api_server(&mut command),
            Program::ControllerManager => self.controller_manager(&mut command),
            Program::Scheduler => self.scheduler(&mut command),
            Program::Kwok => self.kwok(&mut command),
            Program::Kubectl
            | Program::Helm
            | Program::Kstatus
            | Program::XdsClient
            | Program::CoreDns => {}
        }
        command
    }

    fn kubeconfig(&self) -> String {
        let file = self.directory.join("admin.yaml");
        format!("--kubeconfig={}", file.display())
    }

    fn etcd(&self, command: &mut Command) {
        let (clients, peers) = (
            format!("http://{}:{ETCD_PORT}", self.address),
            format!("http://{}:{ETCD_PEER_PORT}", self.address),
        );
        command
            .arg("--name=etcd")
            .arg(format!(
                "--data-dir={}",
                self.directory.join("etcd").display()
            ))
            .arg(format!("--listen-client-urls={clients}"))
            .arg(format!("--advertise-client-urls={clients}"))
            .arg(format!("--listen-peer-urls={peers}"))
            .arg(format!("--initial-advertise-peer-urls={peers}"))
            .arg(format!("--initial-cluster=etcd={peers}"))
            .arg("--log-level=warn")
            // Nobody needs the data after a crash of the machine.
            .arg("--unsafe-no-fsync");
    }

    fn api_server(&self, command: &mut Command) {
        let pki = self.pki;
        command
            .arg(format!("--bind-address={}", self.address))
            .arg(format!("--secure-port={API_PORT}"))
            .arg(format!(
                "--etcd-servers=http://{}:{ETCD_PORT}",
                self.address
            ))
            .arg(format!("--tls-cert-file={}", pki.server_cert().display()))
            .arg(format!(
                "--tls-private-key-file={}",
                pki.server_key().display()
            ))
            .arg(format!("--client-ca-file={}", pki.ca_file().display()))
            .arg(format!("--service-account-issuer={ISSUER}"))
            .arg(format!(
                "--service-account-key-file={}",
                pki.tokens_public_key().display()
            ))
            .arg(format!(
                "--service-account-signing-key-file={}",
                pki.tokens_key().display()
            ))
            .arg("--service-cluster-ip-range=10.96.0.0/16")
            .arg("--authorization-mode=RBAC")
            // Some clusters enable it: creating an object that blocks its owner's deletion then needs permission.
            .arg("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
            // A loopback address is no valid endpoint for the `kubernetes` Service.
            .arg("--endpoint-reconciler-type=none")
            .arg("--enable-priority-and-fairness=false")
            // kwok repeats a rejected deletion by the name of the pod, which may be another one by then.
            .arg("--max-mutating-requests-inflight=2000")
            .arg("--max-requests-inflight=4000")
            .arg(format!(
                "--default-not-ready-toleration-seconds={TOLERATION}"
            ))
            .arg(format!(
                "--default-unreachable-toleration-seconds={TOLERATION}"
            ));
        if self.audit {
            command
                .arg(format!(
                    "--audit-policy-file={}",
                    self.directory.join("audit-policy.yaml").display()
                ))
                .arg(format!(
                    "--audit-log-path={}",
                    self.directory.join("audit.log").display()
                ))
                .arg("--audit-log-mode=blocking");
        }
    }

    fn controller_manager(&self, command: &mut Command) {
        command
            .arg(self.kubeconfig())
            .arg(format!("--bind-address={}", self.address))
            .arg("--leader-elect=false")
            .arg(format!("--controllers={CONTROLLERS}"))
            .arg("--kube-api-qps=500")
            .arg("--kube-api-burst=1000")
            .arg("--horizontal-pod-autoscaler-sync-period=2s")
            .arg("--node-monitor-period=1s")
            .arg(format!("--node-monitor-grace-period={NODE_GRACE}s"));
    }

    fn scheduler(&self, command: &mut Command) {
        command
            .arg(self.kubeconfig())
            .arg(format!("--bind-address={}", self.address))
            .arg("--leader-elect=false")
            .arg("--kube-api-qps=500")
            .arg("--kube-api-burst=1000");
    }

    fn kwok(&self, command: &mut Command) {
        command
            .arg(self.kubeconfig())
            .arg(format!(
                "--config={}",
                self.directory.join("stages.yaml").display()
            ))
            .arg(format!(
                "--manage-nodes-with-label-selector={}={}",
                MANAGED.0, MANAGED.1
            ))
            .arg("--manage-all-nodes=false")
            .arg("--node-ip=10.0.0.1")
            .arg(format!("--node-lease-duration-seconds={NODE_GRACE}"));
        // kwok creates a directory there.
        command.env("HOME", self.directory);
    }
}

/// Logs requests without bodies: enough to show which permissions are used.
pub(crate) const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";
