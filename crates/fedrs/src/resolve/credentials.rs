//! Whom the command trusts, and what it shows to services.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::Args;
use http::HeaderValue;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// A client of HTTP, with TLS for `https://`.
pub(super) type HttpsClient = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// Files. They are read again as they change: tokens for each request, the others after a failure.
#[derive(Args, Clone, Debug)]
pub(super) struct Credentials {
    /// Authorities of services `https://`, in PEM. By default those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Certificate to show to services, in PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// File with a bearer token to send to services
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Credentials {
    /// A client with the certificates as they are now.
    pub(super) fn client(&self) -> anyhow::Result<HttpsClient> {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.tls()?);
        let connector = builder.https_or_http().enable_http1().build();
        Ok(Client::builder(TokioExecutor::new()).build(connector))
    }

    fn tls(&self) -> anyhow::Result<ClientConfig> {
        let builder = ClientConfig::builder();
        let builder = match &self.ca {
            Some(path) => builder.with_root_certificates(authorities(path)?),
            // Without any, services `http://` can be asked.
            None => builder.with_native_roots().unwrap_or_else(|_| {
                ClientConfig::builder().with_root_certificates(RootCertStore::empty())
            }),
        };
        let (Some(certificate), Some(key)) = (&self.client_cert, &self.client_key) else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates(certificate, "--client-cert")?;
        // An error of the parser may quote the file.
        let pem = read(key, "--client-key")?;
        let parsed = PrivateKeyDer::from_pem_slice(&pem).ok();
        let parsed = parsed
            .with_context(|| format!("--client-key={}: no private key in PEM", key.display()))?;
        let configuration = builder.with_client_auth_cert(chain, parsed);
        configuration.context("--client-cert and --client-key")
    }

    /// The header with the token as it is now.
    pub(super) fn authorization(&self) -> anyhow::Result<Option<HeaderValue>> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        let token = read(path, "--token-file")?;
        let token = token.trim_ascii();
        let value = HeaderValue::from_bytes(&[b"Bearer ", token].concat());
        let value = value.ok().filter(|_| !token.is_empty());
        let mut value = value
            .with_context(|| format!("--token-file={}: no token of one line", path.display()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

fn authorities(path: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, "--ca")? {
        let added = roots.add(certificate);
        added.with_context(|| format!("--ca={}", path.display()))?;
    }
    Ok(roots)
}

fn certificates(path: &Path, flag: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let pem = read(path, flag)?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.unwrap_or_default();
    ensure!(
        !certificates.is_empty(),
        "{flag}={}: no certificate in PEM",
        path.display()
    );
    Ok(certificates)
}

fn read(path: &Path, flag: &str) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{flag}={}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        credentials: Credentials,
    }

    /// The options, with a file that has this content as FILE.
    fn credentials(options: &str, content: &str) -> (tempfile::TempDir, Credentials) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, content).unwrap();
        let options = options.replace("FILE", &file.display().to_string());
        let words = ["fedrs"].into_iter().chain(options.split_whitespace());
        (directory, Command::parse_from(words).credentials)
    }

    #[rstest]
    #[case::authorities("--ca FILE", ": no certificate in PEM")]
    #[case::certificate("--client-cert FILE --client-key FILE", ": no certificate in PEM")]
    fn a_file_that_can_not_be_used_is_named_and_not_quoted(
        #[case] options: &str,
        #[case] text: &str,
        #[values("SECRET", "-----BEGIN SECRET")] content: &str,
    ) {
        let (_directory, credentials) = credentials(options, content);
        let error = format!("{:#}", credentials.tls().unwrap_err());
        assert!(error.ends_with(text), "{error}");
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[rstest]
    #[case::token("abc\n", Some("Bearer abc"))]
    #[case::empty("\n", None)]
    #[case::two_lines("abc\ndef", None)]
    fn the_token_of_a_file(#[case] content: &str, #[case] expected: Option<&str>) {
        let (_directory, credentials) = credentials("--token-file FILE", content);
        let found = credentials.authorization();
        if let Err(error) = &found {
            assert!(
                error.to_string().ends_with(": no token of one line"),
                "{error}"
            );
        }
        let value = found.ok().flatten();
        assert!(value.as_ref().is_none_or(HeaderValue::is_sensitive));
        assert_eq!(
            value.as_ref().map(|value| value.to_str().unwrap()),
            expected
        );
    }
}
