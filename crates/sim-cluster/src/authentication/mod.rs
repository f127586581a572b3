//! Authentication: which user sends a request.
//!
//! ```text
//! Authorization: Bearer ... -> an admitted token -> its user
//!                           -> a `ServiceAccount` token: signature, times, audience; does the account still exist?
//!                           -> 401
//! ```

mod accounts;
mod credentials;
mod token;
mod user;

pub(crate) use accounts::{issue, user_of};
pub(crate) use credentials::Credentials;
pub use user::User;
pub(crate) use user::{ACCOUNT_PREFIX, MASTERS, account_name};
