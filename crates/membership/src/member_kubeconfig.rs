//! The kubeconfig that a member's Secret holds: a way to the member and a token, and nothing that would be read or run
//! where it is used. Pure.

use anyhow::anyhow;
use base64::{Engine, engine::general_purpose::STANDARD};
use federation_controller::members::kubeconfig::{Kubeconfig, KubeconfigError};
use kube::{
    Config,
    config::{AuthInfo, Cluster},
};
use serde_json::Value;

/// A kubeconfig with a token.
pub(crate) struct Stored {
    /// How the member is reached.
    pub(crate) route: Cluster,
    /// The account and its token.
    pub(crate) user: AuthInfo,
}

/// Why a way to the member can't be stored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    /// The kubeconfig has no address.
    #[error("the member's kubeconfig names no server: give --member-server")]
    NoServer,
    /// A token would be sent in the clear.
    #[error(
        "the controller would send its token to {0} in the clear: give an https:// address with --member-server"
    )]
    NotEncrypted(String),
}

/// The way to a member as the controller is to take it: that of the user's kubeconfig, but with `authority`, the content of
/// a file it may name, inside, and by the address `server` if that is another one.
pub(crate) fn route(
    users: &Cluster,
    authority: Option<&[u8]>,
    server: Option<&str>,
) -> Result<Cluster, RouteError> {
    let server = server.or(users.server.as_deref());
    let server = server.ok_or(RouteError::NoServer)?;
    if !server.starts_with("https://") {
        return Err(RouteError::NotEncrypted(server.to_owned()));
    }
    let insecure = users.insecure_skip_tls_verify.filter(|insecure| *insecure);
    let given = users.certificate_authority_data.clone();
    let authority = given
        .filter(|data| !data.is_empty())
        .or_else(|| authority.map(|bytes| STANDARD.encode(bytes)))
        .filter(|_| insecure.is_none());
    Ok(Cluster {
        server: Some(server.to_owned()),
        insecure_skip_tls_verify: insecure,
        certificate_authority_data: authority,
        proxy_url: users.proxy_url.clone().filter(|url| !url.is_empty()),
        tls_server_name: users.tls_server_name.clone(),
        disable_compression: users.disable_compression,
        ..Cluster::default()
    })
}

/// What a user should know of a way to a member.
pub(crate) fn doubts(route: &Cluster) -> Vec<String> {
    let mut doubts = Vec::new();
    if route.insecure_skip_tls_verify == Some(true) {
        doubts.push(
            "the member's kubeconfig has insecure-skip-tls-verify: the controller won't check whom it sends its token to"
                .to_owned(),
        );
    }
    if let Some(server) = route.server.as_deref().filter(|it| is_loopback(it)) {
        doubts.push(format!(
            "{server} can be reached from this machine alone: if the controller runs elsewhere, say with --member-server where it finds the member"
        ));
    }
    doubts
}

/// Whether an address names the machine it is used on.
fn is_loopback(server: &str) -> bool {
    let host = server.parse::<http::Uri>().ok();
    let host = host.as_ref().and_then(http::Uri::host).unwrap_or_default();
    let address = host.trim_matches(['[', ']']);
    address == "localhost"
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|it| it.is_loopback())
}

impl Stored {
    /// With a token.
    pub(crate) fn with_token(route: Cluster, token: String) -> Self {
        let user = AuthInfo {
            token: Some(token.into()),
            ..AuthInfo::default()
        };
        Self { route, user }
    }

    /// Reads what a Secret holds. Whatever would be read from a file or got by running a program is left out: who can
    /// write the Secret must not thereby read or run anything here.
    pub(crate) fn parse(yaml: &str) -> Option<Self> {
        let kubeconfig = Kubeconfig::read(yaml).ok()?;
        kubeconfig.check_token().ok()?;
        let token = kubeconfig.token()?.to_owned();
        let route = kubeconfig.cluster().clone();
        Some(Self::with_token(
            Cluster {
                certificate_authority: None,
                extensions: None,
                ..route
            },
            token,
        ))
    }

