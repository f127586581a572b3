//! Keys and certificates of one cluster, and kubeconfigs with client certificates, as kind's have them.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use serde_json::json;

use crate::{Result, with_path};

/// The files of a cluster's keys and certificates.
pub(crate) struct Pki {
    directory: PathBuf,
    ca: Issuer<'static, KeyPair>,
    ca_pem: String,
}

impl Pki {
    /// Creates a certificate authority, a server certificate for `addresses`, and a key for the tokens of ServiceAccounts.
    pub(crate) fn create(directory: &Path, addresses: &[IpAddr]) -> Result<Self> {
        with_path(directory, fs::create_dir_all(directory))?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "kubernetes-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let ca_pem = params.self_signed(&key)?.pem();
        let pki = Self {
            directory: directory.to_owned(),
            ca: Issuer::new(params, key),
            ca_pem,
        };
        private_file(&pki.ca_file(), &pki.ca_pem)?;
        pki.write_server(addresses)?;
        let signer = KeyPair::generate()?;
        private_file(&pki.tokens_key(), &signer.serialize_pem())?;
        private_file(&pki.tokens_public_key(), &signer.public_key_pem())?;
        Ok(pki)
    }

    fn write_server(&self, addresses: &[IpAddr]) -> Result<()> {
        let names = ["localhost", "kubernetes.default.svc"].map(str::to_owned);
        let mut params = CertificateParams::new(names)?;
        let addresses = addresses.iter().copied().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        let key = KeyPair::generate()?;
        private_file(
            &self.server_cert(),
            &params.signed_by(&key, &self.ca)?.pem(),
        )?;
        private_file(&self.server_key(), &key.serialize_pem())
    }

    /// A kubeconfig for `server` with a client certificate of the administrator; `cluster` names its context.
    pub(crate) fn kubeconfig(&self, cluster: &str, server: IpAddr) -> Result<String> {
        let user = "kubernetes-admin";
        let mut params = CertificateParams::default();
        let names = &mut params.distinguished_name;
        names.push(DnType::CommonName, user);
        names.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.ca)?.pem();
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": cluster,
            "clusters": [{
                "name": cluster,
                "cluster": {
                    "server": format!("https://{server}:{}", crate::address::API_PORT),
                    "certificate-authority-data": base64(&self.ca_pem),
                },
            }],
            "users": [{
                "name": user,
                "user": {
                    "client-certificate-data": base64(&cert),
                    "client-key-data": base64(&key.serialize_pem()),
                },
            }],
            "contexts": [{ "name": cluster, "context": { "cluster": cluster, "user": user } }],
        });
        // JSON is YAML.
        Ok(format!("{kubeconfig:#}\n"))
    }

    /// The authority's certificate.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// The API server's certificate.
    pub(crate) fn server_cert(&self) -> PathBuf {
        self.directory.join("server.crt")
    }

    /// The API server's key.
    pub(crate) fn server_key(&self) -> PathBuf {
        self.directory.join("server.key")
    }

    /// Signs the tokens of ServiceAccounts.
    pub(crate) fn tokens_key(&self) -> PathBuf {
        self.directory.join("tokens.key")
    }

    /// Checks the tokens of ServiceAccounts.
    pub(crate) fn tokens_public_key(&self) -> PathBuf {
        self.directory.join("tokens.pub")
    }
}

fn base64(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

/// Writes a file that only its owner may read, atomically: a watcher of the directory never sees a part of it.
pub(crate) fn private_file(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let directory = path.parent().unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    with_path(path, write())
}
