//! The order of a list that a strategic merge patch has changed.
//!
//! The items of the patch have its order, the others that of the object. Both are merged in the object's order where it has
//! both items; otherwise the item of the patch comes first.

use serde_json::Value;

/// The identity of an item: the value of its merge key, or the item itself.
pub(super) fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> Option<&'a Value> {
    match merge_key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

fn position(list: &[Value], item: &Value, merge_key: Option<&str>) -> Option<usize> {
    let wanted = identity(item, merge_key)?;
    list.iter()
        .position(|one| identity(one, merge_key) == Some(wanted))
}

/// `merged` in its final order: `wanted` is the order of the patch, `before` that of the object.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| position(wanted, item, merge_key).is_some());
    named.sort_by_key(|item| position(wanted, item, merge_key));
    others.sort_by_key(|item| position(before, item, merge_key).unwrap_or(usize::MAX));
    weave(others, named, before, merge_key)
}

fn weave(
    others: Vec<Value>,
    named: Vec<Value>,
    before: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let mut woven = Vec::with_capacity(others.len() + named.len());
    let mut others = others.into_iter().peekable();
    let mut named = named.into_iter().peekable();
    while let (Some(other), Some(name)) = (others.peek(), named.peek()) {
        let places = (
            position(before, other, merge_key),
            position(before, name, merge_key),
        );
        let other_first = matches!(places, (Some(left), Some(right)) if left < right);
        woven.extend(if other_first {
            others.next()
        } else {
            named.next()
        });
    }
    woven.extend(others);
    woven.extend(named);
    woven
}
