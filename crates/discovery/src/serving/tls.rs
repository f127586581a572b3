//! TLS of the servers: certificates from files, which are read again when they change.

use std::{
    error::Error as _,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use sha2::{Digest, Sha256};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::metrics::ServerMetrics;

/// How often the files are read. File notifications do not show how mounted Secrets change.
const PERIOD: Duration = Duration::from_secs(10);

/// The files of the servers' TLS, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, with those of the authorities in between.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities of clients' certificates, which are required then.
    pub client_ca: Option<PathBuf>,
}

/// TLS from files.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    /// The digest of what was read the last time, also if it can't be used.
    last: Mutex<[u8; 32]>,
    current: ArcSwap<Configurations>,
}

/// What the files have, for each protocol.
#[derive(Debug)]
pub(super) struct Configurations {
    pub(super) http1: Arc<ServerConfig>,
    pub(super) http2: Arc<ServerConfig>,
}

/// Files can't be used. The texts name them, and quote nothing of them.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no PEM file, or has no certificate.
    #[error("{} has no valid certificate in PEM", .0.display())]
    NoCertificate(PathBuf),
    /// A file is no PEM file, or has no key.
    #[error("{} has no valid private key in PEM", .0.display())]
    NoKey(PathBuf),
    /// The certificate and the key can't be used, or are not a pair.
    #[error("the certificate in {} and the key in {} can't be used", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The authorities can't be used.
    #[error("the certificates in {} can't be used to verify clients", .0.display())]
    ClientCa(PathBuf),
}

/// The contents of the files.
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If they can't be used.
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let contents = Contents::read(&files)?;
        let configurations = contents.configurations(&files)?;
        Ok(Arc::new(Self {
            last: Mutex::new(contents.digest()),
            current: ArcSwap::from_pointee(configurations),
            files,
        }))
    }

    /// What new connections use.
    pub(super) fn current(&self) -> Arc<Configurations> {
        self.current.load_full()
    }

    /// Uses the files anew when they change, until `cancel`.
    pub(super) async fn keep_current(
        self: Arc<Self>,
        metrics: ServerMetrics,
        cancel: CancellationToken,
    ) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_readable = true;
        while cancel.run_until_cancelled(ticks.tick()).await.is_some() {
            let tls = Arc::clone(&self);
            let Ok(read) = tokio::task::spawn_blocking(move || tls.read_again()).await else {
                return;
            };
            let was_readable = std::mem::replace(&mut is_readable, true);
            match read {
                Ok(false) => continue,
                Ok(true) => {
                    let certificate = self.files.certificate.display();
                    tracing::info!(%certificate, "TLS uses changed files");
                }
                Err(ref error) => {
                    is_readable = !matches!(error, TlsError::Read { .. });
                    // One warning, until it can be read again.
                    if !is_readable && !was_readable {
                        continue;
                    }
                    let source = error.source().map(ToString::to_string);
                    tracing::warn!(%error, source, "TLS keeps the files as they were before");
                }
            }
            metrics.count_tls_reload(read.is_ok());
        }
    }

    /// Uses the files if they have changed. Returns whether they have.
    fn read_again(&self) -> Result<bool, TlsError> {
        let contents = Contents::read(&self.files)?;
        let digest = contents.digest();
        if std::mem::replace(&mut *self.last.lock(), digest) == digest {
            return Ok(false);
        }
        let configurations = contents.configurations(&self.files)?;
        self.current.store(Arc::new(configurations));
        Ok(true)
    }
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| TlsError::Read {
                path: path.to_owned(),
                source,
            })
        };
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for content in [
            Some(&self.certificate),
            Some(&self.key),
            self.client_ca.as_ref(),
        ] {
            digest.update(content.map_or(&[][..], |content| content));
            // Ends one, so that no two contents look like others.
            digest.update(content.map_or(0, Vec::len).to_le_bytes());
        }
        digest.finalize().into()
    }

    fn configurations(&self, files: &TlsFiles) -> Result<Configurations, TlsError> {
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|_| TlsError::NoKey(files.key.clone()))?;
        let chain = certificates(&self.certificate, &files.certificate)?;
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has the usual versions");
        let builder = match (&self.client_ca, &files.client_ca) {
            (Some(content), Some(path)) => {
                let invalid = || TlsError::ClientCa(path.clone());
                let mut roots = RootCertStore::empty();
                for certificate in certificates(content, path)? {
                    roots.add(certificate).map_err(|_| invalid())?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().map_err(|_| invalid())?)
            }
            _ => builder.with_no_client_auth(),
        };
        let http1 = builder.with_single_cert(chain, key);
        let mut http1 = http1.map_err(|source| TlsError::Pair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            source,
        })?;
        let mut http2 = http1.clone();
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        http2.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Configurations {
            http1: Arc::new(http1),
            http2: Arc::new(http2),
        })
    }
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.ok().filter(|found| !found.is_empty());
    certificates.ok_or_else(|| TlsError::NoCertificate(path.to_owned()))
}

/// The process's provider of cryptography, or the one that is compiled in.
fn provider() -> Arc<CryptoProvider> {
    let default = CryptoProvider::get_default().cloned();
    default.unwrap_or_else(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
