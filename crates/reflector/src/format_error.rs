//! Errors as one line for people, without secrets.

use std::error::Error;

use kube::client::AuthError;

use crate::printable::printable;

/// An error with its sources in one [printable] line, each once: `failed to list /api/v1/pods: connection refused`.
///
/// Takes the first line of each: parsers quote what they read, which may be a kubeconfig with its secrets. Of a
/// credentials plugin that failed it shows only the exit status: command, environment and output may be secret.
#[must_use]
pub fn format_error(error: &(dyn Error + 'static)) -> String {
    if let Some(message) = sources(error).find_map(plugin_message) {
        return message;
    }
    let mut line = String::new();
    for source in sources(error).filter(|error| !is_wrapper(*error)) {
        let text = source.to_string();
        let text = text.lines().next().unwrap_or_default().trim_end();
        if line.is_empty() {
            text.clone_into(&mut line);
        } else if !line.contains(text) {
            line = format!("{line}: {text}");
        }
    }
    printable(&line)
}

/// Whether the client could not obtain its own credentials: a plugin failed, or a token is no valid header. That says
/// nothing about the server.
#[must_use]
pub fn is_credentials_error(error: &kube::Error) -> bool {
    sources(error).any(<dyn Error>::is::<AuthError>)
}

/// The error and its sources, from the outside in.
fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Whether the error only says that its source comes from the client's HTTP service.
fn is_wrapper(error: &(dyn Error + 'static)) -> bool {
    let boxed = || {
        error
            .downcast_ref::<Box<kube::Error>>()
            .map(|boxed| &**boxed)
    };
    let error = error.downcast_ref().or_else(boxed);
    matches!(error, Some(kube::Error::Service(_)))
}

/// What people may see of a credentials plugin that failed.
fn plugin_message(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref::<AuthError>()? {
        AuthError::AuthExecRun { out, .. } => {
            Some(format!("the credentials plugin failed: {}", out.status))
        }
        AuthError::AuthExecParse(_) => {
            Some("the credentials plugin did not print an ExecCredential".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_of_an_error_is_shown() {
        let error = std::io::Error::other("line 1 is wrong\n --> token: s3cret");
        assert_eq!(format_error(&error), "line 1 is wrong");
    }

    #[test]
    fn the_service_of_the_client_is_not_mentioned() {
        let refused = || kube::Error::Service("connection refused".into());
        assert_eq!(format_error(&refused()), "connection refused");
        let error = crate::ErrorKind::Connection(Box::new(refused()));
        assert_eq!(format_error(&error), "connection refused");
    }

    #[test]
    fn the_output_of_a_credentials_plugin_is_not_shown() {
        let failed = || {
            let output = std::process::Command::new("sh")
                .args(["-c", "echo s3cret; echo s3cret >&2; exit 3"])
                .output()
                .expect("sh runs");
            AuthError::AuthExecRun {
                cmd: r#"TOKEN="s3cret" "aws" "s3cret""#.to_owned(),
                out: Box::new(output),
            }
        };
        for error in [
            kube::Error::Auth(failed()),
            kube::Error::Service(failed().into()),
        ] {
            assert!(is_credentials_error(&error));
            assert_eq!(
                format_error(&error),
                "the credentials plugin failed: exit status: 3"
            );
            let error = crate::ErrorKind::Connection(Box::new(error));
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
