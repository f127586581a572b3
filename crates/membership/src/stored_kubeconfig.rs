//! The kubeconfig in a member's Secret: how to connect to the member, and a token. It names no file to read and no program
//! to run. Pure.

use base64::{Engine, engine::general_purpose::STANDARD};
use federation_controller::members::kubeconfig::{Kubeconfig, KubeconfigError};
use fedrs_api::ClusterType;
use kube::config::{AuthInfo, Cluster};
use serde_json::Value;

use crate::{Error, cluster_client::ClusterClient, progress::Warning};

/// A kubeconfig with a token.
pub(crate) struct StoredKubeconfig {
    /// How to connect to the member.
    pub(crate) connection: Cluster,
    /// The token.
    pub(crate) user: AuthInfo,
}

/// How the controller connects to a member: as the user's kubeconfig does, but with the content of the authority's file
/// inlined, and at the address `server` if that is set.
pub(crate) fn connection(
    user: &Cluster,
    authority: Option<&[u8]>,
    server: Option<&str>,
    allow_insecure: bool,
) -> Result<Cluster, Error> {
    let server = server.or(user.server.as_deref()).unwrap_or_default();
    if !server.starts_with("https://") {
        return Err(Error::NotEncrypted(server.to_owned()));
    }
    let insecure = user.insecure_skip_tls_verify.filter(|insecure| *insecure);
    if insecure.is_some() && !allow_insecure {
        return Err(Error::NotVerified);
    }
    let inlined = user.certificate_authority_data.clone();
    let authority = inlined
        .filter(|data| !data.is_empty())
        .or_else(|| authority.map(|bytes| STANDARD.encode(bytes)))
        .filter(|_| insecure.is_none());
    Ok(Cluster {
        server: Some(server.to_owned()),
        insecure_skip_tls_verify: insecure,
        certificate_authority_data: authority,
        proxy_url: user.proxy_url.clone().filter(|url| !url.is_empty()),
        tls_server_name: user.tls_server_name.clone(),
        disable_compression: user.disable_compression,
        ..Cluster::default()
    })
}

/// Warnings about how the controller would connect to a member.
pub(crate) fn warnings(connection: &Cluster) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if connection.insecure_skip_tls_verify == Some(true) {
        warnings.push(Warning::InsecureSkipTlsVerify);
    }
    let server = connection.server.clone();
    if let Some(server) = server.filter(|server| is_loopback(server)) {
        warnings.push(Warning::LoopbackServer(server));
    }
    warnings
}

