//! The conditions of a Deployment, which have two times: `conditions, new one -> conditions`. Pure.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::to_time;
use crate::object::text;

/// A condition as it is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl Condition<'_> {
    /// The condition with `now` as both times.
    pub(super) fn at(&self, now: Timestamp) -> Value {
        json!({
            "type": self.kind, "status": self.status, "reason": self.reason, "message": self.message,
            "lastUpdateTime": to_time(now), "lastTransitionTime": to_time(now),
        })
    }
}

/// The condition of this type.
pub(super) fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Sets a condition, as the last one. One with the same status and reason stays as it is, with its message.
pub(super) fn set(conditions: &mut Vec<Value>, new: Value) {
    let before = find(conditions, text(&new, "/type"));
    let is_same =
        |before: &Value| before["status"] == new["status"] && before["reason"] == new["reason"];
    if !before.is_some_and(is_same) {
        renew(conditions, new);
    }
}

/// Sets a condition even if it has the same status and reason: its `lastUpdateTime` and message change. With the same
/// status it keeps its `lastTransitionTime`.
pub(super) fn renew(conditions: &mut Vec<Value>, mut new: Value) {
    let kind = text(&new, "/type").to_owned();
    if let Some(before) = find(conditions, &kind)
        && before["status"] == new["status"]
    {
        new["lastTransitionTime"] = before["lastTransitionTime"].clone();
    }
    remove(conditions, &kind);
    conditions.push(new);
}

/// Removes the condition of this type.
pub(super) fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|condition| condition["type"] != kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progressing(status: &str, reason: &str, message: &str, second: i64) -> Value {
        let condition = Condition {
            kind: "Progressing",
            status,
            reason,
            message,
        };
        condition.at(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn times_change_with_reason_and_status() {
        let mut conditions = vec![progressing("True", "A", "a", 0), json!({"type": "Other"})];
        set(&mut conditions, progressing("True", "A", "b", 1));
        assert_eq!(conditions[0]["message"], "a");
        renew(&mut conditions, progressing("True", "A", "b", 2));
        let times = |condition: &Value| {
            ["lastUpdateTime", "lastTransitionTime"]
                .map(|field| text(condition, &format!("/{field}"))[17..19].to_owned())
        };
        assert_eq!(conditions[1]["message"], "b");
        assert_eq!(times(&conditions[1]), ["02", "00"]);
        set(&mut conditions, progressing("True", "B", "c", 3));
        assert_eq!(times(&conditions[1]), ["03", "00"]);
        set(&mut conditions, progressing("False", "C", "d", 4));
        assert_eq!(times(&conditions[1]), ["04", "04"]);
        remove(&mut conditions, "Progressing");
        assert_eq!(conditions, [json!({"type": "Other"})]);
    }
}
