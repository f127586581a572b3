//! Errors as people read them.

pub(crate) use reflector::format_error;

/// What a person should read of an error: the API server's own message, or the causes of a failed connection.
#[must_use]
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Service(cause) => format_error(cause.as_ref()),
        error => format_error(error),
    }
}
