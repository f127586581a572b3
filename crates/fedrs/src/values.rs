//! How values of options are read.

/// The name of a member, a namespace or an account.
pub(crate) fn dns_label(text: &str) -> Result<String, String> {
    if fedrs_api::is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err("must be a DNS label: lower-case letters, digits and '-', at most 63 characters".to_owned())
}
