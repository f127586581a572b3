//! Errors as people read them.

pub(crate) use cluster_informer::chain;

/// What a person should read of an error: the API server's own message, or the causes of a failed connection.
#[must_use]
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Service(cause) => chain(cause.as_ref()),
        error => chain(error),
    }
}
