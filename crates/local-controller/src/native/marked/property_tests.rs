//! Whatever happens in which order: a pod has one open request at most, and in the end each has one.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Requested, missing,
    tests::{at, pod, request},
};
use crate::migration_object::RequestObject;

const PODS: usize = 7;
const AT_ONCE: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The missing requests are made, some of them; the API server rejects them for this pod.
    Round { rejected: usize },
    /// Another controller has just made a request for this pod.
    Other(usize),
    /// The mark is gone for a while: its open requests end.
    Unmark,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..PODS).prop_map(|rejected| Event::Round { rejected }),
        1 => (0..PODS).prop_map(Event::Other),
        1 => Just(Event::Unmark),
    ]
}

/// The requests that have been made, as pod, and whether it has ended.
#[derive(Debug, Default)]
struct World {
    requests: Vec<(usize, bool)>,
    last: Option<(String, String)>,
}

impl World {
    fn objects(&self) -> Vec<Arc<RequestObject>> {
        let object = |(pod, ended): &(usize, bool)| {
            let spec = json!({ "podName": name(*pod), "podUid": format!("uid-{}", name(*pod)) });
            let history = json!([{ "phase": "Cancelled", "at": at(5) }]);
            let status = json!({ "phase": "Cancelled", "history": history });
            request(&spec, if *ended { &status } else { &Value::Null }, true)
        };
        self.requests.iter().map(object).collect()
    }

    fn round(&mut self, rejected: Option<usize>) {
        let objects = self.objects();
        let pods = (0..PODS).map(|number| pod(&name(number))).collect();
        let last = self.last.as_ref().map(|(a, b)| (a.as_str(), b.as_str()));
        let missing = missing(pods, &Requested::by(&objects), last, at(100));
        for pod in missing.into_iter().take(AT_ONCE) {
            let number = (0..PODS).find(|number| name(*number) == pod.name).unwrap();
            if rejected != Some(number) {
                self.requests.push((number, false));
            }
            self.last = Some((pod.namespace, pod.name));
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Round { rejected } => self.round(Some(rejected)),
            Event::Other(pod) if self.open(pod) == 0 => self.requests.push((pod, false)),
            Event::Other(_) => {}
            Event::Unmark => self.requests.iter_mut().for_each(|of| of.1 = true),
        }
    }

    fn open(&self, pod: usize) -> usize {
        self.requests
            .iter()
            .filter(|of| of.0 == pod && !of.1)
            .count()
    }
}

fn name(pod: usize) -> String {
    format!("web-{pod}")
}

proptest! {
    #[test]
    fn m1_m5_one_open_request_and_in_the_end_each_pod_has_one(events in prop::collection::vec(event(), 0..40)) {
        let mut world = World::default();
        for event in events {
            world.apply(event);
            for pod in 0..PODS {
                prop_assert!(world.open(pod) <= 1, "{pod}: {world:?}");
            }
        }
        // The requests for one pod are always rejected.
        for _ in 0..PODS.div_ceil(AT_ONCE - 1) {
            world.round(Some(0));
        }
        for pod in 1..PODS {
            prop_assert!(world.open(pod) == 1, "{pod}: {world:?}");
        }
    }
}
