//! Makes a client of a kubeconfig.

use std::time::Duration;

use controller_base::error_text::format_error;
use futures::{FutureExt, future::BoxFuture};
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::{Client, Config, config::KubeConfigOptions};
use tokio::sync::oneshot;

use super::{Kubeconfig, KubeconfigError};

/// Makes clients.
pub trait Connect: Send + Sync + 'static {
    /// Creates a client for `kubeconfig`, which names no files. The client does not retry.
    fn connect(
        &self,
        kubeconfig: Kubeconfig,
    ) -> BoxFuture<'static, Result<Client, KubeconfigError>>;
}

/// Makes clients that connect over the network, unlike those of tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverNetwork;

impl Connect for OverNetwork {
    fn connect(
        &self,
        kubeconfig: Kubeconfig,
    ) -> BoxFuture<'static, Result<Client, KubeconfigError>> {
        let environment = Environment::current();
        connect(kubeconfig, environment).boxed()
    }
}

async fn connect(
    kubeconfig: Kubeconfig,
    environment: Environment,
) -> Result<Client, KubeconfigError> {
    let runs_a_program = kubeconfig.runs_a_program();
    let mut config = kubeconfig.into_config(&environment).await?;
    harden(&mut config);
    let make = |config| {
        Client::try_from(config).map_err(|error| KubeconfigError::Client(format_error(&error)))
    };
    if !runs_a_program {
        return make(config);
    }
    // kube waits for the program while it makes the client. A thread of its own blocks no worker, and one that never
    // ends doesn't keep the process from ending.
    let (answer, made) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        let _entered = runtime.enter();
        // The caller may no longer wait.
        let _ = answer.send(make(config));
    });
    made.await.unwrap_or(Err(KubeconfigError::Plugin))
}

/// Keeps a client of the controller from repeating writes by itself, and from waiting for a connection for ever.
pub fn harden(config: &mut Config) {
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    // Deadlines are put around each call; watches are idle for long.
    config.read_timeout = None;
    config.write_timeout = None;
}

/// The proxies of the process's environment.
struct Environment {
    /// `HTTPS_PROXY`.
    proxy: Option<String>,
    /// Knows `NO_PROXY`.
    matcher: Matcher,
}

impl Environment {
    fn current() -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            proxy: set("HTTPS_PROXY").or_else(|| set("https_proxy")),
            matcher: Matcher::from_env(),
        }
    }
}

impl Kubeconfig {
    /// How to reach the cluster from this process, by its proxy or the environment's.
    pub async fn config(self) -> Result<Config, KubeconfigError> {
        self.into_config(&Environment::current()).await
    }

    async fn into_config(self, environment: &Environment) -> Result<Config, KubeconfigError> {
        self.check_token()?;
        let proxy = self.proxy(environment)?;
        let whole = self.into_whole("member", "member");
        let mut config = Config::from_custom_kubeconfig(whole, &KubeConfigOptions::default())
            .await
            .map_err(|error| KubeconfigError::Client(format_error(&error)))?;
        config.proxy_url = proxy;
        Ok(config)
    }

    fn proxy(&self, environment: &Environment) -> Result<Option<Uri>, KubeconfigError> {
        environment.proxy(self.cluster.proxy_url.as_deref(), self.server())
    }
}

impl Environment {
    /// The proxy to go through to `server`: the kubeconfig's `own`, else the environment's, unless `NO_PROXY` names the
    /// server, as for kubectl. (kube compares `NO_PROXY` with the proxy instead.)
    fn proxy(&self, own: Option<&str>, server: &str) -> Result<Option<Uri>, KubeconfigError> {
        let from_environment = || {
            let server = server.parse().ok()?;
            self.matcher.intercept(&server)?;
            self.proxy.as_deref()
        };
        let own = own.filter(|value| !value.is_empty());
        let Some(proxy) = own.or_else(from_environment) else {
            return Ok(None);
        };
        let proxy: Uri = proxy.parse().map_err(|_| KubeconfigError::Proxy)?;
        match proxy.scheme_str() {
            Some("http" | "https" | "socks5") => Ok(Some(proxy)),
            _ => Err(KubeconfigError::Proxy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(proxy: &str, no: &str) -> Environment {
        Environment {
            proxy: (!proxy.is_empty()).then(|| proxy.to_owned()),
            matcher: Matcher::builder().https(proxy).no(no).build(),
        }
    }

    fn kubeconfig(cluster: &str) -> Kubeconfig {
        let yaml = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c}}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://api.corp.example:6443'{cluster}}}}}]}}"
        );
        Kubeconfig::read(&yaml).unwrap()
    }

