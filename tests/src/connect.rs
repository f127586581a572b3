//! Clients of kubeconfigs in Secrets, without network: the server's name is the member's, and the member's API itself says
//! whose the token is and what they may do.

use std::collections::BTreeMap;

use federation_controller::members::kubeconfig::{Connect, Kubeconfig, KubeconfigError};
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::{Client, client::Body};
use tower::ServiceExt;

use crate::link::Link;

/// The members, by name.
pub(crate) struct Routes(pub(crate) BTreeMap<String, Link>);

impl Connect for Routes {
    fn connect(
        &self,
        kubeconfig: Kubeconfig,
    ) -> BoxFuture<'static, Result<Client, KubeconfigError>> {
        let name = kubeconfig.server().trim_start_matches("https://");
        let link = self
            .0
            .get(name)
            .ok_or_else(|| KubeconfigError::Client(format!("no cluster {name}")));
        // In this process whoever shows no token is the administrator: that is nobody here.
        let token = kubeconfig.token().unwrap_or("none");
        let header = HeaderValue::try_from(format!("Bearer {token}"));
        let client = link.and_then(|link| {
            let header = header.map_err(|_| KubeconfigError::Token)?;
            let link = link.clone().map_request(move |mut it: Request<Body>| {
                it.headers_mut().insert(AUTHORIZATION, header.clone());
                it
            });
            Ok(Client::new(link, "default"))
        });
        futures::future::ready(client).boxed()
    }
}
