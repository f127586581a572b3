//! Who sends a request, and what that user may ask for.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::sleep;
use tonic::Status;

use super::reviews::Reviews;
use crate::{problem::Problem, set::SetKey, user::User};

/// How often the rights of a client that follows sets are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long a client follows sets before it has to say again who it is: at least this long, and up to twice as long.
const TERM: Duration = Duration::from_secs(30 * 60);

/// Who sends a request. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Option<Known>);

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) reviews: Arc<Reviews>,
    pub(super) user: Arc<User>,
    /// The end of what says so.
    pub(super) expires: Option<Timestamp>,
}

impl Caller {
    /// Somebody who may ask for everything.
    pub(super) const fn anybody() -> Self {
        Self(None)
    }

    pub(super) const fn of(known: Known) -> Self {
        Self(Some(known))
    }

    /// Whether some sets may be refused.
    pub(crate) const fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the user may ask for the set.
    ///
    /// # Errors
    /// That it may not, or that it is not known.
    pub(crate) async fn check(&self, key: &SetKey) -> Result<(), Problem> {
        let Some(Known { reviews, user, .. }) = &self.0 else {
            return Ok(());
        };
        // It exists nowhere: the host need not be asked, nor the answer be kept.
        if !key.can_exist() {
            return Ok(());
        }
        match reviews.may_get(user, key).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Problem::forbidden(&user.name, key)),
            Err(away) => Err(Problem::unreviewed(&away)),
        }
    }

    /// Whether the user may ask for everything.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`, or `UNAVAILABLE` while that is not known.
    pub(crate) async fn check_all(&self) -> Result<(), Status> {
        let Some(Known { reviews, user, .. }) = &self.0 else {
            return Ok(());
        };
        match reviews.may_list(user).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Status::permission_denied(format!(
                "endpointsets.fedrs.dev is forbidden: User {:?} cannot list resource \"endpointsets\" in API group \"fedrs.dev\" at the cluster scope",
                reflector::printable(&user.name)
            ))),
            Err(away) => Err(Status::unavailable(away.to_string())),
        }
    }

    /// The time to look at the rights of a client again that follows sets; never for somebody who may ask for everything.
    pub(crate) async fn look_again(&self) {
        match &self.0 {
            Some(_) => sleep(LOOK_AGAIN).await,
            None => std::future::pending().await,
        }
    }

    /// The end of a call that follows sets: the client has to say again who it is. While the host is away it would not get far, and the
    /// call lasts on.
    pub(crate) async fn term(&self) -> Status {
        let Some(known) = &self.0 else {
            return std::future::pending().await;
        };
        let ends = async {
            sleep(TERM.mul_f64(rand::random_range(1.0..2.0))).await;
            while known.reviews.is_host_away() {
                sleep(LOOK_AGAIN).await;
            }
        };
        let expires = async {
            while known.expires.is_none_or(|end| end > Timestamp::now()) {
                sleep(LOOK_AGAIN).await;
            }
        };
        tokio::select! {
            () = ends => Status::unavailable("this call has lasted for its time: begin another one, and go on from your versions"),
            () = expires => Status::unauthenticated("the client certificate has expired"),
        }
    }
}
