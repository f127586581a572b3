//! How far a rolling update departs from the specified replicas: `spec -> Limits`. Pure.

use serde_json::Value;

use super::views::Deployment;

/// `maxSurge` and `maxUnavailable` as numbers of pods; both are 0 unless the strategy is `RollingUpdate`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Limits {
    /// The pods above the specified replicas.
    pub(super) surge: i64,
    /// The specified replicas that may be unavailable.
    pub(super) unavailable: i64,
}

impl Limits {
    /// Percentages of a surge are rounded up, those of unavailable pods down. If that makes both 0, one pod may be
    /// unavailable: otherwise the update could not begin.
    pub(super) fn of(deployment: Deployment<'_>) -> Self {
        if !deployment.is_rolling() {
            return Self::default();
        }
        let replicas = deployment.replicas();
        let rolling = &deployment.0["spec"]["strategy"]["rollingUpdate"];
        let surge = share(&rolling["maxSurge"], replicas, 99);
        let unavailable = share(&rolling["maxUnavailable"], replicas, 0);
        let unavailable = if surge == 0 && unavailable == 0 {
            1
        } else {
            unavailable
        };
        Self {
            surge,
            unavailable: unavailable.min(replicas),
        }
    }
}

/// A number, or a percentage of `replicas`; `round` is added before the division by 100.
fn share(amount: &Value, replicas: i64, round: i64) -> i64 {
    let percent = amount
        .as_str()
        .and_then(|text| text.strip_suffix('%'))
        .and_then(|text| text.parse::<i64>().ok());
    percent.map_or_else(
        || amount.as_i64().unwrap_or_default(),
        |percent| (replicas.saturating_mul(percent).saturating_add(round)) / 100,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::defaults_of_one(1, json!("25%"), json!("25%"), 1, 0)]
    #[case::defaults_of_three(3, json!("25%"), json!("25%"), 1, 0)]
    #[case::defaults_of_ten(10, json!("25%"), json!("25%"), 3, 2)]
    #[case::numbers(10, json!(3), json!(2), 3, 2)]
    #[case::both_round_to_zero(3, json!(0), json!("25%"), 0, 1)]
    #[case::surge_of_one_percent(2, json!("1%"), json!("25%"), 1, 0)]
    #[case::more_unavailable_than_there_are(2, json!(0), json!(5), 0, 2)]
    #[case::all_unavailable(4, json!(0), json!("100%"), 0, 4)]
    #[case::nothing_to_update(0, json!("25%"), json!("25%"), 0, 0)]
    #[case::a_surge_of_nothing(0, json!(2), json!(0), 2, 0)]
    fn of_a_rolling_update(
        #[case] replicas: i64,
        #[case] max_surge: Value,
        #[case] max_unavailable: Value,
        #[case] surge: i64,
        #[case] unavailable: i64,
    ) {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": max_surge, "maxUnavailable": max_unavailable}});
        let deployment = json!({"spec": {"replicas": replicas, "strategy": strategy}});
        let expected = Limits { surge, unavailable };
        assert_eq!(Limits::of(Deployment(&deployment)), expected);
    }

    #[test]
    fn recreate_has_none() {
        let deployment = json!({"spec": {"replicas": 4, "strategy": {"type": "Recreate"}}});
        assert_eq!(Limits::of(Deployment(&deployment)), Limits::default());
    }
}
