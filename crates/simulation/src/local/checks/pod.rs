//! A pod over time.

use std::collections::BTreeMap;

use fedrs_api::{finalizers, labels};
use serde_json::Value;
use tokio::time::{Duration, Instant};

/// Times of objects have no fractions of seconds.
const ROUNDING: Duration = Duration::from_secs(1);

/// A pod that a set controls, or could adopt.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not depend on each other"
)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) node: String,
    /// The uid of its controller, and the kind; none if it has none.
    pub(super) controller: Option<(String, String)>,
    pub(super) labels: Value,
    /// Whether it exists, is not being removed, and has not terminated.
    pub(super) is_live: bool,
    /// Whether its status says that it is ready.
    is_ready: bool,
    /// The containers that are to be restarted with another image, with the ids that they had before.
    restarting: BTreeMap<String, Value>,
    /// Whether a set has created it.
    pub(super) is_created_by_set: bool,
    /// Whether it is being removed, and stays until its containers have stopped.
    pub(super) is_held: bool,
    /// Whether the controller has removed it.
    pub(super) is_removed_by_set: bool,
    /// Whether its eviction had begun when it was there last, as the record said.
    is_evicted: bool,
    /// Since when it has counted as a pod of its set, or not.
    pub(super) changed: Instant,
    /// Its controller and labels before that.
    before: Option<(Option<(String, String)>, Value)>,
    /// Since when its own status says that it is ready.
    ready_since: Option<Instant>,
    /// When it was ready, on a node that was.
    ready: Vec<Ready>,
    /// When the controller or an eviction last made it unavailable, or began to.
    disrupted: Option<Instant>,
}

/// A time in which a pod is ready, and its node is.
#[derive(Clone, Copy, Debug)]
struct Ready {
    /// Since when the pod itself is: its node may have been lost meanwhile.
    since: Instant,
    from: Instant,
    /// `None` while it lasts.
    until: Option<Instant>,
}

impl Pod {
    /// A pod that has just been created.
    pub(super) fn new(object: &Value) -> Self {
        let mut pod = Self {
            name: text(&object["metadata"]["name"]),
            node: String::new(),
            controller: None,
            labels: Value::Null,
            is_live: false,
            is_created_by_set: controller(object).is_some(),
            is_removed_by_set: false,
            is_evicted: false,
            is_held: false,
            is_ready: false,
            restarting: BTreeMap::new(),
            changed: Instant::now(),
            before: None,
            ready_since: None,
            ready: Vec::new(),
            disrupted: None,
        };
        pod.put(None, object);
        pod
    }

    /// It has changed.
    pub(super) fn put(&mut self, old: Option<&Value>, object: &Value) {
        self.node = text(&object["spec"]["nodeName"]);
        let controller = controller(object);
        let labels = &object["metadata"]["labels"];
        let is_live = is_live(object);
        let is_same =
            (&controller, labels, is_live) == (&self.controller, &self.labels, self.is_live);
        if !is_same {
            self.changed = Instant::now();
            self.before = Some((self.controller.take(), self.labels.take()));
        }
        (self.controller, self.labels, self.is_live) = (controller, labels.clone(), is_live);
        self.is_ready = has_condition(object, "Ready");
        self.is_held = is_held(object);
        if let Some(old) = old {
            self.note_restarts(old, object);
        }
        let ids = ids(object);
        self.restarting
            .retain(|name, before| ids.get(name).is_none_or(|id| id == before || id.is_null()));
    }

    /// The controller that it had, if it has none, and may have had one then.
    pub(super) fn released_since(&self, since: Instant) -> Option<(String, String)> {
        let (before, _) = self.before.as_ref()?;
        let is_recent = self.controller.is_none() && self.changed >= since;
        before.clone().filter(|_| is_recent)
    }

    /// Notes the containers whose images were changed.
    fn note_restarts(&mut self, old: &Value, object: &Value) {
        let before = ids(old);
        let images = |object: &Value| {
            let containers = object["spec"]["containers"]
                .as_array()
                .into_iter()
                .flatten();
            let images =
                containers.map(|container| (text(&container["name"]), container["image"].clone()));
            images.collect::<BTreeMap<_, _>>()
        };
        let old = images(old);
        for (name, image) in images(object) {
            if old.get(&name).is_some_and(|old| *old != image) {
                let id = before.get(&name).cloned().unwrap_or_default();
                self.restarting.insert(name, id);
            }
        }
    }

    /// It is available from now on, or is not, as its node is ready or not.
    pub(super) fn judge(&mut self, is_node_ready: bool) {
        let is_ready = self.is_live && self.is_ready && self.restarting.is_empty();
        let now = Instant::now();
        let since = is_ready.then(|| self.ready_since.unwrap_or(now));
        self.ready_since = since;
        let last = self.ready.last_mut();
        match (
            last.filter(|ready| ready.until.is_none()),
            since.filter(|_| is_node_ready),
        ) {
            (Some(ready), None) => ready.until = Some(now),
            (None, Some(since)) => self.ready.push(Ready {
                since,
                from: now,
                until: None,
            }),
            _ => {}
        }
    }

