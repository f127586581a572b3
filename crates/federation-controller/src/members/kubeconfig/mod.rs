//! Kubeconfigs: what their current context needs, what one from a Secret may contain, and the client made of it.
//!
//! ```text
//! text --read--> Kubeconfig --permitted? (from a Secret)--> files read into it --> client
//! ```
//!
//! No error shows their content: the messages of a parser quote what it read.

mod connect;
mod error;
mod files;
#[cfg(test)]
mod fuzz_tests;
mod policy;

use std::path::Path;

use http::{HeaderValue, Uri};
use kube::config::{AuthInfo, Cluster, Context, NamedAuthInfo, NamedCluster, NamedContext};
use secrecy::ExposeSecret;

pub(in crate::members) use self::files::{Files, read_file};
pub use self::{
    connect::{Connect, OverNetwork, harden},
    error::{Insecure, KubeconfigError},
};

/// The cluster and the user of a kubeconfig's current context.
#[derive(Clone)]
pub struct Kubeconfig {
    cluster: Box<Cluster>,
    user: Box<AuthInfo>,
    /// The namespace of the context.
    namespace: Option<String>,
}

impl Kubeconfig {
    /// Reads what the current context of `yaml` needs.
    pub fn read(yaml: &str) -> Result<Self, KubeconfigError> {
        if yaml.trim().is_empty() {
            return Err(KubeconfigError::Empty);
        }
        let all =
            kube::config::Kubeconfig::from_yaml(yaml).map_err(|error| without_content(&error))?;
        Self::of(all, None)
    }

    /// Reads a file as kubectl does, or those that kubectl would without one ($KUBECONFIG, `~/.kube/config`), and what
    /// `context` of it needs, or else its current context. Paths in it are absolute then.
    pub fn read_from(file: Option<&Path>, context: Option<&str>) -> Result<Self, KubeconfigError> {
        let all = match file {
            Some(path) => kube::config::Kubeconfig::read_from(path),
            None => kube::config::Kubeconfig::read(),
        };
        Self::of(all.map_err(|error| without_content(&error))?, context)
    }

    fn of(all: kube::config::Kubeconfig, context: Option<&str>) -> Result<Self, KubeconfigError> {
        let name = context.map(str::to_owned).or(all.current_context);
        let name = name.ok_or(KubeconfigError::NoContext)?;
        let missing = |what, name: &str| KubeconfigError::Missing {
            what,
            name: name.to_owned(),
        };
        let context = all
            .contexts
            .into_iter()
            .find(|context| context.name == name);
        let context = context
            .and_then(|named| named.context)
            .ok_or_else(|| missing("context", &name))?;
        let cluster = all
            .clusters
            .into_iter()
            .find(|cluster| cluster.name == context.cluster);
        let cluster = cluster
            .and_then(|named| named.cluster)
            .ok_or_else(|| missing("cluster", &context.cluster))?;
        let user = match context.user.filter(|name| !name.is_empty()) {
            Some(name) => {
                let user = all.auth_infos.into_iter().find(|user| user.name == name);
                let user = user.ok_or_else(|| missing("user", &name))?;
                user.auth_info.unwrap_or_default()
            }
            None => AuthInfo::default(),
        };
        let kubeconfig = Self::new(cluster, user)?;
        Ok(Self {
            namespace: context.namespace,
            ..kubeconfig
        })
    }

    /// A kubeconfig with `cluster` and `user`. Fails if the cluster's server is no address.
    pub fn new(cluster: Cluster, user: AuthInfo) -> Result<Self, KubeconfigError> {
        if !is_address(cluster.server.as_deref().unwrap_or_default()) {
            return Err(KubeconfigError::Server);
        }
        Ok(Self {
            cluster: cluster.into(),
            user: user.into(),
            namespace: None,
        })
    }

    /// The whole kubeconfig, with names for people. Contains credentials.
    #[must_use]
    pub fn into_whole(self, cluster: &str, user: &str) -> kube::config::Kubeconfig {
        kube::config::Kubeconfig {
            api_version: Some("v1".to_owned()),
            kind: Some("Config".to_owned()),
            clusters: vec![NamedCluster {
                name: cluster.to_owned(),
                cluster: Some(*self.cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: user.to_owned(),
                auth_info: Some(*self.user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: cluster.to_owned(),
                context: Some(Context {
                    cluster: cluster.to_owned(),
                    user: Some(user.to_owned()),
                    namespace: self.namespace,
                    ..Context::default()
                }),
                ..NamedContext::default()
            }],
            current_context: Some(cluster.to_owned()),
            ..kube::config::Kubeconfig::default()
        }
    }

    /// How to connect to the API server.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The address of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        self.cluster.server.as_deref().unwrap_or_default()
    }

    /// The bearer token, if it is in the kubeconfig itself. Secret.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        Some(self.user.token.as_ref()?.expose_secret())
    }