/// Whether an address is reachable from one machine only.
fn is_loopback(server: &str) -> bool {
    let host = server.parse::<http::Uri>().ok();
    let host = host.as_ref().and_then(http::Uri::host).unwrap_or_default();
    let address = host.trim_matches(['[', ']']);
    address == "localhost"
        || address
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

impl StoredKubeconfig {
    /// A kubeconfig with `token`.
    pub(crate) fn with_token(connection: Cluster, token: String) -> Self {
        let user = AuthInfo {
            token: Some(token.into()),
            ..AuthInfo::default()
        };
        Self { connection, user }
    }

    /// Parses the kubeconfig of a Secret. Drops every field that names a file or a program: whoever can write the Secret must
    /// not make this process read or run anything.
    pub(crate) fn parse(yaml: &str) -> Option<Self> {
        let kubeconfig = Kubeconfig::read(yaml).ok()?;
        kubeconfig.check_token().ok()?;
        let token = kubeconfig.token()?.to_owned();
        let connection = kubeconfig.cluster().clone();
        Some(Self::with_token(
            Cluster {
                certificate_authority: None,
                extensions: None,
                ..connection
            },
            token,
        ))
    }

    /// Parses the kubeconfig in `secret`; `None` if there is none, or it is invalid.
    pub(crate) fn of_secret(secret: &Value) -> Option<Self> {
        let encoded = secret["data"][fedrs_api::names::KUBECONFIG_KEY].as_str()?;
        let yaml = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        Self::parse(&yaml)
    }

    /// The kubeconfig as YAML, with names for people. It contains the token: for the Secret only.
    pub(crate) fn to_yaml(&self, member: &str, account: &str) -> Result<String, Error> {
        let kubeconfig = self.kubeconfig().map_err(|error| Error::StoredKubeconfig {
            place: "for",
            reason: error.to_string(),
        })?;
        let whole = kubeconfig.into_whole(member, account);
        // Long values stay on the line of their key: not every parser of kubeconfigs supports folded ones.
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        let yaml = serde_saphyr::to_string_with_options(&whole, options);
        Ok(yaml.expect("a kubeconfig consists of strings, lists and maps"))
    }

    /// A client of the member.
    pub(crate) async fn client(&self) -> Result<ClusterClient, Error> {
        let config = async { self.kubeconfig()?.config().await };
        let config = config.await.map_err(|error| Error::StoredKubeconfig {
            place: "in",
            reason: error.to_string(),
        })?;
        Ok(ClusterClient::new(ClusterType::Member, config)?)
    }

    fn kubeconfig(&self) -> Result<Kubeconfig, KubeconfigError> {
        Kubeconfig::new(self.connection.clone(), self.user.clone())
    }

    /// Whether it connects to the member as `connection` does.
    pub(crate) fn connects_as(&self, connection: &Cluster) -> bool {
        let plain = |cluster: &Cluster| serde_json::to_value(cluster).ok();
        plain(&self.connection) == plain(connection)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn user(yaml: &str) -> Cluster {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[rstest]
    #[case("server: https://a:6443", None, None, "server: https://a:6443")]
    #[case("server: https://a", None, Some("https://b"), "server: https://b")]
    #[case(
        "{server: https://a, certificate-authority: /ca.crt}",
        Some("PEM"),
        None,
        "{server: https://a, certificate-authority-data: UEVN}"
    )]
    #[case(
        "{server: https://a, certificate-authority: /ca.crt, certificate-authority-data: aWRhdGE=}",
        Some("PEM"),
        None,
        "{server: https://a, certificate-authority-data: aWRhdGE=}"
    )]
    #[case(
        "{server: https://a, insecure-skip-tls-verify: true, certificate-authority-data: aWRhdGE=}",
        None,
        None,
        "{server: https://a, insecure-skip-tls-verify: true}"
    )]
    #[case(
        "{server: https://a, tls-server-name: api, proxy-url: http://p:3128, disable-compression: true}",
        None,
        Some("https://b"),
        "{server: https://b, tls-server-name: api, proxy-url: http://p:3128, disable-compression: true}"
    )]
    fn the_connection_is_the_users_with_inlined_files(
        #[case] given: &str,
        #[case] authority: Option<&str>,
        #[case] server: Option<&str>,
        #[case] expected: &str,
    ) {
        let authority = authority.map(str::as_bytes);
        let connection = connection(&user(given), authority, server, true).unwrap();
        let plain = |cluster: &Cluster| serde_json::to_value(cluster).unwrap();
        assert_eq!(plain(&connection), plain(&user(expected)));
    }

    #[test]
    fn a_token_is_never_sent_unencrypted_and_to_an_unverified_server_only_if_allowed() {
        let plain = user("server: http://a:8080");
        for allow_insecure in [false, true] {
            assert!(matches!(
                connection(&plain, None, None, allow_insecure),
                Err(Error::NotEncrypted(_))
            ));
        }
        assert!(connection(&plain, None, Some("https://a:6443"), false).is_ok());
        let unverified = user("{server: https://a, insecure-skip-tls-verify: true}");
        assert!(matches!(
            connection(&unverified, None, None, false),
            Err(Error::NotVerified)
        ));
        assert!(connection(&unverified, None, None, true).is_ok());
    }

    #[rstest]
    #[case("https://127.0.0.1:40001", 1)]
    #[case("https://localhost:6443", 1)]
    #[case("https://[::1]:6443", 1)]
    #[case("https://10.0.0.7:6443", 0)]
    #[case("https://member.example.org", 0)]
    fn a_loopback_address_causes_a_warning(#[case] server: &str, #[case] count: usize) {
        let connection = user(&format!("server: {server}"));
        assert_eq!(warnings(&connection).len(), count);
    }

    #[test]
    fn a_stored_kubeconfig_can_be_parsed() {
        let member = user("{server: https://a, certificate-authority-data: UEVN}");
        let stored = StoredKubeconfig::with_token(member.clone(), "secret".to_owned());
        let yaml = stored.to_yaml("eu", "fedrs-controller-1a2b3c4d").unwrap();
        let parsed = StoredKubeconfig::parse(&yaml).unwrap();
        assert!(parsed.connects_as(&member));
        assert!(!parsed.connects_as(&user("server: https://b")));
        assert!(yaml.contains("    token: secret\n"), "{yaml}");
        let user = serde_json::to_value(&parsed.user).unwrap();
        assert_eq!(user["token"], "secret");
    }

    #[test]
    fn files_and_programs_in_a_secret_are_dropped() {
        let yaml = "
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: https://a, certificate-authority: /etc/passwd}}]
users: [{name: a, user: {token: t, tokenFile: /etc/passwd, client-key: /k, exec: {command: rm}}}]";
        let parsed = StoredKubeconfig::parse(yaml).unwrap();
        assert!(parsed.connection.certificate_authority.is_none());
        assert!(parsed.user.exec.is_none() && parsed.user.token_file.is_none());
        assert!(parsed.user.client_key.is_none());
        for user in ["", "token: \"t\\n\", "] {
            let unusable = yaml.replace("token: t, ", user);
            assert!(StoredKubeconfig::parse(&unusable).is_none(), "{user}");
        }
    }
}
