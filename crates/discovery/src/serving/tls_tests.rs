//! Files as they are written, and as they change.

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rstest::rstest;
use tempfile::TempDir;

use super::*;

/// A certificate that signs itself, and its key.
fn pair() -> [String; 2] {
    let key = KeyPair::generate().unwrap();
    let authority = CertifiedIssuer::self_signed(CertificateParams::default(), key).unwrap();
    [authority.pem(), authority.key().serialize_pem()]
}

struct Directory(TempDir);

impl Directory {
    fn with(contents: [&str; 3]) -> Self {
        let directory = Self(tempfile::tempdir().unwrap());
        for (name, content) in ["tls.crt", "tls.key", "ca.crt"].iter().zip(contents) {
            directory.write(name, content);
        }
        directory
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.path().join(name), content).unwrap();
    }

    fn load(&self) -> Result<Arc<Tls>, TlsError> {
        let path = |name| self.0.path().join(name);
        Tls::load(TlsFiles {
            certificate: path("tls.crt"),
            key: path("tls.key"),
            client_ca: Some(path("ca.crt")),
        })
    }

    /// The error, with the names of the files in place of their paths.
    fn error(&self) -> String {
        let error = self.load().unwrap_err().to_string();
        error.replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[rstest]
#[case::certificate(0, "tls.crt has no valid certificate in PEM")]
#[case::key(1, "tls.key has no valid private key in PEM")]
#[case::authority(2, "ca.crt has no valid certificate in PEM")]
fn a_file_that_is_damaged_is_named_and_not_quoted(
    #[case] damaged: usize,
    #[case] error: &str,
    #[values(
        "",
        "SECRET",
        "-----BEGIN SECRET",
        "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n"
    )]
    content: &str,
) {
    let [certificate, key] = pair();
    let mut contents = [&*certificate, &*key, &*certificate];
    contents[damaged] = content;
    let found = Directory::with(contents).load().unwrap_err();
    assert!(!format!("{found:?}").contains("SECRET"), "{found:?}");
    if content != "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n" || damaged != 1
    {
        assert_eq!(Directory::with(contents).error(), error);
    }
}

#[test]
fn a_key_of_another_certificate_and_a_missing_file_are_errors() {
    let [certificate, key] = pair();
    let [other, _] = pair();
    assert_eq!(
        Directory::with([&other, &key, &certificate]).error(),
        "the certificate in tls.crt and the key in tls.key can't be used"
    );
    let directory = Directory::with([&certificate, &key, &certificate]);
    fs::remove_file(directory.0.path().join("ca.crt")).unwrap();
    assert_eq!(directory.error(), "failed to read ca.crt");
}

#[test]
fn changed_files_are_used_and_broken_ones_are_not() {
    let [certificate, key] = pair();
    let directory = Directory::with([&certificate, &key, &certificate]);
    let tls = directory.load().unwrap();
    let first = tls.current();
    assert!(!tls.read_again().unwrap());
    assert!(Arc::ptr_eq(&first, &tls.current()));

    let [certificate, key] = pair();
    directory.write("tls.crt", &certificate);
    let error = tls.read_again().unwrap_err();
    assert!(
        matches!(error, TlsError::Pair { .. }),
        "the key is still the old one"
    );
    assert!(Arc::ptr_eq(&first, &tls.current()), "it stays in use");
    assert!(!tls.read_again().unwrap(), "reported once");

    directory.write("tls.key", &key);
    assert!(tls.read_again().unwrap());
    assert!(!Arc::ptr_eq(&first, &tls.current()));
    fs::remove_file(directory.0.path().join("tls.key")).unwrap();
    let error = tls.read_again().unwrap_err();
    assert!(matches!(error, TlsError::Read { .. }));
    directory.write("tls.key", &key);
    assert!(!tls.read_again().unwrap());
}

#[tokio::test(start_paused = true)]
async fn files_are_read_again_in_the_background() {
    let [certificate, key] = pair();
    let directory = Directory::with([&certificate, &key, &certificate]);
    let tls = directory.load().unwrap();
    let first = tls.current();
    let cancel = CancellationToken::new();
    let keeping = Arc::clone(&tls).keep_current(ServerMetrics::default(), cancel.clone());
    let keeping = tokio::spawn(keeping);
    let [certificate, key] = pair();
    directory.write("tls.crt", &certificate);
    directory.write("tls.key", &key);
    while Arc::ptr_eq(&first, &tls.current()) {
        tokio::time::sleep(PERIOD / 2).await;
    }
    cancel.cancel();
    keeping.await.unwrap();
}
