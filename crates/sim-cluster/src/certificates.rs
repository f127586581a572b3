//! The cluster's certificate authority, and the server's certificate.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The error of a server without certificates.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("failed to generate the certificates: {0}")]
    Generate(#[from] rcgen::Error),
    #[error("failed to configure TLS: {0}")]
    Configure(#[from] rustls::Error),
}

/// The certificate of an HTTPS server, and the authority with which clients verify it.
pub(crate) struct Certificates {
    /// The authority, for clients.
    pub(crate) authority_pem: String,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Certificates {
    /// A certificate for an address, and for 127.0.0.1 and `localhost`.
    pub(crate) fn for_address(address: IpAddr) -> Result<Self, CertificateError> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority
            .distinguished_name
            .push(DnType::CommonName, "sim-cluster");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut params =
            CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        params
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        params.subject_alt_names.push(SanType::IpAddress(address));
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        Ok(Self {
            authority_pem: authority.pem(),
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }

    /// The TLS configuration of a server with HTTP/2 and HTTP/1.1.
    pub(crate) fn server_config(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