    /// Reads the Secret itself.
    pub(crate) fn of_secret(secret: &Value) -> Option<Self> {
        let encoded = secret["data"][fedrs_api::names::KUBECONFIG_KEY].as_str()?;
        let yaml = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        Self::parse(&yaml)
    }

    /// The kubeconfig as YAML, with names for a reader. It holds a token: for the Secret alone.
    pub(crate) fn to_yaml(&self, member: &str, account: &str) -> anyhow::Result<String> {
        let whole = self.kubeconfig()?.into_whole(member, account);
        // A value on the line of its key, however long: not every reader of kubeconfigs knows folded ones.
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        let yaml = serde_saphyr::to_string_with_options(&whole, options);
        Ok(yaml.expect("a kubeconfig is made of strings, lists and maps"))
    }

    /// How to reach the member.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
        let config = self.kubeconfig()?.config().await;
        config.map_err(|why| anyhow!("the stored kubeconfig can't be used: {why}"))
    }

    fn kubeconfig(&self) -> Result<Kubeconfig, KubeconfigError> {
        Kubeconfig::new(self.route.clone(), self.user.clone())
    }

    /// Whether it leads to the member by `route`.
    pub(crate) fn takes(&self, route: &Cluster) -> bool {
        let plain = |cluster: &Cluster| serde_json::to_value(cluster).ok();
        plain(&self.route) == plain(route)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn users(yaml: &str) -> Cluster {
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
    fn the_route_is_the_users_with_everything_inside(
        #[case] given: &str,
        #[case] authority: Option<&str>,
        #[case] server: Option<&str>,
        #[case] expected: &str,
    ) {
        let route = route(&users(given), authority.map(str::as_bytes), server).unwrap();
        let plain = |it: &Cluster| serde_json::to_value(it).unwrap();
        assert_eq!(plain(&route), plain(&users(expected)));
    }

    #[test]
    fn a_token_is_never_sent_in_the_clear() {
        let plain = users("server: http://a:8080");
        assert!(matches!(
            route(&plain, None, None),
            Err(RouteError::NotEncrypted(_))
        ));
        assert!(route(&plain, None, Some("https://a:6443")).is_ok());
        assert!(matches!(
            route(&Cluster::default(), None, None),
            Err(RouteError::NoServer)
        ));
    }

    #[rstest]
    #[case("https://127.0.0.1:40001", 1)]
    #[case("https://localhost:6443", 1)]
    #[case("https://[::1]:6443", 1)]
    #[case("https://10.0.0.7:6443", 0)]
    #[case("https://member.example.org", 0)]
    fn an_address_that_only_works_here_is_doubted(#[case] server: &str, #[case] doubted: usize) {
        let route = users(&format!("server: {server}"));
        assert_eq!(doubts(&route).len(), doubted);
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let way = users("{server: https://a, certificate-authority-data: UEVN}");
        let stored = Stored::with_token(way.clone(), "secret".to_owned());
        let yaml = stored.to_yaml("eu", "fedrs-controller-1a2b3c4d").unwrap();
        let read = Stored::parse(&yaml).unwrap();
        assert!(read.takes(&way));
        assert!(!read.takes(&users("server: https://b")));
        assert!(yaml.contains("    token: secret\n"), "{yaml}");
        let token = |it: &Stored| serde_json::to_value(&it.user).unwrap()["token"].clone();
        assert_eq!(token(&read), "secret");
    }

    #[test]
    fn nothing_that_a_secret_holds_is_read_or_run_here() {
        let yaml = "
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: https://a, certificate-authority: /etc/passwd}}]
users: [{name: a, user: {token: t, tokenFile: /etc/passwd, client-key: /k, exec: {command: rm}}}]";
        let read = Stored::parse(yaml).unwrap();
        assert!(read.route.certificate_authority.is_none());
        assert!(read.user.exec.is_none() && read.user.token_file.is_none());
        assert!(read.user.client_key.is_none());
        for user in ["", "token: \"t\\n\", "] {
            let unusable = yaml.replace("token: t, ", user);
            assert!(Stored::parse(&unusable).is_none(), "{user}");
        }
    }
}
