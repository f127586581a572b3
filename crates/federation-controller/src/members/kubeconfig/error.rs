//! Why a kubeconfig can't be used. No text shows its content.

use std::time::Duration;

/// Why a kubeconfig can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// Not YAML, or not the fields of a kubeconfig.
    #[error("not a kubeconfig: parse error at {line}:{column}")]
    Malformed {
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
    },
    /// Not UTF-8.
    #[error("the kubeconfig is not UTF-8 text")]
    NotText,
    /// Nothing but white space.
    #[error("the kubeconfig is empty")]
    Empty,
    /// Several documents that don't belong together.
    #[error("the documents of the kubeconfig are of different kinds or versions")]
    Mixed,
    /// No current context.
    #[error("the kubeconfig has no current-context")]
    NoContext,
    /// An entry that is named and does not exist.
    #[error("the kubeconfig has no {what} {name:?}")]
    Missing {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The cluster has no address that requests can be sent to.
    #[error("the server of the cluster is not an address of the form https://HOST:PORT")]
    Server,
    /// A token that can't be sent.
    #[error("the token contains characters that are not allowed in a token, such as line feeds")]
    Token,
    /// A proxy that can't be used.
    #[error("proxy-url is not an address of the scheme http, https or socks5")]
    Proxy,
    /// The file of the kubeconfig.
    #[error("failed to read {path}: {why}")]
    Unreadable {
        /// Its path.
        path: String,
        /// The message of the system.
        why: String,
    },
    /// Neither $KUBECONFIG nor a home directory is set.
    #[error("no kubeconfig found: set KUBECONFIG or HOME")]
    NotFound,
    /// A file that the kubeconfig names.
    #[error("{field}: failed to read {path}: {why}")]
    File {
        /// The field that names it.
        field: &'static str,
        /// Its path.
        path: String,
        /// The message of the system.
        why: String,
    },
    /// Two files of the --members directory have the name of one member.
    #[error("two files have this name")]
    TwoFiles,
    /// A MemberCluster without a Secret for discovery.
    #[error("spec.discoverySecretRef is not set: run `fedrs join` with --with-discovery")]
    NoReference,
    /// A Secret that is named and does not exist.
    #[error("it does not exist, or its type is not {type_}", type_ = fedrs_api::names::KUBECONFIG_TYPE)]
    NoSecret,
    /// A Secret that must not be read.
    #[error("it can't be read: {0}")]
    SecretForbidden(String),
    /// A Secret without the key.
    #[error("the Secret has no key {0:?}")]
    NoKey(&'static str),
    /// A kubeconfig of a Secret that would run a program.
    #[error(
        "{0} of the user would run a program in the controller; set secretKubeconfigs.allowExec of the controller's configuration to allow this"
    )]
    ExecForbidden(&'static str),
    /// A kubeconfig of a Secret that leaves the credentials unprotected.
    #[error(
        "key {key}: {0}; set secretKubeconfigs.allowInsecure of the controller's configuration to allow this",
        key = fedrs_api::names::KUBECONFIG_KEY
    )]
    InsecureForbidden(Insecure),
    /// A kubeconfig of a Secret that would read a file.
    #[error(
        "{0} names a file of the controller; put its content into the kubeconfig, or set secretKubeconfigs.allowFiles of the controller's configuration"
    )]
    FileForbidden(&'static str),
    /// The credentials plugin could not be run.
    #[error("failed to run the credentials plugin")]
    Plugin,
    /// The credentials plugin has not answered; the controller still waits for it.
    #[error("the credentials plugin has not answered within {0:?}")]
    PluginTimeout(Duration),
    /// The client could not be created: a certificate, a key, or the credentials plugin.
    #[error("{0}")]
    Client(String),
}

/// A setting that leaves the credentials unprotected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Insecure {
    /// No check of the server's certificate.
    #[error("insecure-skip-tls-verify is true: any server at the address receives the credentials")]
    SkipTlsVerify,
    /// No encryption.
    #[error("server has the scheme http: the credentials are sent unencrypted")]
    Http,
}

impl KubeconfigError {
    /// Whether the same kubeconfig may work later: its files or its credentials plugin failed.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::File { .. } | Self::Plugin | Self::PluginTimeout(_) | Self::Client(_)
        )
    }
}
