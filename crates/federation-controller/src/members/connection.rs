//! Keeps a client of one kubeconfig current: it is created again when a file that the kubeconfig names changes, before
//! credentials of a plugin expire, and after a failure.

use std::{sync::Arc, time::Duration};

use controller_base::clock::Clock;
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    kubeconfig::{Connect, Files, Kubeconfig, KubeconfigError},
    sources::Source,
    token,
};

/// How often the files that a kubeconfig names are read.
const FILES_PERIOD: Duration = Duration::from_secs(10);
/// The pause after a failure: a plugin may reach its issuer again, a file may have been created.
const RETRY: Duration = Duration::from_secs(30);
/// How long before they expire the credentials of a plugin are renewed: longer than a plugin may take.
const RENEW_BEFORE: Duration = Duration::from_secs(60);
/// A plugin that takes longer is reported; the connection still waits for it.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// Makes the clients of one kubeconfig.
pub(super) struct Connection {
    /// The member's name.
    pub(super) name: String,
    pub(super) source: Arc<Source>,
    /// The kubeconfig of the source.
    pub(super) kubeconfig: Kubeconfig,
    pub(super) connect: Arc<dyn Connect>,
    pub(super) clock: Clock,
}

/// A client, and what is known of its credentials.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) client: Client,
    /// When its token or certificate expires, if that is known.
    pub(super) expires: Option<Timestamp>,
    /// The namespace of the ServiceAccount whose token it is.
    pub(super) namespace: Option<String>,
}

/// The result of making a client of a kubeconfig.
pub(super) struct Report {
    /// The member's name.
    pub(super) name: String,
    /// The source of the kubeconfig.
    pub(super) source: Arc<Source>,
    /// A client, or why there is none.
    pub(super) made: Result<Connected, KubeconfigError>,
}

impl Connection {
    /// Reports each new client, and each change of the reason why there is none. Never ends.
    pub(super) async fn run(self, reports: mpsc::Sender<Report>) {
        let mut failure: Option<KubeconfigError> = None;
        loop {
            let files = self.kubeconfig.read_files().await;
            let made = match &files {
                Ok(files) => self.make(files, &reports).await,
                Err(error) => Err(error.clone()),
            };
            let next_attempt = match &made {
                Ok(connected) => self.renewal(&connected.client),
                Err(error) if error.is_temporary() => Some(Instant::now() + RETRY),
                // Another kubeconfig, or another content of a file that it names, causes a new attempt.
                Err(_) => None,
            };
            let is_new = made.as_ref().err() != failure.as_ref() || made.is_ok();
            failure = made.as_ref().err().cloned();
            if is_new {
                self.report(&reports, made).await;
            }
            self.wait(files.ok(), next_attempt).await;
        }
    }

    async fn report(
        &self,
        reports: &mpsc::Sender<Report>,
        made: Result<Connected, KubeconfigError>,
    ) {
        let report = Report {
            name: self.name.clone(),
            source: Arc::clone(&self.source),
            made,
        };
        // The receiver is gone at the end of the term.
        let _ = reports.send(report).await;
    }

    async fn make(
        &self,
        files: &Files,
        reports: &mpsc::Sender<Report>,
    ) -> Result<Connected, KubeconfigError> {
        let whole = self.kubeconfig.clone().with_files(files);
        let claims = whole.token().and_then(token::claims);
        let mut made = self.connect.connect(whole);
        let client = if let Ok(made) = timeout(PLUGIN_TIMEOUT, &mut made).await {
            made?
        } else {
            let late = KubeconfigError::PluginTimeout(PLUGIN_TIMEOUT);
            self.report(reports, Err(late)).await;
            made.await?
        };
        let (expires, account) = claims
            .map(|claims| (claims.expires, claims.account))
            .unzip();
        Ok(Connected {
            expires: expires.or(*client.valid_until()),
            namespace: account.flatten().map(|account| account.namespace),
            client,
        })
    }

    /// When a new client has to be made, because the credentials of this one expire.
    fn renewal(&self, client: &Client) -> Option<Instant> {
        let left = client
            .valid_until()
            .as_ref()?
            .duration_since(self.clock.machine());
        let left = Duration::try_from(left).unwrap_or_default();
        // Credentials that expire at once must not be requested all the time.
        Some(Instant::now() + left.saturating_sub(RENEW_BEFORE).max(RETRY))
    }

