//! A small cluster, a status, and a caller that steps, records and acts, with lost and late requests.

pub(crate) mod cluster;
pub(crate) mod disruption;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cluster::{Cluster, Request, Seen};
use disruption::{BudgetRequest, BudgetView, Evictions};
use federated_rollout::{Amount, Speed};
use fedrs_api::{AllowedChanges, LocalRecord, ValidMigrationPolicy};
use jiff::Timestamp;
use replica_set_controller::{
    Change, ContainerResize, Created, DisruptionPlan, Patch, Plan, Policy, Set, SlowStart, Wait,
    step,
};

/// The time at which a pod of a good revision is ready after it was started.
pub(crate) const STARTUP: i64 = 60;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// It is not carried out, or the controller ends before it.
    Lost,
    /// It is carried out some time later, unless its precondition fails.
    Late,
}

/// A set and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) replicas: usize,
    pub(crate) max_unavailable: u64,
    pub(crate) speed: Option<Speed>,
    pub(crate) policy: Option<ValidMigrationPolicy>,
    /// When the migrations of running pods were recorded.
    pub(crate) migrations: Vec<i64>,
    /// `drainSeconds`.
    pub(crate) drain: u64,
    pub(crate) target: u32,
    pub(crate) paused: bool,
    pub(crate) cluster: Cluster,
    /// The record in the status.
    pub(crate) record: LocalRecord,
    /// What the controller has seen of the pods.
    view: Vec<Seen>,
    slow_start: SlowStart,
    late: Vec<Request>,
    /// The PodDisruptionBudget, and what the controller has seen of it.
    pub(crate) evictions: Evictions,
    budget_view: BudgetView,
    late_budgets: Vec<BudgetRequest>,
}

/// A revision whose pods never become ready.
fn is_bad(revision: u32) -> bool {
    revision % 3 == 2
}

/// Whether pods get from one revision to the other in place.
fn is_in_place(from: u32, to: u32) -> bool {
    from % 2 == to % 2
}

/// Whether pods that get to a revision in place get other resources.
fn has_resize(revision: u32) -> bool {
    revision.is_multiple_of(3)
}

pub(crate) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("it is a time")
}

impl World {
    /// A set whose pods are all available, with revision 0.
    pub(crate) fn settled(replicas: usize, max_unavailable: u64, speed: Option<Speed>) -> Self {
        let mut world = Self {
            replicas,
            max_unavailable,
            speed,
            policy: None,
            migrations: Vec::new(),
            drain: 0,
            target: 0,
            paused: false,
            cluster: Cluster::default(),
            record: LocalRecord::default(),
            view: Vec::new(),
            slow_start: SlowStart::default(),
            late: Vec::new(),
            evictions: Evictions::default(),
            budget_view: BudgetView::default(),
            late_budgets: Vec::new(),
        };
        world.cluster.now = -10_000;
        world.converge();
        world.cluster.now = 0;
        world.cluster.starts.clear();
        world.record = LocalRecord::default();
        world.sync();
        world
    }

    /// The set gets a policy, and its pods what that asks for.
    pub(crate) fn adopt_policy(&mut self, policy: Option<ValidMigrationPolicy>) {
        self.policy = policy;
        self.converge();
    }

    fn changes(&self) -> BTreeMap<u32, Change> {
        let revisions = (0..=self.target).filter(|revision| *revision != self.target);
        let change = |revision| {
            if is_in_place(revision, self.target) {
                let images = [("web".to_owned(), format!("web:{}", self.target))];
                let resize = ("web".to_owned(), ContainerResize::default());
                let resizes = has_resize(self.target).then_some(resize);
                Change::InPlace(Patch {
                    images: images.into(),
                    resizes: resizes.into_iter().collect(),
                    ..Patch::default()
                })
            } else {
                Change::Recreate(vec!["spec.containers[web].env".to_owned()])
            }
        };
        revisions
            .map(|revision| (revision, change(revision)))
            .collect()
    }

