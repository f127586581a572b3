//! How the controllers of Maintenances and AvailabilitySets reach the members.

use std::collections::BTreeMap;

use cluster_informer::Health;
use controller_base::members::{Access, Members};

use super::registry::{MemberState, Registry};

impl Members for Registry {
    fn all(&self) -> BTreeMap<String, Access> {
        self.map_members(access)
    }
}

fn access(member: &MemberState) -> Access {
    if member.removed.is_some() {
        return Access::Unreachable("it has no kubeconfig any more".to_owned());
    }
    let Some(access) = member.access.as_ref().filter(|_| member.followed) else {
        return match &member.source_error {
            Some(error) => Access::Unreachable(error.to_string()),
            None => Access::Joining,
        };
    };
    match access.store.health() {
        Health::Unreachable { .. } => {
            Access::Unreachable("its API server can't be reached".to_owned())
        }
        Health::Unauthorized { .. } => {
            Access::Unreachable("its API server rejects the credentials".to_owned())
        }
        Health::Unknown | Health::Healthy | Health::Failing { .. } => {
            Access::Client(access.client.clone())
        }
    }
}
