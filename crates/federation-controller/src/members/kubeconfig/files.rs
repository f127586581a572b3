//! The files that a kubeconfig names: their content is put in their place, so that a change of one is a change of the
//! kubeconfig, and the client reads none by itself.

use std::{
    collections::BTreeMap,
    path::{MAIN_SEPARATOR, Path},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::SecretString;

use super::{Kubeconfig, KubeconfigError};

/// A certificate or a token has some kilobytes; what is larger is something else.
const FILE_LEN_MAX: u64 = 1 << 20;

/// The content of each file that is named, by the field.
pub(in crate::members) type Files = BTreeMap<&'static str, Vec<u8>>;

impl Kubeconfig {
    /// The fields that name files, with the files.
    pub(in crate::members) fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let (cluster, user) = (&self.cluster, &self.user);
        let fields = [
            ("certificate-authority", &cluster.certificate_authority),
            ("client-certificate", &user.client_certificate),
            ("client-key", &user.client_key),
            ("tokenFile", &user.token_file),
        ];
        fields.into_iter().filter_map(|(field, path)| {
            let path = path.as_deref().filter(|path| !path.is_empty())?;
            Some((field, path))
        })
    }

    /// The kubeconfig with absolute paths: relative ones, also that of a program, begin in `directory`.
    #[must_use]
    pub fn in_directory(mut self, directory: &Path) -> Self {
        let (cluster, user) = (&mut self.cluster, &mut self.user);
        let files = [
            &mut cluster.certificate_authority,
            &mut user.client_certificate,
            &mut user.client_key,
            &mut user.token_file,
        ];
        let files = files.into_iter().flatten().filter(|path| !path.is_empty());
        let program = user.exec.as_mut().and_then(|exec| exec.command.as_mut());
        // A name without a separator is looked up in PATH.
        let program = program.filter(|command| command.contains(MAIN_SEPARATOR));
        for path in files.chain(program) {
            *path = directory.join(&*path).display().to_string();
        }
        self
    }

    /// The content of the files.
    pub(in crate::members) async fn read_files(&self) -> Result<Files, KubeconfigError> {
        let mut files = Files::new();
        for (field, path) in self.files() {
            let failed = |error: std::io::Error| KubeconfigError::File {
                field,
                path: path.to_owned(),
                why: error.to_string(),
            };
            let content = read_file(Path::new(path)).await.map_err(failed)?;
            files.insert(field, content);
        }
        Ok(files)
    }

    /// Replaces the names of `files` by their content. As in kubectl, data in the kubeconfig itself takes precedence over
    /// files, except for a token.
    pub(in crate::members) fn with_files(mut self, files: &Files) -> Self {
        let encoded = |field| files.get(field).map(|content| STANDARD.encode(content));
        let (cluster, user) = (&mut self.cluster, &mut self.user);
        cluster.certificate_authority = None;
        if let Some(data) = encoded("certificate-authority") {
            cluster.certificate_authority_data.get_or_insert(data);
        }
        user.client_certificate = None;
        if let Some(data) = encoded("client-certificate") {
            user.client_certificate_data.get_or_insert(data);
        }
        user.client_key = None;
        if let Some(data) = encoded("client-key") {
            user.client_key_data.get_or_insert(data.into());
        }
        user.token_file = None;
        if let Some(token) = files.get("tokenFile") {
            // Files end with a line feed more often than not.
            let token = String::from_utf8_lossy(token).trim().to_owned();
            user.token = Some(SecretString::from(token));
        }
        self
    }
}

/// Reads a regular file of at most [`FILE_LEN_MAX`].
pub(in crate::members) async fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let metadata = tokio::fs::metadata(path).await?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    if metadata.len() > FILE_LEN_MAX {
        return Err(std::io::Error::other("larger than 1 MiB"));
    }
    tokio::fs::read(path).await
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrecy::ExposeSecret;

    use super::*;

    fn kubeconfig(cluster: &str, user: &str) -> Kubeconfig {
        let yaml = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://c'{cluster}}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
        );
        Kubeconfig::read(&yaml).unwrap()
    }

    #[tokio::test]
    async fn files_are_put_in_from_the_kubeconfigs_directory() {
        let directory = tempfile::tempdir().unwrap();
        let absolute = directory.path().join("token");
        for (name, content) in [
            ("ca.pem", "ca"),
            ("c.pem", "c"),
            ("k.pem", "k"),
            ("token", "t\n"),
        ] {
            fs::write(directory.path().join(name), content).unwrap();
        }
        let user = format!(
            "client-certificate: c.pem, client-key: ./k.pem, token: old, tokenFile: '{}', exec: {{command: bin/plugin}}",
            absolute.display()
        );
        let named =
            kubeconfig(", certificate-authority: ca.pem", &user).in_directory(directory.path());
        let files = named.read_files().await.unwrap();
        let whole = named.with_files(&files);
        assert_eq!(whole.files().count(), 0);
        assert_eq!(
            whole.cluster.certificate_authority_data.as_deref(),
            Some("Y2E=")
        );
        assert_eq!(whole.user.client_certificate_data.as_deref(), Some("Yw=="));
        let key = whole.user.client_key_data.as_ref().unwrap();
        assert_eq!(key.expose_secret(), "aw==");
        assert_eq!(
            whole.token(),
            Some("t"),
            "a token's file goes before the token, as for kubectl"
        );
        let command = whole.user.exec.unwrap().command.unwrap();
        assert_eq!(
            command,
            directory.path().join("bin/plugin").display().to_string()
        );
    }

    #[tokio::test]
    async fn data_goes_before_files_and_programs_of_the_path_stay() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ca.pem"), "other").unwrap();
        let cluster = ", certificate-authority: ca.pem, certificate-authority-data: Y2E=";
        let named = kubeconfig(cluster, "exec: {command: aws}").in_directory(directory.path());
        let files = named.read_files().await.unwrap();
        let whole = named.with_files(&files);
        assert_eq!(
            whole.cluster.certificate_authority_data.as_deref(),
            Some("Y2E=")
        );
        assert_eq!(whole.user.exec.unwrap().command.as_deref(), Some("aws"));
    }

    #[tokio::test]
    async fn a_file_that_can_not_be_read_is_named_with_its_field() {
        let directory = tempfile::tempdir().unwrap();
        let named = kubeconfig("", "tokenFile: nowhere").in_directory(directory.path());
        let error = named.read_files().await.unwrap_err().to_string();
        assert!(
            error.starts_with("tokenFile: failed to read ") && error.contains("nowhere"),
            "{error}"
        );
        let named = kubeconfig(", certificate-authority: .", "").in_directory(directory.path());
        let error = named.read_files().await.unwrap_err().to_string();
        assert!(error.ends_with("not a regular file"), "{error}");
    }
}
