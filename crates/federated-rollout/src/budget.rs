//! How many pods may be unavailable, and how many may run beyond N, over all clusters together (L6, L14).

/// The budget as the user states it: a Deployment's `strategy`, for all clusters together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// `RollingUpdate`.
    RollingUpdate {
        /// Pods of N that may be unavailable. A percentage is rounded down.
        max_unavailable: Amount,
        /// Pods that may run beyond N. A percentage is rounded up.
        max_surge: Amount,
    },
    /// No pod of N may be unavailable, and the members' workloads have no surge (L5): the caller requests one replica more than N while
    /// pods are to be replaced, and once all are available one of them may be unavailable.
    CreateFirst,
    /// `Recreate`: one cluster at a time, with all of its pods at once. The caller writes `type: Recreate` for a
    /// [`Roll`](crate::Action::Roll), and passes such a strategy in with `unavailable` at the member's replicas.
    Recreate,
}

/// A number of pods, or a percentage of N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Pods.
    Number(u64),
    /// Percent of N.
    Percent(u64),
}

/// A budget in pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Pods of N that may be unavailable, U.
    pub unavailable: u64,
    /// Pods that may run beyond N.
    pub surge: u64,
}

impl Budget {
    /// The budget for `replicas` (N), of which the largest member has `largest`. Never 0 and 0: as in Kubernetes
    /// (`ResolveFenceposts`), one pod may be unavailable then, or nothing could ever roll.
    #[must_use]
    pub fn resolve(self, replicas: u64, largest: u64) -> Limits {
        let (unavailable, surge) = match self {
            Self::RollingUpdate {
                max_unavailable,
                max_surge,
            } => (
                max_unavailable.of(replicas, false).min(replicas),
                max_surge.of(replicas, true),
            ),
            Self::CreateFirst => (1, 0),
            Self::Recreate => (largest, 0),
        };
        Limits {
            unavailable: unavailable.max(u64::from(surge == 0)),
            surge,
        }
    }
}

impl Amount {
    /// The pods of `replicas` that may be unavailable where none may run beyond them: rounded down, but a percentage that rounds
    /// to nothing is one pod, or nothing could ever be updated.
    #[must_use]
    pub fn without_surge(self, replicas: u64) -> u64 {
        let rounds = matches!(self, Self::Percent(1..));
        let pods = self.of(replicas, false).max(u64::from(rounds));
        pods.min(replicas)
    }

    /// The pods of `replicas`: a percentage is rounded up.
    #[must_use]
    pub fn rounded_up(self, replicas: u64) -> u64 {
        self.of(replicas, true)
    }

    fn of(self, replicas: u64, up: bool) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => {
                let hundredths = u128::from(replicas) * u128::from(percent);
                let pods = if up {
                    hundredths.div_ceil(100)
                } else {
                    hundredths / 100
                };
                u64::try_from(pods).unwrap_or(u64::MAX)
            }
        }
    }
}