    /// It is gone.
    pub(super) fn remove(&mut self) {
        (self.is_live, self.is_held) = (false, false);
        self.judge(false);
    }

    /// It was made unavailable, or begins to be, or that ends.
    pub(super) fn disrupt(&mut self) {
        self.disrupted = Some(Instant::now());
    }

    /// Its eviction has begun, as the record says, or is not recorded. What is recorded once it is removed is why its place is kept.
    pub(super) fn record_eviction(&mut self, has_begun: bool) {
        if self.is_live {
            self.is_evicted = has_begun;
        }
    }

    /// Whether it was removed by an eviction that had begun.
    pub(super) fn is_migrated(&self) -> bool {
        !self.is_live && self.is_evicted
    }

    /// Whether it is being removed, or gone, and the controller has not removed it.
    pub(super) fn is_removed_by_others(&self) -> bool {
        !self.is_live && !self.is_removed_by_set
    }

    /// Whether it is ready now.
    pub(super) fn is_ready_now(&self) -> bool {
        (self.ready.last()).is_some_and(|ready| ready.until.is_none())
    }

    /// Whether it may have counted as available at some time since then, and nobody has disrupted it meanwhile.
    pub(super) fn may_be_available(&self, since: Instant, min_ready: Duration) -> bool {
        self.ready.iter().any(|ready| {
            let is_later = ready.until.is_none_or(|until| {
                until >= since && self.disrupted.is_none_or(|disrupted| until > disrupted)
            });
            let until = ready.until.unwrap_or_else(Instant::now);
            is_later && until + ROUNDING >= ready.since + min_ready
        })
    }

    /// Whether it has counted as available all the time since then.
    pub(super) fn is_available(&self, since: Instant, min_ready: Duration) -> bool {
        let last = self.ready.last();
        last.is_some_and(|ready| {
            ready.until.is_none() && ready.from <= since && ready.since + min_ready <= since
        })
    }

    /// Whether it belongs to the set, or could be adopted by it.
    pub(super) fn is_of(&self, uid: &str, app: &str) -> bool {
        is_of(uid, app, (self.controller.as_ref(), &self.labels))
    }

    /// Whether it did so at some time since then.
    pub(super) fn was_of(&self, uid: &str, app: &str, since: Instant) -> bool {
        let before = self.before.as_ref().filter(|_| self.changed >= since);
        let was_of = |(controller, labels): &(Option<_>, Value)| {
            is_of(uid, app, (controller.as_ref(), labels))
        };
        self.is_of(uid, app) || before.is_some_and(was_of)
    }

    /// Whether the set controls it.
    pub(super) fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|(of, _)| of == uid)
    }
}

fn is_of(uid: &str, app: &str, (controller, labels): (Option<&(String, String)>, &Value)) -> bool {
    controller.is_none_or(|(of, _)| of == uid) && labels["app"] == app
}

/// The uid and the kind of the controller of an object.
pub(super) fn controller(object: &Value) -> Option<(String, String)> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some((text(&owner["uid"]), text(&owner["kind"])))
}

pub(super) fn is_live(object: &Value) -> bool {
    let is_over = ["Succeeded", "Failed"].contains(&&*text(&object["status"]["phase"]));
    object["metadata"]["deletionTimestamp"].is_null() && !is_over
}

/// Whether it is being removed, has the finalizer of shutdowns, and its kubelet has not reported that its containers have stopped.
pub(super) fn is_held(object: &Value) -> bool {
    let containers = object["spec"]["containers"].as_array();
    let statuses = object["status"]["containerStatuses"].as_array();
    let has_stopped = |container: &Value| {
        let mut statuses = statuses.into_iter().flatten();
        let status = statuses.find(|status| status["name"] == container["name"]);
        status.is_some_and(|status| !status["state"]["terminated"].is_null())
    };
    let is_placed = !text(&object["spec"]["nodeName"]).is_empty();
    let have_stopped = containers.into_iter().flatten().all(has_stopped);
    let is_removed = !object["metadata"]["deletionTimestamp"].is_null();
    is_removed && has_guard(object) && is_placed && !have_stopped
}

/// Whether it has the finalizer of shutdowns.
pub(super) fn has_guard(object: &Value) -> bool {
    let all = object["metadata"]["finalizers"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|finalizer| finalizer == finalizers::SHUTDOWN)
}

/// Whether a condition is true.
pub(super) fn has_condition(object: &Value, type_: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// The label with the template of a pod.
pub(super) fn revision(object: &Value) -> &Value {
    &object["metadata"]["labels"][labels::REVISION_HASH]
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The ids of the containers by their names.
fn ids(object: &Value) -> BTreeMap<String, Value> {
    let statuses = object["status"]["containerStatuses"].as_array();
    let statuses = statuses.into_iter().flatten();
    statuses
        .map(|status| (text(&status["name"]), status["containerID"].clone()))
        .collect()
}

pub(super) fn uid(object: &Value) -> String {
    text(&object["metadata"]["uid"])
}
