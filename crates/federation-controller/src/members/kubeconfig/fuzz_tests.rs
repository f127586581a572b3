//! Kubeconfigs of files and of Secrets, against mutated bytes.

use std::{fmt::Write as _, path::Path, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use mutations::fuzz;
use tokio::runtime::Builder;

use super::{Connect, Kubeconfig, KubeconfigError, OverNetwork};
use crate::{config::SecretKubeconfigs, members::secret::KubeconfigSecret};

/// What the corpus has as credentials: no error may contain it.
const SECRETS: [&str; 3] = ["s3cret", "czNjcmV0", "MIIB"];

fn corpus(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name)
}

fn check_text(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{text}");
    }
}

/// Sends a request with a client made of `kubeconfig`, unless that would run a program or read a file.
fn use_it(kubeconfig: Kubeconfig) {
    check_text(&format!("{kubeconfig:?}"));
    let allowed = SecretKubeconfigs {
        allow_insecure: true,
        ..SecretKubeconfigs::default()
    };
    if let Err(error) = kubeconfig.check_permitted(allowed) {
        return check_text(&error.to_string());
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.expect("a runtime can be made").block_on(async {
        let client = match OverNetwork.connect(kubeconfig).await {
            Ok(client) => client,
            Err(error) => return check_text(&error.to_string()),
        };
        let request = http::Request::get("/readyz").body(kube::client::Body::empty());
        let request = client.send(request.expect("a request can be made"));
        // Nobody answers there. A panic ends the client's own task.
        if let Ok(Err(error)) = tokio::time::timeout(Duration::from_secs(1), request).await {
            let text = controller_base::error_text::format_error(&error);
            assert!(!text.contains("closed unexpectedly"), "{text}");
            check_text(&text);
        }
    });
}

#[test]
fn s8_any_kubeconfig_is_used_or_rejected_without_its_content() {
    fuzz(&corpus("kubeconfigs"), |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        match Kubeconfig::read(text) {
            Ok(kubeconfig) => use_it(kubeconfig),
            // Names are shown: a mutation may have put anything there.
            Err(KubeconfigError::Missing { .. }) => {}
            Err(error) => check_text(&error.to_string()),
        }
    });
}

#[test]
fn s8_any_secret_has_a_kubeconfig_or_an_error_without_its_content() {
    fuzz(&corpus("secrets"), |bytes| {
        let Ok(secret) = serde_json::from_slice::<Secret>(bytes) else {
            return;
        };
        match KubeconfigSecret::from(secret).text {
            Ok(text) => {
                let read = Kubeconfig::read(&text);
                if let Some(error) = read
                    .err()
                    .filter(|error| !matches!(error, KubeconfigError::Missing { .. }))
                {
                    check_text(&error.to_string());
                }
            }
            Err(error) => check_text(&error.to_string()),
        }
    });
}

#[test]
fn s5_a_kubeconfig_that_grows_by_its_aliases_is_rejected() {
    let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        let all = vec![format!("*a{before}"); 10].join(", ");
        let _ = writeln!(yaml, "a{level}: &a{level} [{all}]");
    }
    yaml += "current-context: c\nclusters: *a11\n";
    Kubeconfig::read(&yaml).expect_err("there are 10^12 values");
    let deep = format!("clusters: {}", "[".repeat(100_000));
    Kubeconfig::read(&deep).expect_err("it is too deep");
}