    /// Whether the token can be sent: a client would end the process over one that can't.
    pub fn check_token(&self) -> Result<(), KubeconfigError> {
        let provider = self.user.auth_provider.as_ref();
        let id_token = provider.and_then(|provider| provider.config.get("id-token"));
        let mut tokens = self.token().into_iter().chain(id_token.map(String::as_str));
        if tokens.all(|token| HeaderValue::from_str(token).is_ok()) {
            Ok(())
        } else {
            Err(KubeconfigError::Token)
        }
    }

    /// Whether credentials come from a program that is run.
    pub(super) fn runs_a_program(&self) -> bool {
        self.user.exec.is_some() || self.user.auth_provider.is_some()
    }
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

/// Whether requests can be sent to `server`: a client would end the process over one that has no scheme.
fn is_address(server: &str) -> bool {
    let Ok(server) = server.parse::<Uri>() else {
        return false;
    };
    let host = server.host().unwrap_or_default();
    let with_port = server.port().map(|port| format!("{host}:{port}"));
    // Rejects an invalid port, and a name with a password, which would be logged.
    let plain = with_port.unwrap_or_else(|| host.to_owned());
    matches!(server.scheme_str(), Some("http" | "https"))
        && !host.is_empty()
        && server
            .authority()
            .is_some_and(|authority| authority.as_str() == plain)
}

/// An error without the content of the kubeconfig: the messages of a parser quote what it read, which may be a token.
fn without_content(error: &kube::config::KubeconfigError) -> KubeconfigError {
    match error {
        kube::config::KubeconfigError::ReadConfig(error, path) => KubeconfigError::Unreadable {
            path: path.display().to_string(),
            why: error.to_string(),
        },
        kube::config::KubeconfigError::FindPath => KubeconfigError::NotFound,
        kube::config::KubeconfigError::Parse(error) => {
            let at = error.location();
            KubeconfigError::Malformed {
                line: at.map_or(1, |at| at.line()),
                column: at.map_or(1, |at| at.column()),
            }
        }
        _ => KubeconfigError::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
        current-context: two
        clusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: {server: 'https://b'}}]
        users: [{name: u, user: {token: t}}, {name: v, user: {token: s}}]
        contexts: [{name: one, context: {cluster: a, user: u}}, {name: two, context: {cluster: b, user: v}}]";

    #[test]
    fn a_file_is_read_as_kubectl_does_and_another_context_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        let read = |context| {
            let read = Kubeconfig::read_from(Some(&file), context);
            read.map(|kubeconfig| kubeconfig.server().to_owned())
                .map_err(|error| error.to_string())
        };
        let name = file.display();
        assert!(
            read(None)
                .unwrap_err()
                .starts_with(&format!("failed to read {name}: "))
        );
        std::fs::write(&file, TWO).unwrap();
        assert_eq!(read(None).unwrap(), "https://b");
        assert_eq!(read(Some("one")).unwrap(), "https://a");
        let error = read(Some("three")).unwrap_err();
        assert_eq!(error, "the kubeconfig has no context \"three\"");
        std::fs::write(&file, format!("{TWO}\ntoken: [s3cret")).unwrap();
        let error = read(None).unwrap_err();
        assert!(
            error.starts_with("not a kubeconfig: parse error at "),
            "{error}"
        );
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn the_current_context_is_read() {
        let read = Kubeconfig::read(TWO).unwrap();
        assert_eq!((read.server(), read.token()), ("https://b", Some("s")));
        assert_eq!(
            format!("{read:?}"),
            "Kubeconfig { server: \"https://b\", .. }"
        );
    }

    #[test]
    fn errors_do_not_quote_the_kubeconfig() {
        let context = "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n";
        let cluster = "clusters: [{name: c, cluster: {server: 'https://c'}}]\n";
        let cases = [
            ("\n", "the kubeconfig is empty"),
            ("apiVersion: v1", "the kubeconfig has no current-context"),
            ("eyJzM2NyZXQ", "not a kubeconfig: parse error at 1:1"),
            ("users: s3cret", "parse error at 1:8"),
            (
                "users: [{name: u, user: {token: [s3cret]}}]",
                "parse error at 1:",
            ),
            (
                "users: [{name: u, user: {token: s3cret]",
                "not a kubeconfig",
            ),
            ("current-context: s", "the kubeconfig has no context \"s\""),
            (context, "the kubeconfig has no cluster \"c\""),
            (
                &format!("{context}{cluster}"),
                "the kubeconfig has no user \"u\"",
            ),
            (
                &format!(
                    "{context}clusters: [{{name: c, cluster: {{}}}}]\nusers: [{{name: u, user: {{}}}}]"
                ),
                "the server of the cluster is not an address",
            ),
        ];
        for (yaml, part) in cases {
            let error = Kubeconfig::read(yaml).unwrap_err().to_string();
            assert!(error.contains(part), "{yaml:?}: {error}");
            assert!(
                !error.contains("s3cret") && !error.contains("eyJ"),
                "{error}"
            );
        }
    }
}
