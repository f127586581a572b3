//! Errors as text: of others, in one short line without control characters.

pub use reflector::format_error;
use reflector::printable;

/// The message of the API server, or the causes of a failed connection.
#[must_use]
pub fn format_api_error(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => printable(&status.message),
        kube::Error::Service(cause) => format_error(cause.as_ref()),
        error => format_error(error),
    }
}
