//! Impersonation: `Impersonate-User`, `Impersonate-Group`, `Impersonate-Uid`, `Impersonate-Extra-KEY`.
//!
//! headers -> may the sender `impersonate` each of them? -> the user of the request

use std::collections::BTreeMap;
use std::fmt::Write;

use http::HeaderMap;

use super::path::decode;
use crate::authentication::{ACCOUNT_PREFIX, User};
use crate::authorization::{Attributes, Target, authorize};
use crate::status::Status;
use crate::store::Store;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const GROUP_OF_REVIEWS: &str = "authentication.k8s.io";

/// The user of a request: the sender, or the user in its headers.
///
/// # Errors
/// 403 if the sender may not impersonate that user, group, uid or extra; 400 for one of these without a user.
pub(crate) fn acting_user(
    store: &Store,
    sender: User,
    headers: &HeaderMap,
) -> Result<User, Status> {
    let (users, groups, uids) = (
        texts(headers, USER),
        texts(headers, GROUP),
        texts(headers, UID),
    );
    let extra = extras(headers);
    let Some(name) = users.first() else {
        if groups.is_empty() && uids.is_empty() && extra.is_empty() {
            return Ok(sender);
        }
        return Err(nobody(&uids, &groups, &extra));
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
        may_be(GROUP_OF_REVIEWS, "uids", "", uid)?;
    }
    for (key, value) in extra
        .iter()
        .flat_map(|(key, values)| values.iter().map(move |value| (key, value)))
    {
        let target = Target::Resource {
            group: GROUP_OF_REVIEWS.to_owned(),
            resource: "userextras".to_owned(),
            subresource: key.clone(),
            namespace: String::new(),
            name: value.clone(),
        };
        let verb = "impersonate".to_owned();
        authorize(store, &sender, &Attributes { verb, target })?;
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
    user.extra = extra;
    Ok(user)
}

/// The values of a header that are not empty.
fn texts(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let texts = texts.filter(|text| !text.is_empty());
    texts.map(str::to_owned).collect()
}

/// The extra fields of the user, by key. Keys are percent-encoded, because names of headers allow fewer characters.
fn extras(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let keys = headers.keys().filter_map(|name| {
        let key = name.as_str().strip_prefix(EXTRA)?;
        Some((decode(key), texts(headers, name.as_str())))
    });
    keys.collect()
}

/// 400 with the requested user, as Go prints it.
fn nobody(uids: &[String], groups: &[String], extra: &BTreeMap<String, Vec<String>>) -> Status {
    let list = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups = if groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        list(groups)
    };
    let mut extras = String::new();
    for (key, values) in extra {
        let comma = if extras.is_empty() { "" } else { ", " };
        let _ = write!(extras, "{comma}{key:?}:{}", list(values));
    }
    let extras = if extra.is_empty() {
        "(nil)".to_owned()
    } else {
        format!("{{{extras}}}")
    };
    let uid = uids.first().map_or("", String::as_str);
    Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:{groups}, Extra:map[string][]string{extras}}} \
         without impersonating a user name"
    ))
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
        let with_extra = [
            (USER, "alice"),
            ("impersonate-extra-a%2fb", "x"),
            ("impersonate-extra-a%2fb", "y"),
        ];
        let extra = acting(User::administrator(), &with_extra).unwrap().extra;
        assert_eq!(
            extra,
            BTreeMap::from([("a/b".to_owned(), vec!["x".to_owned(), "y".to_owned()])])
        );
        let nobody = acting(User::administrator(), &[(GROUP, "x")]).unwrap_err();
        assert!(nobody.contains("without impersonating a user"), "{nobody}");
    }

    #[test]
    fn other_users_need_the_verb_impersonate() {
        assert_eq!(
            acting(User::named("alice", &[]), &[(USER, "bob")]),
            Err("users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API group \
                 \"\" at the cluster scope"
                .to_owned())
        );
        assert!(acting(User::named("alice", &[]), &[("impersonate-extra-a", "x")]).is_err());
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
