//! CPU and memory of containers, to compare: what they request, and their limits.

use fedrs_api::quantity::millis;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The resources that can be changed in a running container.
pub(crate) const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Requests and limits of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Texts")]
pub struct Resources {
    /// What it requests.
    pub requests: Amounts,
    /// What it gets at most.
    pub limits: Amounts,
}

/// Amounts in thousandths: of CPUs, and of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// CPU; `None` if it has none.
    pub cpu: Option<u64>,
    /// Memory; `None` if it has none.
    pub memory: Option<u64>,
}

/// Resources as they are written.
#[derive(Deserialize)]
struct Texts {
    #[serde(default)]
    requests: Option<AmountTexts>,
    #[serde(default)]
    limits: Option<AmountTexts>,
}

#[derive(Deserialize)]
struct AmountTexts {
    #[serde(default)]
    cpu: Option<String>,
    #[serde(default)]
    memory: Option<String>,
}

impl From<Texts> for Resources {
    fn from(texts: Texts) -> Self {
        let amounts = |texts: Option<AmountTexts>| {
            texts.map_or_else(Amounts::default, |texts| Amounts {
                cpu: texts.cpu.as_deref().and_then(amount),
                memory: texts.memory.as_deref().and_then(amount),
            })
        };
        Self {
            requests: amounts(texts.requests),
            limits: amounts(texts.limits),
        }
    }
}

impl Resources {
    /// Whether it has all that `wanted` has. More is no difference: the defaults of a `LimitRange` are in no template.
    pub(crate) fn has(&self, wanted: &Self) -> bool {
        let pairs = [
            (self.requests.cpu, wanted.requests.cpu),
            (self.requests.memory, wanted.requests.memory),
            (self.limits.cpu, wanted.limits.cpu),
            (self.limits.memory, wanted.limits.memory),
        ];
        let differs = |(is, wanted): &(Option<u64>, Option<u64>)| wanted.is_some() && is != wanted;
        !pairs.iter().any(differs)
    }
}

/// A quantity in thousandths; `None` if it is not one.
pub(crate) fn amount(text: &str) -> Option<u64> {
    millis(text).map(|millis| u64::try_from(millis).unwrap_or(u64::MAX))
}

/// The quality of service of a pod, by which its node decides whose memory is reclaimed first. It never changes in a running pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QualityOfService {
    BestEffort,
    Burstable,
    Guaranteed,
}

impl QualityOfService {
    /// That of the containers of a pod, including init containers, whose resources have their defaults.
    pub(crate) fn of<'r>(containers: impl Iterator<Item = &'r Resources>) -> Self {
        let (mut has_any, mut is_guaranteed) = (false, true);
        for Resources { requests, limits } in containers {
            for (request, limit) in [(requests.cpu, limits.cpu), (requests.memory, limits.memory)] {
                let [request, limit] = [request, limit].map(|amount| amount.filter(|it| *it > 0));
                has_any |= request.is_some() || limit.is_some();
                is_guaranteed &= limit.is_some() && request == limit;
            }
        }
        match (has_any, is_guaranteed) {
            (false, _) => Self::BestEffort,
            (true, true) => Self::Guaranteed,
            (true, false) => Self::Burstable,
        }
    }
}

/// The resources that a container of a template gets: a limit is the default of the request, as in the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TemplateResources {
    pub(crate) requests: Map<String, Value>,
    pub(crate) limits: Map<String, Value>,
    /// What else is there, such as `claims`.
    pub(crate) others: Map<String, Value>,
}

impl TemplateResources {
    /// Reads `resources` of a container; `None` if they have another shape.
    pub(crate) fn read(resources: &Value) -> Option<Self> {
        let mut others = match resources {
            Value::Null => Map::new(),
            Value::Object(fields) => fields.clone(),
            _ => return None,
        };
        let mut amounts = |of: &str| match others.remove(of) {
            None | Some(Value::Null) => Some(Map::new()),
            Some(Value::Object(amounts)) => Some(amounts),
            Some(_) => None,
        };
        let (mut requests, limits) = (amounts("requests")?, amounts("limits")?);
        for (name, limit) in &limits {
            if !requests.contains_key(name) {
                requests.insert(name.clone(), limit.clone());
            }
        }
        others.retain(|_, value| !value.is_null());
        Some(Self {
            requests,
            limits,
            others,
        })
    }

    /// CPU and memory; `None` if one of them is no quantity.
    pub(crate) fn amounts(&self) -> Option<Resources> {
        let amounts = |of: &Map<String, Value>| {
            let [cpu, memory] = RESIZABLE.map(|name| of.get(name).map(template_amount));
            Some(Amounts {
                cpu: cpu.map_or(Some(None), |cpu| cpu.map(Some))?,
                memory: memory.map_or(Some(None), |memory| memory.map(Some))?,
            })
        };
        Some(Resources {
            requests: amounts(&self.requests)?,
            limits: amounts(&self.limits)?,
        })
    }
}

/// An amount in a template, where `1` may be written as a number.
pub(crate) fn template_amount(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => amount(text),
        Value::Number(number) => amount(&number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As the API server has it.
    #[test]
    fn l12_the_quality_of_service_follows_from_requests_and_limits() {
        let both = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}});
        let limits = json!({"limits": {"cpu": 1, "memory": "1Gi"}});
        let cases = [
            (vec![json!({})], QualityOfService::BestEffort),
            (
                vec![json!({"requests": {"cpu": "0"}})],
                QualityOfService::BestEffort,
            ),
            (
                vec![json!({"requests": {"cpu": "1"}})],
                QualityOfService::Burstable,
            ),
            (vec![both.clone()], QualityOfService::Guaranteed),
            (vec![limits], QualityOfService::Guaranteed),
            (vec![both, Value::Null], QualityOfService::Burstable),
        ];
        for (containers, expected) in cases {
            let resources = containers.iter().map(|container| {
                let read = TemplateResources::read(container).unwrap();
                read.amounts().unwrap()
            });
            let resources: Vec<_> = resources.collect();
            assert_eq!(
                QualityOfService::of(resources.iter()),
                expected,
                "{containers:?}"
            );
        }
    }
}
