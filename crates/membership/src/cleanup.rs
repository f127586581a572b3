//! Taking away what `fedrs join` made in a cluster.

use crate::{
    cluster_client::{ClusterClient, RequestError},
    membership::Membership,
    names,
    namespace_contents::contents,
    object::{CLUSTER_ROLE, NAMESPACE, ObjectRef},
    say::Say,
};

/// Who takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A user who may delete roles.
    User,
    /// The controller's account itself: it may delete its role, and what that owns goes with it.
    Account,
}

/// Takes the account and its rights out of `member`, telling each. Answers whether anything was there.
pub(crate) async fn account(
    member: &ClusterClient,
    membership: &Membership,
    by: By,
    say: &mut Say,
) -> Result<bool, RequestError> {
    let mut addresses: Vec<ObjectRef> =
        membership.in_member("").iter().map(ObjectRef::of).collect();
    if by == By::Account {
        addresses.retain(|it| it.kind == CLUSTER_ROLE);
    }
    // The owner last: as long as it is there, the work isn't done.
    addresses.reverse();
    let mut any = false;
    for address in addresses {
        if member.delete(&address).await? {
            say.step(member.side, &address, "deleted");
            any = true;
        }
    }
    Ok(any)
}

/// Objects that are named of those that a namespace is left for.
const NAMED: usize = 5;

/// Deletes the namespace, if join made it and nothing is in it any more; telling so, or why not.
pub(crate) async fn namespace(
    remote: &ClusterClient,
    membership: &Membership,
    say: &mut Say,
) -> Result<(), RequestError> {
    let address = membership.namespace_address();
    let Some(found) = remote.get(&address).await? else {
        return Ok(());
    };
    if !names::is_ours(&found) {
        say.step(remote.side, &address, "left: join did not make it");
        return Ok(());
    }
    let inside = match contents(remote, &membership.namespace).await {
        // What can't be looked at, for lack of rights or because an API is down, must not be deleted.
        Err(failure) => vec![format!("who knows what ({failure})")],
        Ok(inside) => inside,
    };
    if inside.is_empty() {
        remote.delete(&address).await?;
        say.step(remote.side, &address, "deleted");
    } else {
        let named = inside.iter().take(NAMED).map(String::as_str);
        let mut named: Vec<_> = named.collect();
        if inside.len() > NAMED {
            named.push("more");
        }
        let inside = named.join(", ");
        say.step(remote.side, &address, format_args!("left: {inside} in it"));
    }
    Ok(())
}

/// What is left in a member where nothing could be taken away, and how a user does it.
pub(crate) fn by_hand(membership: &Membership) -> String {
    let Membership { namespace, .. } = membership;
    let account = membership.account();
    format!(
        "left in the member, with a token that goes on being good: clusterrole/{account}, and the account that it owns. With a kubeconfig of the member:\n  \
         kubectl delete clusterrole {account}\n  \
         kubectl delete {} {namespace}      # if nothing else is in it",
        NAMESPACE.name.to_lowercase()
    )
}
