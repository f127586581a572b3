//! Asks services for a set: one after the other, until one answers.

use std::time::Duration;

use anyhow::{Context, bail};
use discovery::Answer;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use tokio::time::timeout;

use super::credentials::{Credentials, HttpsClient};

/// How long a service may take to answer, beside the wait for a change.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request waits for a change.
const WAIT: Duration = Duration::from_secs(30);
/// The most bytes of an answer.
const MAX_BYTES: usize = 64 << 20;
/// The most characters of an error that are shown.
const MAX_ERROR: usize = 300;

/// The services, and the set to ask them for.
pub(super) struct Services {
    client: HttpsClient,
    credentials: Credentials,
    servers: Vec<Uri>,
    /// The service that has answered last.
    current: usize,
    /// `NAMESPACE/SET`.
    set: String,
}

impl Services {
    /// The services at `servers`.
    ///
    /// # Errors
    /// If a certificate can't be used.
    pub(super) fn new(
        servers: Vec<Uri>,
        credentials: Credentials,
        set: String,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            client: credentials.client()?,
            credentials,
            servers,
            current: 0,
            set,
        })
    }

    /// What the set has. With the version `known`, waits for another one: none if there is none after a while.
    ///
    /// # Errors
    /// If no service answers: that of the last one.
    pub(super) async fn ask(&mut self, known: Option<u64>) -> anyhow::Result<Option<Answer>> {
        let mut failed = None;
        for _ in 0..self.servers.len() {
            let server = &self.servers[self.current];
            match self.ask_one(server, known).await {
                Ok(answer) => return Ok(answer),
                Err(error) => failed = Some(error.context(format!("{server}"))),
            }
            self.current = (self.current + 1) % self.servers.len();
        }
        // The certificates may have changed.
        if let Ok(client) = self.credentials.client() {
            self.client = client;
        }
        Err(failed.expect("there is at least one server"))
    }

    async fn ask_one(&self, server: &Uri, known: Option<u64>) -> anyhow::Result<Option<Answer>> {
        let base = server.to_string();
        let path = format!("{}/v1/endpoints/{}", base.trim_end_matches('/'), self.set);
        let wait = known.map_or(Duration::ZERO, |_| WAIT);
        let uri = format!("{path}?wait={}", wait.as_secs());
        let mut request = Request::get(uri);
        if let Some(version) = known {
            request = request.header(header::IF_NONE_MATCH, format!("\"{version}\""));
        }
        if let Some(authorization) = self.credentials.authorization()? {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let call = async {
            let response = self.client.request(request.body(Empty::new())?).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_BYTES).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
            anyhow::Ok((parts.status, body))
        };
        let (status, body) = timeout(wait + TIMEOUT, call).await.context("no answer")??;
        match status {
            StatusCode::OK => {
                let answer = serde_json::from_slice(&body).context("the answer can't be read")?;
                Ok(Some(answer))
            }
            StatusCode::NOT_MODIFIED => Ok(None),
            status => {
                let text: String = String::from_utf8_lossy(&body)
                    .chars()
                    .take(MAX_ERROR)
                    .collect();
                match text.trim() {
                    "" => bail!("the answer is {status}"),
                    text => bail!("{text}"),
                }
            }
        }
    }
}
