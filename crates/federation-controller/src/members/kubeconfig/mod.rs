//! Kubeconfigs: what their current context needs, what one from a Secret may contain, and the client made of it.
//!
//! ```text
//! text --read--> Kubeconfig --refusal? (from a Secret)--> files put in --> client
//! ```
//!
//! No error tells of their content: a parser's own words quote what it read.

mod connect;
mod files;
mod policy;

use http::{HeaderValue, Uri};
use kube::config::{AuthInfo, Cluster};
use secrecy::ExposeSecret;

pub(in crate::members) use self::files::{Files, read_file};
pub use self::{
    connect::{Connect, OverNetwork, harden, proxy},
    policy::Refusal,
};

/// The cluster and the user of a kubeconfig's current context.
#[derive(Clone)]
pub struct Kubeconfig {
    cluster: Box<Cluster>,
    user: Box<AuthInfo>,
}

/// Why a kubeconfig can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// No YAML, or not what a kubeconfig has.
    #[error("it is no kubeconfig: line {line}, column {column} is not what belongs there")]
    Malformed {
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
    },
    /// Several documents that don't belong together.
    #[error("its documents are of different kinds or versions")]
    Mixed,
    /// No current context.
    #[error("current-context is not set")]
    NoContext,
    /// Something that is named and not there.
    #[error("there is no {what} {name:?} in it")]
    Missing {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The cluster has no address that requests can be sent to.
    #[error("its cluster's server is not an address of the form https://HOST:PORT")]
    Server,
    /// A token that can't be sent.
    #[error("its token has characters that can't be in a token, such as line feeds")]
    Token,
    /// A proxy that can't be used.
    #[error("its proxy-url is not an address that begins with http, https or socks5")]
    Proxy,
    /// A file that it names.
    #[error("{field}: the file {path} can't be read: {why}")]
    File {
        /// The field that names it.
        field: &'static str,
        /// Its path.
        path: String,
        /// What the system says.
        why: String,
    },
}

impl Kubeconfig {
    /// Reads what the current context of `yaml` needs.
    pub fn read(yaml: &str) -> Result<Self, KubeconfigError> {
        let all = kube::config::Kubeconfig::from_yaml(yaml).map_err(|error| malformed(&error))?;
        let name = all.current_context.ok_or(KubeconfigError::NoContext)?;
        let missing = |what, name: &str| KubeconfigError::Missing {
            what,
            name: name.to_owned(),
        };
        let context = all.contexts.into_iter().find(|it| it.name == name);
        let context = context
            .and_then(|it| it.context)
            .ok_or_else(|| missing("context", &name))?;
        let cluster = all
            .clusters
            .into_iter()
            .find(|it| it.name == context.cluster);
        let cluster = cluster
            .and_then(|it| it.cluster)
            .ok_or_else(|| missing("cluster", &context.cluster))?;
        let server = cluster.server.as_deref().unwrap_or_default();
        if !is_address(server) {
            return Err(KubeconfigError::Server);
        }
        let user = match context.user.filter(|name| !name.is_empty()) {
            Some(name) => {
                let user = all.auth_infos.into_iter().find(|it| it.name == name);
                let user = user.ok_or_else(|| missing("user", &name))?;
                user.auth_info.unwrap_or_default()
            }
            None => AuthInfo::default(),
        };
        Ok(Self {
            cluster: cluster.into(),
            user: user.into(),
        })
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
    fn check_token(&self) -> Result<(), KubeconfigError> {
        let provider = self.user.auth_provider.as_ref();
        let id_token = provider.and_then(|it| it.config.get("id-token"));
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
    // Neither a port that is none, nor a name and password, which would be logged.
    let plain = with_port.unwrap_or_else(|| host.to_owned());
    matches!(server.scheme_str(), Some("http" | "https"))
        && !host.is_empty()
        && server.authority().is_some_and(|it| it.as_str() == plain)
}

fn malformed(error: &kube::config::KubeconfigError) -> KubeconfigError {
    match error {
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

    #[test]
    fn the_current_context_is_read() {
        let yaml = "
            current-context: two
            clusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: {server: 'https://b'}}]
            users: [{name: u, user: {token: t}}, {name: v, user: {token: s}}]
            contexts: [{name: one, context: {cluster: a, user: u}}, {name: two, context: {cluster: b, user: v}}]";
        let read = Kubeconfig::read(yaml).unwrap();
        assert_eq!((read.server(), read.token()), ("https://b", Some("s")));
        assert_eq!(
            format!("{read:?}"),
            "Kubeconfig { server: \"https://b\", .. }"
        );
    }

    #[test]
    fn what_is_wrong_is_told_without_what_is_written_there() {
        let context = "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n";
        let cluster = "clusters: [{name: c, cluster: {server: 'https://c'}}]\n";
        let cases = [
            ("", "current-context is not set"),
            ("eyJzM2NyZXQ", "it is no kubeconfig: line 1, column 1"),
            ("users: s3cret", "line 1, column 8"),
            (
                "users: [{name: u, user: {token: [s3cret]}}]",
                "line 1, column",
            ),
            (
                "users: [{name: u, user: {token: s3cret]",
                "it is no kubeconfig",
            ),
            ("current-context: s", "there is no context \"s\" in it"),
            (context, "there is no cluster \"c\" in it"),
            (
                &format!("{context}{cluster}"),
                "there is no user \"u\" in it",
            ),
            (
                &format!("{context}clusters: [{{name: c, cluster: {{}}}}]"),
                "its cluster's server is not an address",
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