    fn set<'a>(&'a self, changes: &'a BTreeMap<u32, Change>) -> Set<'a> {
        Set {
            name: "web",
            uid: "set",
            replicas: self.replicas,
            min_ready: Duration::ZERO,
            progress_deadline: Some(Duration::from_secs(600)),
            max_unavailable: Amount::Number(self.max_unavailable),
            availability_limit: None,
            speed: self.speed,
            allowed: if self.paused {
                AllowedChanges::NoUpdatesWhilePaused
            } else {
                AllowedChanges::All
            },
            is_deleted: false,
            removal_timeout: Duration::from_secs(1800),
            eviction_timeout: Duration::from_secs(600),
            drain: Duration::from_secs(self.drain),
            migration: self.policy.as_ref().map_or(Policy::None, Policy::Is),
            target: self.target,
            changes,
        }
    }

    /// Calls `with` with what is decided now.
    pub(crate) fn with_plan<T>(&self, with: impl FnOnce(&Plan<'_>) -> T) -> T {
        let changes = self.changes();
        let set = self.set(&changes);
        let pods: Vec<_> = self.view.iter().map(Seen::facts).collect();
        let now = time(self.cluster.now);
        let disruptions = self.budget_view.disruptions();
        let known = (&self.record, &self.slow_start);
        let plan = step(&set, &pods, &disruptions, known, now);
        check_plan(&plan);
        let reversed: Vec<_> = pods.iter().rev().copied().collect();
        let again = step(&set, &reversed, &disruptions, known, now);
        assert_eq!(decided(&plan), decided(&again), "it depends on the order");
        with(&plan)
    }

    /// One step: the record is published, and each request has its fate. Returns whether anything was to be done.
    pub(crate) fn step(&mut self, publish: Fate, mut fate: impl FnMut(usize) -> Fate) -> bool {
        let pods: Vec<_> = self.view.iter().map(Seen::facts).collect();
        self.slow_start.observe(&pods);
        let needs_guard = |policy: &ValidMigrationPolicy| policy.shutdown.is_some();
        let template = (self.target, self.policy.as_ref().is_some_and(needs_guard));
        let (record, requests, has_more, disruption) = self.with_plan(|plan| {
            let requests = plan
                .actions
                .iter()
                .map(|action| Request::of(action, template, &self.view));
            let is_creation = |wait: &_| matches!(wait, Wait::Creation { .. });
            let has_more = plan.waits.iter().any(is_creation);
            let requests = requests.collect::<Vec<_>>();
            (plan.record.clone(), requests, has_more, plan.disruption)
        });
        let has_work = record != self.record
            || !requests.is_empty()
            || disruption.change.is_some()
            || disruption.reads_pods;
        if publish == Fate::Done {
            if record.migrated != self.record.migrated {
                self.migrations.push(self.cluster.now);
            }
            self.record = record;
        }
        self.change_budget(disruption, fate(requests.len()));
        let mut outcome = Created {
            has_more,
            ..Created::default()
        };
        for (index, request) in requests.into_iter().enumerate() {
            match fate(index) {
                Fate::Done => {
                    self.cluster.carry_out(&request, &self.record);
                    self.see(&request);
                    outcome.created.extend(request.created());
                    self.forget_creations(&request);
                }
                Fate::Lost => outcome.unanswered.extend(request.created()),
                Fate::Late => {
                    outcome.unanswered.extend(request.created());
                    self.late.push(request);
                }
            }
        }
        self.slow_start.record(outcome, time(self.cluster.now));
        has_work
    }

    /// The PodDisruptionBudget is written, or pods are read because it lends less.
    fn change_budget(&mut self, plan: DisruptionPlan, fate: Fate) {
        if plan.reads_pods && fate == Fate::Done {
            self.sync();
            self.budget_view.read();
        }
        let Some(change) = plan.change else { return };
        let view = self.budget_view.budget.as_ref();
        let request = BudgetRequest::new(change, self.replicas, view);
        match fate {
            Fate::Done => {
                self.evictions.carry_out(&request);
                self.see_budget();
            }
            Fate::Lost => {}
            Fate::Late => self.late_budgets.push(request),
        }
    }

    /// The watch of the PodDisruptionBudget catches up.
    pub(crate) fn see_budget(&mut self) {
        self.budget_view.budget = self.evictions.budget.clone();
    }

    /// A late request for the PodDisruptionBudget arrives.
    pub(crate) fn deliver_budget(&mut self, index: usize) {
        if !self.late_budgets.is_empty() {
            let index = index % self.late_budgets.len();
            let request = self.late_budgets.remove(index);
            self.evictions.carry_out(&request);
        }
    }

    /// The disruption controller sees all, and counts.
    pub(crate) fn count_disruptions(&mut self) {
        self.evictions.delete(&mut self.cluster);
        self.evictions.watch(&self.cluster);
        self.evictions.count();
        self.see_budget();
    }

    /// A late request arrives.
    pub(crate) fn deliver(&mut self, index: usize) {
        if !self.late.is_empty() {
            let request = self.late.remove(index % self.late.len());
            self.cluster.carry_out(&request, &self.record);
            self.forget_creations(&request);
        }
    }

    /// No request is on its way for longer than the whole life of the pod that another one for the same name has made.
    fn forget_creations(&mut self, request: &Request) {
        if let Some(name) = request.created() {
            self.late
                .retain(|late| late.created().as_ref() != Some(&name));
        }
    }

    /// The watch catches up.
    pub(crate) fn sync(&mut self) {
        self.view = self.cluster.seen();
    }

    /// The result of a request is in the view, which is otherwise from an earlier time.
    fn see(&mut self, request: &Request) {
        let name = request.name();
        self.view.retain(|seen| seen.pod.name != name);
        self.view.extend(
            self.cluster
                .seen()
                .into_iter()
                .filter(|seen| seen.pod.name == name),
        );
        self.view.sort_by(|a, b| a.pod.name.cmp(&b.pod.name));
    }

    /// Another controller starts: it knows what it reads. It waits until no request of the one before can arrive.
    pub(crate) fn restart(&mut self) {
        for request in std::mem::take(&mut self.late) {
            self.cluster.carry_out(&request, &self.record);
        }
        self.slow_start = SlowStart::default();
        self.sync();
        self.see_budget();
        self.budget_view.pods_read = None;
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        self.evictions.delete(&mut self.cluster);
        self.cluster.pass(seconds);
    }

    /// All goes well for a step. Returns whether anything was to be done.
    pub(crate) fn round(&mut self) -> bool {
        self.count_disruptions();
        self.sync();
        self.step(Fate::Done, |_| Fate::Done)
    }

    /// All goes well: steps until nothing is to be done.
    pub(crate) fn converge(&mut self) {
        let mut idle = 0;
        for _ in 0..10_000 {
            idle = if self.round() { 0 } else { idle + 1 };
            if idle > 0 {
                let next = self.with_plan(|plan| plan.next);
                if idle > 2 && next.is_none() {
                    return;
                }
                self.wait(STARTUP);
            }
        }
        panic!("it does not come to rest: {self:#?}");
    }
}

/// At most one action for each pod.
fn check_plan(plan: &Plan<'_>) {
    let mut names = BTreeSet::new();
    for action in &plan.actions {
        let request = Request::of(action, (0, false), &[]);
        assert!(names.insert(request.name().to_owned()), "{plan:#?}");
    }
}

/// What is decided, without the order in which it is listed.
fn decided(plan: &Plan<'_>) -> impl PartialEq + std::fmt::Debug {
    let actions = plan.actions.iter().map(|action| format!("{action:?}"));
    let actions: BTreeSet<_> = actions.collect();
    let (counts, account) = (plan.counts.clone(), plan.account);
    (plan.record.clone(), actions, counts, account, plan.next)
}