    #[test]
    fn the_kubeconfigs_proxy_goes_before_the_environments() {
        let own = ", proxy-url: 'socks5://own:1080'";
        let corp = "http://proxy.corp.example:3128";
        for (cluster, proxy, no, expected) in [
            ("", "", "", Ok(None)),
            ("", corp, "", Ok(Some("http://proxy.corp.example:3128/"))),
            ("", corp, "api.corp.example", Ok(None)),
            (
                "",
                corp,
                "proxy.corp.example",
                Ok(Some("http://proxy.corp.example:3128/")),
            ),
            ("", corp, "*", Ok(None)),
            (own, corp, "", Ok(Some("socks5://own:1080/"))),
            (own, corp, "*", Ok(Some("socks5://own:1080/"))),
            (", proxy-url: ''", "", "", Ok(None)),
            (
                ", proxy-url: 'ftp://u:s3cret@x'",
                "",
                "",
                Err(KubeconfigError::Proxy),
            ),
            (
                ", proxy-url: 'no address'",
                "",
                "",
                Err(KubeconfigError::Proxy),
            ),
        ] {
            let found = kubeconfig(cluster).proxy(&environment(proxy, no));
            let found = found.map(|proxy| proxy.map(|uri| uri.to_string()));
            let expected = expected.map(|proxy| proxy.map(str::to_owned));
            assert_eq!(found, expected, "{cluster} {proxy} {no}");
        }
    }

    #[tokio::test]
    async fn a_client_can_be_made_with_any_proxy() {
        for proxy in ["http://p:1", "https://p:1", "socks5://p:1"] {
            let cluster = format!(", proxy-url: '{proxy}'");
            let made = connect(kubeconfig(&cluster), environment("", "")).await;
            assert!(made.is_ok(), "{proxy}: {:?}", made.err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_server_and_no_token_ends_the_process() {
        let usable = [
            "https://c",
            "http://127.0.0.1:1",
            "https://c:6443/base/",
            "https://c/base?query=1",
            "https://[::1]:1",
        ];
        let unusable = [
            "",
            "c",
            "c:6443",
            "127.0.0.1:6443",
            "/path",
            "ftp://c",
            "https://",
            "https:///x",
            "https://:1",
            "https://user:word@c:1",
            "https://c:port",
            "https://a b",
        ];
        for (servers, can_be_used) in [(&usable[..], true), (&unusable, false)] {
            for server in servers {
                let yaml = format!(
                    "{{current-context: c, contexts: [{{name: c, context: {{cluster: c}}}}], clusters: [{{name: c, cluster: {{server: '{server}'}}}}]}}"
                );
                let read = Kubeconfig::read(&yaml);
                assert_eq!(read.is_ok(), can_be_used, "{server}");
                let Ok(read) = read else { continue };
                let client = connect(read, environment("", "")).await.unwrap();
                let request = http::Request::get("/readyz")
                    .body(kube::client::Body::empty())
                    .unwrap();
                // Nobody answers there.
                let _ = tokio::time::timeout(Duration::from_secs(1), client.send(request)).await;
            }
        }
        for (user, can_be_used) in [
            ("token: abc", true),
            ("token: \"abc\\n\"", false),
            (
                "auth-provider: {name: oidc, config: {id-token: \"a\\nb\"}}",
                false,
            ),
        ] {
            let yaml = format!(
                "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
                 clusters: [{{name: c, cluster: {{server: 'https://c'}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
            );
            let made = connect(Kubeconfig::read(&yaml).unwrap(), environment("", "")).await;
            assert_eq!(made.is_ok(), can_be_used, "{user}");
        }
    }

    #[tokio::test]
    async fn a_failed_plugin_is_reported_without_its_output() {
        let user = "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, \
                    args: ['-c', 'echo s3cret; exit 3'], interactiveMode: Never}}}]";
        let yaml = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://c'}}}}], {user}}}"
        );
        let kubeconfig = Kubeconfig::read(&yaml).unwrap();
        let error = connect(kubeconfig, environment("", ""))
            .await
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "the credentials plugin failed: exit status: 3"
        );
    }
}
