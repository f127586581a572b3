//! The kubeconfig of a cluster: address, authority and token in one file.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The address of a cluster and the credentials of its administrator.
#[derive(Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    /// The name of cluster, context and user.
    pub cluster: String,
    /// `https://127.0.0.1:PORT`.
    pub server: String,
    /// The authority of the server's certificate, PEM.
    pub authority_pem: String,
    /// The bearer token. Secret.
    pub token: String,
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kubeconfig = formatter.debug_struct("Kubeconfig");
        kubeconfig
            .field("cluster", &self.cluster)
            .field("server", &self.server);
        kubeconfig.finish_non_exhaustive()
    }
}

impl Kubeconfig {
    /// The content of the file. JSON strings are valid YAML strings.
    pub fn to_yaml(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let (name, server, token) = (
            quoted(&self.cluster),
            quoted(&self.server),
            quoted(&self.token),
        );
        let authority = STANDARD.encode(&self.authority_pem);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
             clusters:\n- name: {name}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\n\
             users:\n- name: {name}\n  user:\n    token: {token}\n\
             contexts:\n- name: {name}\n  context:\n    cluster: {name}\n    user: {name}\n"
        )
    }

    /// Writes a file that only its owner can read. The file appears complete: readers never see a part of it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let unfinished = path.with_file_name(name);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&unfinished)?;
        file.write_all(self.to_yaml().as_bytes())?;
        std::fs::rename(&unfinished, path)
    }
}
