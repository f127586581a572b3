//! A rolling update from one LocalReplicaSet to another (C9): the new one gets one more replica, the old one gets one less, until it
//! has none and is deleted.
//!
//! ```text
//! both sets --step()--> Step --conditional patch--> cluster, again and again
//! ```
//!
//! The number of replicas is recorded in an annotation of the new set, so that the update can be resumed by the same command, and
//! reversed by the one with the names exchanged.

mod step;

use std::{collections::BTreeMap, time::Duration};

use fedrs_api::{LocalReplicaSet, annotations, selector};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::step::Limits;
use self::step::{Pending, Side, Step, step};
use crate::{
    cluster_client::{ClusterClient, RequestError},
    object::{ObjectRef, Write, WriteMode},
    polling::poll,
};

/// How often the sets are read.
const POLL_PERIOD: Duration = Duration::from_secs(1);

/// How often a deletion is tried, if only the status has changed meanwhile.
const ATTEMPTS: u32 = 5;

/// A rolling update.
#[derive(Clone, Copy)]
pub struct RollingUpdate<'a> {
    /// The cluster of the sets.
    pub cluster: &'a ClusterClient,
    /// Their namespace.
    pub namespace: &'a str,
    /// The set that is left.
    pub old: &'a str,
    /// The set that takes its place.
    pub new: &'a str,
    /// How far the number of pods may depart from that of the old set.
    pub limits: Limits,
    /// Whether the old set is kept, without replicas.
    pub keeps_old: bool,
    /// The longest that one step may take.
    pub timeout: Duration,
}

/// What a rolling update does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// It goes on where an earlier one ended.
    Resumed {
        /// The replicas of the new set in the end.
        replicas: u32,
    },
    /// A set gets another number of replicas.
    Scaled {
        /// Its name.
        set: &'a str,
        /// Whether it gets more.
        up: bool,
        /// The number.
        replicas: u32,
    },
    /// The old set is deleted.
    Deleted {
        /// Its name.
        set: &'a str,
    },
}

/// A rolling update can't be made, or has not ended.
#[derive(Debug, thiserror::Error)]
pub enum RollingUpdateError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There is no such set.
    #[error("localreplicaset {0} not found")]
    NotFound(String),
    /// Both are the same set.
    #[error("{0} can't take the place of itself")]
    Same(String),
    /// No step would be possible.
    #[error("--max-surge and --max-unavailable can't both be 0")]
    NoRoom,
    /// The old set has no replicas, and no update is under way.
    #[error("localreplicaset {0} has no replicas: nothing is to be updated")]
    Empty(String),
    /// Each would adopt pods of the other.
    #[error("the selectors of {0} and {1} match each other's pods: they must differ by a label")]
    Overlap(String, String),
    /// A set is part of another update.
    #[error(
        "localreplicaset {set} is part of a rolling update from {from}: end or reverse that first"
    )]
    Busy {
        /// The set.
        set: String,
        /// The other one.
        from: String,
    },
    /// The old set was scaled up by somebody else.
    #[error("localreplicaset {0} was scaled up meanwhile: it is not deleted")]
    Scaled(String),
    /// A set can't be read.
    #[error("can't read localreplicaset {0}: {1}")]
    Unreadable(String, String),
    /// A step took too long.
    #[error(
        "no progress for {timeout:?}: {pending}. Run the command again to go on, or with the names exchanged to go back"
    )]
    TimedOut {
        /// The longest that it may take.
        timeout: Duration,
        /// What was waited for.
        pending: String,
    },
}

/// What the new set carries while the update is under way.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// The name of the old set.
    from: String,
    /// The replicas of the new set in the end.
    replicas: u32,
}

/// A set as it was read.
struct Set {
    object: Value,
    record: Option<Record>,
    side: Side,
}

