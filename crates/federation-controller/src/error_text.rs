//! Errors as text.

pub(crate) use reflector::format_error;

/// The message of the API server, or the causes of a failed connection.
#[must_use]
pub fn format_api_error(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Service(cause) => format_error(cause.as_ref()),
        error => format_error(error),
    }
}
