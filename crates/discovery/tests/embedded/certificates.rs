//! Certificates of a test, and the files that have them.

use std::{fs, path::PathBuf};

use discovery::TlsFiles;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use tempfile::TempDir;

/// An authority, and a directory with the files that it writes.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// The certificate of the authority.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for servers on loopback.
    pub(crate) fn server(&self) -> Pair {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        self.sign(&CertificateParams::new(names).unwrap())
    }

    /// That of a client: a user, and one of its groups.
    pub(crate) fn client(&self, user: &str, group: &str) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        Pair {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// Writes the files of a server, which verifies clients if `has_clients`.
    pub(crate) fn files(&self, has_clients: bool) -> TlsFiles {
        let Pair { certificate, key } = self.server();
        TlsFiles {
            certificate: self.write("tls.crt", &certificate),
            key: self.write("tls.key", &key),
            client_ca: has_clients.then(|| self.write("ca.crt", &self.pem())),
        }
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}