    /// Waits until `next_attempt`, or until the files are not as they were.
    async fn wait(&self, before: Option<Files>, next_attempt: Option<Instant>) {
        let changed = async {
            let Some(before) = before.filter(|files| !files.is_empty()) else {
                return std::future::pending().await;
            };
            loop {
                sleep(FILES_PERIOD).await;
                // A file that is being replaced may be missing for a moment.
                if let Ok(files) = self.kubeconfig.read_files().await
                    && files != before
                {
                    return;
                }
            }
        };
        let due = async {
            match next_attempt {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = due => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use futures::{FutureExt, future::BoxFuture};
    use kube::client::Body;
    use parking_lot::Mutex;

    use super::{super::sources::Origin, *};

    /// How long it takes, and when the credentials of the client end.
    type Answer = (Duration, Result<Option<Timestamp>, KubeconfigError>);

    /// Answers with what a script says, one after the other; notes the tokens it was asked with.
    #[derive(Clone, Default)]
    struct Script {
        answers: Arc<Mutex<Vec<Answer>>>,
        tokens: Arc<Mutex<Vec<String>>>,
    }

    impl Connect for Script {
        fn connect(
            &self,
            kubeconfig: Kubeconfig,
        ) -> BoxFuture<'static, Result<Client, KubeconfigError>> {
            let token = kubeconfig.token().unwrap_or("none").to_owned();
            self.tokens.lock().push(token);
            let mut answers = self.answers.lock();
            let (takes, answer) = if answers.is_empty() {
                (Duration::ZERO, Ok(None))
            } else {
                answers.remove(0)
            };
            async move {
                sleep(takes).await;
                let service = tower::service_fn(|_: http::Request<Body>| async {
                    Err::<http::Response<Body>, _>(std::io::Error::other("nobody"))
                });
                answer.map(|end| Client::new(service, "default").with_valid_until(end))
            }
            .boxed()
        }
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_second(1_000_000 + i64::try_from(second).unwrap()).unwrap()
    }

    /// What is reported within `seconds`, with its time.
    async fn reports(
        script: &Script,
        user: &str,
        directory: &Path,
        seconds: u64,
        meanwhile: impl AsyncFn(),
    ) -> Vec<(u64, String)> {
        let yaml = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://c'}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
        );
        let start = Instant::now();
        let mut received = Vec::new();
        let (reports, mut reported) = mpsc::channel::<Report>(1);
        let kubeconfig = Kubeconfig::read(&yaml).unwrap().in_directory(directory);
        let source = Source {
            origin: Origin::File,
            place: String::new(),
            kubeconfig: Ok(kubeconfig.clone()),
            secret: None,
        };
        let connection = Connection {
            name: "eu".to_owned(),
            source: source.into(),
            kubeconfig,
            connect: Arc::new(script.clone()),
            clock: Clock::new(move || at(start.elapsed().as_secs())),
        };
        let time = async {
            meanwhile().await;
            sleep(Duration::from_secs(seconds)).await;
        };
        let note = async {
            while let Some(report) = reported.recv().await {
                let end = |connected: Connected| {
                    let expires = connected.expires;
                    expires.map(|time| time.as_second() - 1_000_000)
                };
                let text = report.made.map_or_else(
                    |error| error.to_string(),
                    |connected| format!("{:?}", end(connected)),
                );
                received.push((start.elapsed().as_secs(), text));
            }
        };
        tokio::select! {
            biased;
            () = connection.run(reports) => {}
            () = note => {}
            () = time => {}
        }
        received
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_makes_a_new_client_and_one_that_is_missing_for_a_moment_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let token = directory.path().join("token");
        fs::write(&token, "one\n").unwrap();
        let script = Script::default();
        let reported = reports(
            &script,
            "tokenFile: token",
            directory.path(),
            60,
            async || {
                sleep(Duration::from_secs(100)).await;
                fs::remove_file(&token).unwrap();
                sleep(Duration::from_secs(100)).await;
                fs::write(&token, "two\n").unwrap();
            },
        );
        let reported = reported.await;
        assert_eq!(*script.tokens.lock(), ["one", "two"]);
        assert!(
            matches!(reported[..], [(0, _), (200..=210, _)]),
            "{reported:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_retried_and_reported_once() {
        let script = Script::default();
        let failed = || (Duration::ZERO, Err(KubeconfigError::Plugin));
        *script.answers.lock() = vec![failed(), failed(), failed()];
        let reported = reports(&script, "", Path::new("/"), 600, async || {}).await;
        let expected = [
            (0, KubeconfigError::Plugin.to_string()),
            (90, "None".to_owned()),
        ];
        assert_eq!(reported, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_that_end_are_made_anew_before() {
        let script = Script::default();
        let until = |second| (Duration::ZERO, Ok(Some(at(second))));
        *script.answers.lock() = vec![until(600), until(0), until(3600)];
        let reported = reports(&script, "", Path::new("/"), 1200, async || {}).await;
        let times: Vec<u64> = reported.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [0, 540, 570], "{reported:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hangs_is_reported_and_awaited() {
        let script = Script::default();
        *script.answers.lock() = vec![(Duration::from_secs(100), Ok(None))];
        let reported = reports(&script, "", Path::new("/"), 600, async || {}).await;
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert_eq!(
            reported[0],
            (
                15,
                "the credentials plugin has not answered within 15s".to_owned()
            )
        );
        assert_eq!((reported[1].0, script.tokens.lock().len()), (100, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_expiry_of_a_token_is_reported() {
        let script = Script::default();
        // {"exp":1000060}
        let user = "token: e30.eyJleHAiOjEwMDAwNjB9.c2ln";
        let reported = reports(&script, user, Path::new("/"), 600, async || {}).await;
        assert_eq!(reported, [(0, "Some(60)".to_owned())]);
    }
}