impl<'a> RollingUpdate<'a> {
    /// Carries it out, and passes what it does to `report`.
    ///
    /// Of two that run at the same time, one fails or waits as soon as both change the same set. They share no limits.
    pub async fn run(
        &self,
        mut report: impl FnMut(Progress<'a>),
    ) -> Result<(), RollingUpdateError> {
        if self.old == self.new {
            return Err(RollingUpdateError::Same(self.new.to_owned()));
        }
        if self.limits.max_surge == 0 && self.limits.max_unavailable == 0 {
            return Err(RollingUpdateError::NoRoom);
        }
        let Some(desired) = self.begin(&mut report).await? else {
            return self.finish(&mut report).await;
        };
        loop {
            match self.next(desired).await? {
                Step::ScaleUp(replicas) => report(Progress::Scaled {
                    set: self.new,
                    up: true,
                    replicas,
                }),
                Step::ScaleDown(replicas) => report(Progress::Scaled {
                    set: self.old,
                    up: false,
                    replicas,
                }),
                _ => return self.finish(&mut report).await,
            }
        }
    }

    /// Records the number of replicas, and returns it; `None` if the old set is gone already, by an update that has not ended.
    async fn begin(
        &self,
        report: &mut impl FnMut(Progress<'a>),
    ) -> Result<Option<u32>, RollingUpdateError> {
        let new = self.read(self.new).await?;
        if let Some(record) = new.record.as_ref().filter(|record| record.from == self.old) {
            let replicas = record.replicas;
            report(Progress::Resumed { replicas });
            let is_gone = self.find(self.old).await?.is_none();
            return Ok((!is_gone).then_some(replicas));
        }
        let old = self.read(self.old).await?;
        let is_reversed = |record: &&Record| record.from == self.new;
        for (name, set) in [(self.new, &new), (self.old, &old)] {
            let others = set.record.as_ref().filter(|record| !is_reversed(record));
            if let Some(Record { from, .. }) = others {
                return Err(RollingUpdateError::Busy {
                    set: name.to_owned(),
                    from: from.clone(),
                });
            }
        }
        self.check_selectors(&old, &new)?;
        let replicas = match &old.record {
            Some(reversed) => reversed.replicas,
            None if old.side.replicas == 0 => {
                return Err(RollingUpdateError::Empty(self.old.to_owned()));
            }
            None => old.side.replicas,
        };
        let from = self.old.to_owned();
        let record = Record { from, replicas };
        let record = serde_json::to_string(&record).expect("a record is JSON");
        self.annotate(self.new, &new, json!(record)).await?;
        if old.record.is_some() {
            self.annotate(self.old, &old, Value::Null).await?;
        }
        Ok(Some(replicas))
    }

    /// Makes the next step, once it may be made.
    async fn next(&self, desired: u32) -> Result<Step, RollingUpdateError> {
        let read = async || -> Result<Result<Step, Pending>, RollingUpdateError> {
            let (old, new) = (self.read(self.old).await?, self.read(self.new).await?);
            let step = step(old.side, new.side, desired, self.limits);
            let written = match step {
                Step::ScaleUp(replicas) => self.scale(self.new, &new, replicas).await,
                Step::ScaleDown(replicas) => self.scale(self.old, &old, replicas).await,
                Step::Complete => Ok(()),
                Step::Wait(pending) => return Ok(Err(pending)),
            };
            match written {
                Ok(()) => Ok(Ok(step)),
                // It was changed since it was read, at least by its controller.
                Err(error) if error.code() == Some(409) => Ok(Err(Pending::Controller)),
                Err(error) => Err(error.into()),
            }
        };
        let ended = poll(self.timeout, POLL_PERIOD, read, |_| {}).await?;
        ended.map_err(|pending| RollingUpdateError::TimedOut {
            timeout: self.timeout,
            pending: pending.to_string(),
        })
    }

    /// Deletes the old set, and ends the record.
    async fn finish(
        &self,
        report: &mut impl FnMut(Progress<'a>),
    ) -> Result<(), RollingUpdateError> {
        if !self.keeps_old {
            self.delete_old(report).await?;
        }
        let new = self.read(self.new).await?;
        self.annotate(self.new, &new, Value::Null).await?;
        Ok(())
    }

    /// Deletes the old set, unless it has got replicas again.
    async fn delete_old(
        &self,
        report: &mut impl FnMut(Progress<'a>),
    ) -> Result<(), RollingUpdateError> {
        let object = self.object(self.old);
        let mut attempt = 1;
        while let Some(old) = self.find(self.old).await? {
            if old.side.replicas > 0 {
                return Err(RollingUpdateError::Scaled(self.old.to_owned()));
            }
            let metadata = &old.object["metadata"];
            match self.cluster.delete_if_unchanged(&object, metadata).await {
                // The controller may have written the status meanwhile.
                Err(error) if error.code() == Some(409) && attempt < ATTEMPTS => attempt += 1,
                deleted => {
                    if deleted? {
                        report(Progress::Deleted { set: self.old });
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn check_selectors(&self, old: &Set, new: &Set) -> Result<(), RollingUpdateError> {
        let unreadable = |name: &str, error: serde_json::Error| {
            RollingUpdateError::Unreadable(name.to_owned(), error.to_string())
        };
        let read = |name: &str, set: &Set| {
            let spec = &set.object["spec"];
            let selector = selector::LabelSelector::deserialize(&spec["selector"]);
            let labels = &spec["template"]["metadata"]["labels"];
            let labels = Option::<BTreeMap<String, String>>::deserialize(labels);
            let labels = labels.map(Option::unwrap_or_default);
            selector
                .and_then(|selector| Ok((selector, labels?)))
                .map_err(|error| unreadable(name, error))
        };
        let (old_selector, old_labels) = read(self.old, old)?;
        let (new_selector, new_labels) = read(self.new, new)?;
        if selector::matches(&old_selector, &new_labels)
            || selector::matches(&new_selector, &old_labels)
        {
            let [old, new] = [self.old, self.new].map(str::to_owned);
            return Err(RollingUpdateError::Overlap(old, new));
        }
        Ok(())
    }

    async fn scale(&self, name: &str, set: &Set, replicas: u32) -> Result<(), RequestError> {
        let patch = json!({ "spec": { "replicas": replicas } });
        self.write(name, set, patch).await
    }

    async fn annotate(&self, name: &str, set: &Set, record: Value) -> Result<(), RequestError> {
        let annotations = json!({ annotations::ROLLING_UPDATE: record });
        let patch = json!({ "metadata": { "annotations": annotations } });
        // The controller writes the status meanwhile: the version does not matter to an annotation.
        let mut object = set.object.clone();
        object["metadata"]["resourceVersion"] = Value::Null;
        let set = Set {
            object,
            record: None,
            side: set.side,
        };
        self.write(name, &set, patch).await
    }

    /// Patches the set that was read, at its version if it has one.
    async fn write(&self, name: &str, set: &Set, mut patch: Value) -> Result<(), RequestError> {
        for field in ["uid", "resourceVersion"] {
            let value = &set.object["metadata"][field];
            if !value.is_null() {
                patch["metadata"][field] = value.clone();
            }
        }
        let write = Write::Patch(patch);
        let object = self.object(name);
        self.cluster
            .write(&object, &write, WriteMode::Persist)
            .await?;
        Ok(())
    }

    async fn read(&self, name: &str) -> Result<Set, RollingUpdateError> {
        let set = self.find(name).await?;
        set.ok_or_else(|| RollingUpdateError::NotFound(format!("{}/{name}", self.namespace)))
    }

    async fn find(&self, name: &str) -> Result<Option<Set>, RollingUpdateError> {
        let object = self.cluster.get(&self.object(name)).await?;
        let Some(object) = object else {
            return Ok(None);
        };
        let record = object["metadata"]["annotations"][annotations::ROLLING_UPDATE].as_str();
        let record = record.map(serde_json::from_str).transpose();
        let record = record
            .map_err(|error| RollingUpdateError::Unreadable(name.to_owned(), error.to_string()))?;
        let side = side(&object);
        Ok(Some(Set {
            object,
            record,
            side,
        }))
    }

    fn object(&self, name: &str) -> ObjectRef {
        ObjectRef::namespaced::<LocalReplicaSet>(self.namespace, name)
    }
}

fn side(object: &Value) -> Side {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number =
        |value: &Value| u32::try_from(value.as_u64().unwrap_or_default()).unwrap_or(u32::MAX);
    Side {
        replicas: number(&spec["replicas"]),
        live: number(&status["replicas"]),
        available: number(&status["availableReplicas"]),
        is_observed: status["observedGeneration"] == object["metadata"]["generation"],
    }
}
