//! Clients for kubeconfigs, without a network: the server's name is the member's name, and the member's API server
//! authenticates and authorizes the token.

use std::{collections::BTreeMap, sync::Arc};

use federation_controller::members::{
    MemberEvent,
    kubeconfig::{Connect, Kubeconfig, KubeconfigError},
};
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tower::ServiceExt;

use crate::crash::CrashableService;

/// The token of kubeconfigs in files: requests with it are the administrator's.
const ADMINISTRATOR: &str = "administrator";

/// The kubeconfig of the administrator of the member `name`, as in a file of the members directory.
fn administrator_kubeconfig(name: &str) -> Kubeconfig {
    Kubeconfig::read(&kubeconfig(name, ADMINISTRATOR)).expect("a valid kubeconfig")
}

/// The file `name` of the members directory, for the administrator of the member `cluster`.
pub fn member_file(name: &str, cluster: &str) -> MemberEvent {
    MemberEvent::Kubeconfig {
        name: name.to_owned(),
        place: format!("file {name}.yaml"),
        kubeconfig: Ok(administrator_kubeconfig(cluster)),
    }
}

/// A kubeconfig for the member `name`.
pub fn kubeconfig(name: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: fedrs\n\
         clusters: [{{name: fedrs, cluster: {{server: 'https://{name}'}}}}]\n\
         users: [{{name: fedrs, user: {{token: {token}}}}}]\n\
         contexts: [{{name: fedrs, context: {{cluster: fedrs, user: fedrs}}}}]\n"
    )
}

/// Clients of the administrators of members, by name.
pub struct AdministratorClients(pub BTreeMap<String, Client>);

impl Connect for AdministratorClients {
    fn connect(
        &self,
        kubeconfig: Kubeconfig,
    ) -> BoxFuture<'static, Result<Client, KubeconfigError>> {
        let name = kubeconfig.server().trim_start_matches("https://");
        futures::future::ready(Ok(self.0[name].clone())).boxed()
    }
}

/// Functions that wrap the client of a member, by the member's name.
pub(crate) type Interceptors =
    Arc<Mutex<BTreeMap<String, Box<dyn Fn(Client) -> Client + Send + Sync>>>>;

/// The members' services, by name.
pub(crate) struct Routes {
    pub(crate) services: BTreeMap<String, CrashableService>,
    pub(crate) interceptors: Interceptors,
}

impl Connect for Routes {
    fn connect(
        &self,
        kubeconfig: Kubeconfig,
    ) -> BoxFuture<'static, Result<Client, KubeconfigError>> {
        let name = kubeconfig.server().trim_start_matches("https://");
        let service = self
            .services
            .get(name)
            .ok_or_else(|| KubeconfigError::Client(format!("no cluster {name}")));
        let client = service.and_then(|service| {
            // In this process a request without a token is the administrator's: no other kubeconfig may do that.
            match kubeconfig.token().unwrap_or("none") {
                ADMINISTRATOR => Ok(Client::new(service.clone(), "default")),
                token => client_of(token, service.clone()),
            }
        });
        let client = client.map(|client| match self.interceptors.lock().get(name) {
            Some(intercept) => intercept(client),
            None => client,
        });
        futures::future::ready(client).boxed()
    }
}

/// A client whose requests have this token.
pub(crate) fn client_of(token: &str, service: CrashableService) -> Result<Client, KubeconfigError> {
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let header = header.map_err(|_| KubeconfigError::Token)?;
    let service = service.map_request(move |mut request: Request<Body>| {
        request.headers_mut().insert(AUTHORIZATION, header.clone());
        request
    });
    Ok(Client::new(service, "default"))
}
