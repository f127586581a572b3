//! The operators of selectors: `operator, the label's value, the wanted values -> does the requirement hold?`

/// How a requirement compares the value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    In,
    /// Holds for an absent label as well.
    NotIn,
    Exists,
    DoesNotExist,
    /// Both numbers; node selectors and query strings have it, label selectors of objects do not.
    Gt,
    Lt,
}

impl Operator {
    /// The operator of that name; `None` if there is none.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt,
            "Lt" => Self::Lt,
            _ => return None,
        })
    }

    /// Whether a label with this value, or none, meets the requirement.
    pub(crate) fn holds<'a>(
        self,
        present: Option<&str>,
        mut values: impl Iterator<Item = &'a str>,
    ) -> bool {
        match self {
            Self::In => present.is_some_and(|present| values.any(|value| value == present)),
            Self::NotIn => present.is_none_or(|present| values.all(|value| value != present)),
            Self::Exists => present.is_some(),
            Self::DoesNotExist => present.is_none(),
            Self::Gt | Self::Lt => {
                let number = |text: Option<&str>| text?.parse::<i64>().ok();
                let pair = number(present).zip(number(values.next()));
                pair.is_some_and(|(present, bound)| match self {
                    Self::Gt => present > bound,
                    _ => present < bound,
                })
            }
        }
    }
}
