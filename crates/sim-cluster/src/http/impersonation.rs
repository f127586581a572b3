//! Acting as somebody else: `Impersonate-User`, `Impersonate-Group`, `Impersonate-Uid`, for those who may.
//!
//! headers -> may the sender `impersonate` each of them? -> the user that the request counts as

use http::HeaderMap;

use crate::authentication::{ACCOUNT_PREFIX, User};
use crate::authorization::{Attributes, authorize};
use crate::status::Status;
use crate::store::Store;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";

/// Whom a request of `sender` counts as: itself, or whom its headers name.
///
/// # Errors
/// 403 if the sender may not act as that user or group; 500, as the API server has it, for groups or a uid without a
/// user.
pub(crate) fn acting_user(
    store: &Store,
    sender: User,
    headers: &HeaderMap,
) -> Result<User, Status> {
    let texts = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).into_iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        texts
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (users, groups, uids) = (texts(USER), texts(GROUP), texts(UID));
    let Some(name) = users.first() else {
        if groups.is_empty() && uids.is_empty() {
            return Ok(sender);
        }
        return Err(Status::internal(
            "requested groups or a uid without impersonating a user",
        ));
    };
    let account = name
        .strip_prefix(ACCOUNT_PREFIX)
        .and_then(|account| account.split_once(':'));
    let may_be = |group: &str, resource: &str, namespace: &str, name: &str| {
        let act = Attributes::on_object("impersonate", (group, resource), namespace, name);
        authorize(store, &sender, &act)
    };
    match account {
        Some((namespace, account)) => may_be("", "serviceaccounts", namespace, account)?,
        None => may_be("", "users", "", name)?,
    }
    for group in &groups {
        may_be("", "groups", "", group)?;
    }
    for uid in &uids {
        may_be("authentication.k8s.io", "uids", "", uid)?;
    }
    let named: Vec<&str> = groups.iter().map(String::as_str).collect();
    let mut user = match account {
        _ if *name == User::anonymous().name => User::anonymous(),
        Some((namespace, account)) if groups.is_empty() => {
            User::service_account(namespace, account)
        }
        _ => User::named(name, &named),
    };
    user.uid = uids.into_iter().next().unwrap_or_default();
    Ok(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acting(sender: User, headers: &[(&'static str, &str)]) -> Result<User, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        acting_user(&Store::new(8), sender, &map).map_err(|status| status.message)
    }

    #[test]
    fn the_administrator_may_act_as_anybody() {
        let account = "system:serviceaccount:a:b";
        for (headers, expected) in [
            (vec![], User::administrator()),
            (
                vec![(USER, "alice"), (GROUP, "x"), (GROUP, "y")],
                User::named("alice", &["x", "y"]),
            ),
            (vec![(USER, account)], User::service_account("a", "b")),
            (
                vec![(USER, account), (GROUP, "x")],
                User::named(account, &["x"]),
            ),
            (vec![(USER, "system:anonymous")], User::anonymous()),
        ] {
            assert_eq!(
                acting(User::administrator(), &headers),
                Ok(expected),
                "{headers:?}"
            );
        }
        let with_uid = acting(User::administrator(), &[(USER, "alice"), (UID, "u")]);
        assert_eq!(with_uid.unwrap().uid, "u");
        let nobody = acting(User::administrator(), &[(GROUP, "x")]).unwrap_err();
        assert!(nobody.contains("without impersonating a user"), "{nobody}");
    }

    #[test]
    fn others_need_the_right_to() {
        assert_eq!(
            acting(User::named("alice", &[]), &[(USER, "bob")]),
            Err("users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API group \
                 \"\" at the cluster scope"
                .to_owned())
        );
        assert_eq!(
            acting(
                User::named("alice", &[]),
                &[(USER, "system:serviceaccount:a:b")]
            ),
            Err(
                "serviceaccounts \"b\" is forbidden: User \"alice\" cannot impersonate resource \
                 \"serviceaccounts\" in API group \"\" in the namespace \"a\""
                    .to_owned()
            )
        );
    }
}
