//! The texts of this crate: each [`Reason`] as a message for people. Nothing parses them.

use std::fmt;

use crate::{
    quota::{Quota, Rounding},
    reason::{Reason, Reasons, TakenBy},
};

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotSelected => f.write_str("not selected: no entry for this cluster or `*`"),
            Self::ScaledToZero => f.write_str("scaled to 0 replicas"),
            Self::AtMinimum { minimum } => write!(f, "minimum {minimum}"),
            Self::BelowMinimum { granted, minimum } => write!(
                f,
                "{granted} of minimum {minimum}: minimums of other clusters take precedence"
            ),
            Self::NoReplicasLeft { taken_by } => f.write_str(match taken_by {
                TakenBy::Minimums => {
                    "no replicas left to distribute: minimums of other clusters take the rest"
                }
                TakenBy::KeptInPlace => {
                    "no replicas left to distribute: other clusters keep the rest"
                }
            }),
            Self::ByWeight(quota) => quota.fmt(f),
            Self::AboveShare { current } => {
                write!(f, "scaled down from {} to its share", replicas(current))
            }
            Self::WithinShare { current } => {
                write!(f, "{} kept in place, within its share", replicas(current))
            }
            Self::KeptInPlace { current } => {
                write!(f, "{} kept in place (rebalance is off)", replicas(current))
            }
            Self::AtMaximum { maximum } => write!(f, "maximum {maximum}"),
            Self::AtCapacity { capacity } => write!(f, "cluster full: capacity {capacity}"),
            Self::ZeroWeight => f.write_str("weight 0: no replicas by weight"),
            Self::RemovedFirst { current } => {
                write!(f, "weight 0: scaled down from {} first", replicas(current))
            }
        }
    }
}

/// The share with two decimals, and how it became a whole number: `16.67 of 50 by weight (1 of 3), rounded up`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total_weight;
        let share = u128::from(self.weight) * u128::from(self.replicas);
        let (mut whole, rest) = (share / total, share % total);
        // Rounded to the nearest hundredth; 0.996 is 1.00.
        let mut hundredths = (rest * 100 + total / 2) / total;
        if hundredths == 100 {
            (whole, hundredths) = (whole + 1, 0);
        }
        match hundredths {
            0 if rest == 0 => write!(f, "{whole}")?,
            _ => write!(f, "{whole}.{hundredths:02}")?,
        }
        write!(
            f,
            " of {} by weight ({} of {total})",
            self.replicas, self.weight
        )?;
        f.write_str(match self.rounding {
            Rounding::Exact => "",
            Rounding::Up => ", rounded up",
            Rounding::Down => ", rounded down",
            Rounding::UpByOrder => ", rounded up by tie-break",
            Rounding::DownByOrder => ", rounded down by tie-break",
            Rounding::FarUp => ", increased: other shares are rounded down",
            Rounding::FarDown => ", reduced: other shares are rounded up",
        })
    }
}

/// All reasons in one line: `minimum 20; 10 of 30 by weight (1 of 3)`.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, reason) in self.iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            write!(f, "{separator}{reason}")?;
        }
        Ok(())
    }
}

/// `1 replica`, `2 replicas`.
fn replicas(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} replica{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of `weight`, part of `total_weight`, in `replicas`, of which `granted` came.
    fn quota(weight: u64, total_weight: u128, replicas: u64, granted: u64) -> Quota {
        Quota {
            weight,
            total_weight,
            replicas,
            rounding: Rounding::of(weight, total_weight, replicas, granted),
        }
    }

    #[test]
    fn f19_all_messages_with_their_names() {
        let (exact, up) = (quota(1, 3, 6, 2), quota(1, 3, 50, 17));
        let rounding = |rounding| Reason::ByWeight(Quota { rounding, ..up });
        let reasons = [
            Reason::NotSelected,
            Reason::ScaledToZero,
            Reason::AtMinimum { minimum: 20 },
            Reason::BelowMinimum {
                granted: 3,
                minimum: 5,
            },
            Reason::NoReplicasLeft {
                taken_by: TakenBy::Minimums,
            },
            Reason::NoReplicasLeft {
                taken_by: TakenBy::KeptInPlace,
            },
            Reason::ByWeight(exact),
            Reason::ByWeight(up),
            rounding(Rounding::Down),
            rounding(Rounding::UpByOrder),
            rounding(Rounding::DownByOrder),
            rounding(Rounding::FarUp),
            rounding(Rounding::FarDown),
            Reason::AboveShare { current: 30 },
            Reason::WithinShare { current: 1 },
            Reason::KeptInPlace { current: 30 },
            Reason::AtMaximum { maximum: 10 },
            Reason::AtCapacity { capacity: 6 },
            Reason::ZeroWeight,
            Reason::RemovedFirst { current: 30 },
        ];
        let lines: Vec<_> = reasons
            .iter()
            .map(|reason| format!("{:15} {reason}", reason.name()))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn f19_shares_are_rounded_to_hundredths() {
        for (quota, text) in [
            (quota(2, 4, 48, 24), "24 of 48 by weight (2 of 4)"),
            (
                quota(1, 1_000_002, 50, 0),
                "0.00 of 50 by weight (1 of 1000002), rounded down",
            ),
            (
                quota(1, 1_000, 999, 1),
                "1.00 of 999 by weight (1 of 1000), rounded up",
            ),
        ] {
            assert_eq!(quota.to_string(), text);
        }
        let max = u64::MAX;
        let all = quota(max, max.into(), max, max);
        assert_eq!(
            all.to_string(),
            format!("{max} of {max} by weight ({max} of {max})")
        );
    }
}
