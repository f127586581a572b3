//! Whom a client trusts, and what it shows to servers: from files, which are read again for each connection and each call.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::fs;
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::{self, Certificate, ClientTlsConfig, Identity},
};

use crate::server::Server;

/// The files.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// The authorities of servers, in PEM. None: those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate of the client, and its key, in PEM.
    pub client: Option<(PathBuf, PathBuf)>,
    /// The bearer token.
    pub token: Option<PathBuf>,
}

/// A file can't be used. Quotes nothing of it.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// It can't be read.
    #[error("failed to read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has no token.
    #[error("{} has no token of one line", .0.display())]
    NoToken(PathBuf),
    /// The certificates are none.
    #[error("the certificates of the client, or of the authorities, can't be used: {0}")]
    Tls(#[source] transport::Error),
}

impl Credentials {
    /// A server with the files as they are now. Without files, `https://` servers have the authorities of the system.
    pub(crate) async fn connection(
        &self,
        server: &Server,
    ) -> Result<transport::Endpoint, CredentialsError> {
        if self.ca.is_none() && self.client.is_none() && !server.needs_tls() {
            return Ok(server.endpoint.clone());
        }
        let mut tls = ClientTlsConfig::new();
        tls = match &self.ca {
            Some(path) => tls.ca_certificate(Certificate::from_pem(read(path).await?)),
            None => tls.with_enabled_roots(),
        };
        if let Some((certificate, key)) = &self.client {
            tls = tls.identity(Identity::from_pem(
                read(certificate).await?,
                read(key).await?,
            ));
        }
        let endpoint = server.endpoint.clone().tls_config(tls);
        endpoint.map_err(CredentialsError::Tls)
    }

    /// A request with the token as it is now.
    ///
    /// # Errors
    /// If the file of the token can't be used.
    pub async fn request<T>(&self, message: T) -> Result<Request<T>, CredentialsError> {
        let mut request = Request::new(message);
        if let Some(authorization) = self.authorization().await? {
            let metadata = request.metadata_mut();
            metadata.insert("authorization", authorization);
        }
        Ok(request)
    }

    /// The metadata `authorization` as it is now.
    async fn authorization(&self) -> Result<Option<MetadataValue<Ascii>>, CredentialsError> {
        let Some(path) = &self.token else {
            return Ok(None);
        };
        let invalid = || CredentialsError::NoToken(path.clone());
        let token = String::from_utf8(read(path).await?).map_err(|_| invalid())?;
        let token = token.trim();
        let value = format!("Bearer {token}").parse::<MetadataValue<Ascii>>();
        let mut value = value
            .ok()
            .filter(|_| !token.is_empty())
            .ok_or_else(invalid)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, CredentialsError> {
    fs::read(path)
        .await
        .map_err(|source| CredentialsError::Read {
            path: path.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_token("abc\n", Some("Bearer abc"))]
    #[case::empty("\n", None)]
    #[case::two_lines("abc\ndef\n", None)]
    #[tokio::test]
    async fn the_token_is_read_each_time(#[case] content: &str, #[case] expected: Option<&str>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let credentials = Credentials {
            token: Some(path.clone()),
            ..Credentials::default()
        };
        let error = credentials.authorization().await.unwrap_err();
        assert!(error.to_string().starts_with("failed to read "));
        std::fs::write(&path, content).unwrap();
        let found = credentials.authorization().await;
        assert_eq!(found.as_ref().err().is_none(), expected.is_some());
        if let Err(error) = &found {
            assert!(!error.to_string().contains("abc"));
        }
        let found = found.ok().flatten();
        assert_eq!(
            found.as_ref().map(|value| value.to_str().unwrap()),
            expected
        );
        assert!(found.is_none_or(|value| value.is_sensitive()));
    }
}
