//! A host, its members and a caller that steps, publishes and writes, with lost and late answers.

mod checks;
pub(crate) mod cluster;
mod local;

use std::time::Duration;

use cluster::{Cluster, Health, REVISIONS, Reach, SpecWrite};
use federated_rollout::{
    Account, Action, Amount, Approval, Budget, Decision, Member, MemberState, OnFailure, Rollout,
    Speed, State, Step, step,
};
use jiff::Timestamp;

pub(crate) const MIN_DELAY: i64 = 30;

/// What becomes of a request whose answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    Lost,
    Late,
}

/// A request that may be carried out later.
#[derive(Clone, Debug)]
enum Late {
    Publish(u64, State),
    Write(usize, SpecWrite),
}

/// The preferences that a case has.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) replicas: Vec<u64>,
    pub(crate) unavailable: u64,
    pub(crate) surge: u64,
    pub(crate) portion: Option<u64>,
    /// The step of each member; the last one is implied.
    pub(crate) steps: Vec<usize>,
    pub(crate) soak: i64,
    pub(crate) approval: bool,
    pub(crate) max_concurrent: Option<usize>,
    /// Whether the members have LocalReplicaSets.
    pub(crate) is_local: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// A leader steps, and publishes; it writes what the recorded state allows.
    Step {
        publish: Fate,
        write: Fate,
    },
    Deliver(usize),
    Sync(usize),
    Report(usize),
    Available(usize, usize),
    Break(usize, usize),
    /// Somebody asks for the eviction of a pod.
    Evict(usize, usize),
    Reach(usize, Reach),
    /// Another leader starts: it knows nothing of the members that it can't reach.
    Restart,
    Cordon(usize, bool),
    WithoutNode(usize, bool),
    Target(usize),
    Pause(bool),
    Approve(usize),
    Replicas(u64),
    Budget(u64, u64),
    /// A move scales the member.
    Move(usize, bool),
    Wait(i64),
    /// All goes well for a while.
    Round,
}

pub(crate) const NAMES: [&str; 4] = ["asia", "eu", "us", "za"];
const STEPS: [&str; 2] = ["canary", "second"];

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) host: State,
    /// What the leader decided last.
    decided: State,
    /// What the host had when the leader started, or what it has published since.
    published: State,
    version: u64,
    late: Vec<Late>,
    now: i64,
    target: usize,
    replicas: u64,
    paused: bool,
    approvals: Vec<(usize, usize)>,
    /// Pods that were lost or broken by others, or are new in N: as many more may be unavailable.
    debt: u64,
    most_unavailable: u64,
    most_surge: u64,
    starts: Vec<i64>,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let sizes = setup.replicas.iter().zip(NAMES);
        let clusters: Vec<_> = sizes
            .map(|(&replicas, name)| Cluster::new(name, replicas, setup.is_local))
            .collect();
        Self {
            replicas: setup.replicas.iter().sum(),
            most_unavailable: setup.unavailable.max(u64::from(setup.surge == 0)),
            most_surge: setup.surge,
            clusters,
            setup,
            host: State::default(),
            decided: State::default(),
            published: State::default(),
            version: 0,
            late: Vec::new(),
            now: 0,
            target: 0,
            paused: false,
            approvals: Vec::new(),
            debt: 0,
            starts: Vec::new(),
        }
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + self.now).expect("it is a time")
    }

    fn members(&self) -> Vec<Member<'static>> {
        let member = |cluster: &Cluster| {
            let lately = |pod: &cluster::Pod| pod.created + MIN_DELAY > self.now;
            Member {
                name: cluster.name,
                state: match cluster.reach {
                    Reach::Reachable => MemberState::Writable,
                    Reach::Unreachable => MemberState::Unknown,
                    Reach::Lost => MemberState::Lost,
                },
                cordoned: cluster.cordoned,
                requested: cluster.recorded(),
                creates: false,
                waits_for_nodes: cluster.waits_for_nodes,
                deployment: (cluster.is_known)
                    .then(|| cluster.view(cluster.pods.iter().any(lately))),
            }
        };
        self.clusters.iter().map(member).collect()
    }

    /// Calls `with` with the rollout as the caller sees it.
    fn with_rollout<T>(&self, with: impl FnOnce(&Rollout<'_>) -> T) -> T {
        let members = self.members();
        let names = |number: usize| -> Vec<&str> {
            let steps = self.setup.steps.iter().zip(NAMES);
            let of_step = steps.filter(|(step, _)| **step == number);
            of_step.map(|(_, name)| name).collect()
        };
        let of_steps = [names(0), names(1)];
        let steps = [0, 1].map(|number| Step {
            name: STEPS[number],
            members: &of_steps[number],
            soak: Duration::from_secs(self.setup.soak.unsigned_abs()),
            approval_before: self.setup.approval && number == 1,
            max_concurrent: self.setup.max_concurrent,
        });
        let approvals = self.approvals.iter();
        let approvals: Vec<_> = approvals
            .map(|&(step, revision)| Approval {
                step: STEPS[step],
                revision: REVISIONS[revision],
            })
            .collect();
        with(&Rollout {
            target: REVISIONS[self.target],
            previous: None,
            replicas: self.replicas,
            budget: Budget::RollingUpdate {
                max_unavailable: Amount::Number(self.setup.unavailable),
                max_surge: Amount::Number(self.setup.surge),
            },
            limit: None,
            speed: self.setup.portion.map(|portion| Speed {
                portion,
                min_delay: Duration::from_secs(MIN_DELAY.unsigned_abs()),
            }),
            steps: if self.setup.steps.is_empty() {
                &[]
            } else {
                &steps
            },
            approvals: &approvals,
            paused: self.paused,
            progress_deadline: Some(Duration::from_secs(600)),
            on_failure: OnFailure::Stop,
            members: &members,
        })
    }

    /// What the leader continues from: that loans have ended need not be on the host. What is there may be an earlier leader's.
    pub(crate) fn recorded(&self) -> &State {
        let is_ours = self.host.is_covered_by(&self.published);
        if is_ours && self.decided.is_covered_by(&self.host) {
            &self.decided
        } else {
            &self.host
        }
    }

    pub(crate) fn decide(&self) -> Decision {
        self.with_rollout(|rollout| step(rollout, self.recorded(), self.time()))
    }

    pub(crate) fn account(&self, state: &State) -> Account {
        self.with_rollout(|rollout| Account::of(rollout, state))
    }

    pub(crate) fn apply(&mut self, op: Op) {
        let count = self.clusters.len();
        match op {
            Op::Step { publish, write } => self.step(publish, write),
            Op::Deliver(index) => {
                if !self.late.is_empty() {
                    let late = self.late.swap_remove(index % self.late.len());
                    self.deliver(late);
                }
            }
            Op::Sync(cluster) => self.sync(cluster % count),
            Op::Report(cluster) => self.clusters[cluster % count].report(),
            Op::Available(cluster, pod) => self.make_available(cluster % count, pod),
            Op::Break(cluster, pod) => {
                let pods = &mut self.clusters[cluster % count].pods;
                let index = pod % pods.len().max(1);
                if let Some(pod) = pods.get_mut(index) {
                    self.debt += u64::from(pod.is_available());
                    pod.health = Health::Broken;
                }
            }
            Op::Evict(cluster, pod) => {
                let pods = &mut self.clusters[cluster % count].pods;
                let index = pod % pods.len().max(1);
                if let Some(pod) = pods.get_mut(index) {
                    pod.is_evicted = true;
                }
            }
            Op::Reach(cluster, reach) => self.reach(cluster % count, reach),
            Op::Restart => {
                self.decided = self.host.clone();
                self.published = self.host.clone();
                for cluster in &mut self.clusters {
                    cluster.is_known &= cluster.reach == Reach::Reachable;
                }
            }
            Op::Cordon(cluster, cordoned) => self.clusters[cluster % count].cordoned = cordoned,
            Op::WithoutNode(cluster, waits) => {
                self.clusters[cluster % count].waits_for_nodes = waits;
            }
            Op::Target(target) => self.target = target,
            Op::Pause(paused) => self.paused = paused,
            Op::Approve(step) => self.approvals.push((step % 2, self.target)),
            Op::Replicas(replicas) => {
                self.debt += replicas.saturating_sub(self.replicas);
                self.replicas = replicas;
            }
            Op::Budget(unavailable, surge) => {
                let surge = if self.setup.is_local { 0 } else { surge };
                (self.setup.unavailable, self.setup.surge) = (unavailable, surge);
                let least = u64::from(surge == 0);
                self.most_unavailable = self.most_unavailable.max(unavailable.max(least));
                self.most_surge = self.most_surge.max(surge);
            }
            Op::Move(cluster, up) => self.scale(cluster % count, up),
            Op::Wait(seconds) => self.wait(seconds),
            Op::Round => self.round(),
        }
        self.check_totals(op);
    }

    fn reach(&mut self, index: usize, reach: Reach) {
        let cluster = &mut self.clusters[index];
        if reach == Reach::Lost {
            // Nothing is lost that was not unreachable before.
            if cluster.reach != Reach::Unreachable {
                return;
            }
            self.debt += cluster.replicas();
        } else if cluster.reach == Reach::Lost && reach == Reach::Unreachable {
            return;
        }
        cluster.set_reach(reach);
    }

    fn step(&mut self, publish: Fate, write: Fate) {
        let decision = self.decide();
        self.check_decision(&decision);
        for change in &decision.writes {
            let index = (self.clusters.iter())
                .position(|cluster| cluster.name == change.member)
                .expect("it is a member");
            let is_local = self.setup.is_local;
            let (strategy, revision, paused) = match change.action {
                Action::Roll(strategy) => (
                    Some(strategy),
                    Some(self.target),
                    Some(is_local && strategy.pods() == 0),
                ),
                Action::Shrink(strategy) => {
                    let paused = is_local.then_some(strategy.pods() == 0);
                    (Some(strategy), None, paused)
                }
                Action::Lend(strategy) => (Some(strategy), None, None),
                Action::Pause => (None, None, Some(true)),
                Action::Resume => (None, None, Some(false)),
                Action::Fence => (None, None, None),
            };
            let spec_write = SpecWrite {
                generation: change.generation,
                revision,
                strategy,
                paused,
            };
            self.send(write, Late::Write(index, spec_write));
        }
        let waits = publish != Fate::Done && decision.state.is_covered_by(&self.host);
        self.decided = decision.state.clone();
        if decision.state != self.host && !waits {
            self.send(publish, Late::Publish(self.version, decision.state));
            if publish == Fate::Done {
                self.published = self.host.clone();
            }
        }
    }

    fn send(&mut self, fate: Fate, request: Late) {
        match fate {
            Fate::Done => self.deliver(request),
            Fate::Lost => {}
            Fate::Late => self.late.push(request),
        }
    }

    fn deliver(&mut self, request: Late) {
        match request {
            Late::Publish(version, state) if version == self.version => {
                self.host = state;
                self.version += 1;
            }
            Late::Publish(..) => {}
            Late::Write(index, write) => {
                let cluster = &mut self.clusters[index];
                // What is sent before a cluster is lost may still be carried out; it is outside the account then.
                if cluster.write(write) && write.revision.is_some() && cluster.reach != Reach::Lost
                {
                    let loan = self.host.loans.get(cluster.name);
                    assert!(
                        cluster.replicas() == 0
                            || loan
                                .zip(write.strategy)
                                .is_some_and(|(loan, strategy)| loan.strategy.covers(strategy)),
                        "{} got a template without a recorded loan: {loan:?}",
                        cluster.name
                    );
                }
            }
        }
    }

    fn sync(&mut self, index: usize) {
        let cluster = &mut self.clusters[index];
        let loan = self.host.loans.get(cluster.name);
        let (available, pods) = (cluster.available(), cluster.pods.len() as u64);
        let created = cluster.sync(self.now);
        if cluster.reach == Reach::Lost {
            return;
        }
        self.starts.extend((0..created).map(|_| self.now));
        let lent = loan.map(|loan| cluster.in_effect(loan)).unwrap_or_default();
        let guaranteed = cluster.replicas().saturating_sub(lent.unavailable);
        assert!(
            cluster.available() >= available.min(guaranteed),
            "{} took more away than was lent: {cluster:?} {loan:?}",
            cluster.name
        );
        assert!(
            cluster.pods.len() as u64 <= pods.max(cluster.replicas() + lent.surge),
            "{} has more pods than was lent: {cluster:?} {loan:?}",
            cluster.name
        );
    }

    /// A controller that has replicas without a pod creates these before time passes: what starts when is not known otherwise.
    fn wait(&mut self, seconds: i64) {
        for index in 0..self.clusters.len() {
            let cluster = &self.clusters[index];
            let has_begun = cluster.pods.iter().any(|pod| pod.begun.is_some());
            let is_behind = (cluster.pods.len() as u64) < cluster.replicas() || has_begun;
            if self.setup.portion.is_some() && is_behind {
                if has_begun {
                    self.clusters[index].report();
                }
                self.sync(index);
            }
        }
        self.now += seconds;
    }

    fn make_available(&mut self, index: usize, pod: usize) {
        let ready_after = if self.setup.portion.is_some() {
            MIN_DELAY
        } else {
            0
        };
        let pods = &mut self.clusters[index].pods;
        let index = pod % pods.len().max(1);
        if let Some(pod) = pods.get_mut(index)
            && pod.created + ready_after <= self.now
        {
            pod.health = Health::Available;
        }
    }

    /// A mover's write, within the account. It publishes before it writes.
    fn scale(&mut self, index: usize, up: bool) {
        let account = self.account(self.recorded());
        let present = self.clusters.iter();
        let present = present.filter(|cluster| cluster.reach != Reach::Lost);
        let requested: u64 = present.map(Cluster::recorded).sum();
        let guaranteed: u64 = (account.members.iter())
            .map(|member| member.guaranteed)
            .sum();
        let (cluster, member) = (&mut self.clusters[index], account.members[index]);
        if cluster.reach != Reach::Reachable {
            return;
        }
        let replicas = cluster.replicas();
        if up {
            let is_missing = requested < self.replicas;
            // The mover knows what was requested of members that were not seen since the start.
            let beyond = requested.saturating_sub(self.replicas);
            let in_use = account.in_use.surge.max(beyond);
            let has_room = in_use < account.limits.surge && !member.moves_wait;
            if is_missing || has_room {
                cluster.scale(replicas + 1);
                self.version += 1;
            }
        } else if replicas > 0 && requested > self.replicas && !member.moves_wait {
            let kept = self.replicas.saturating_sub(account.limits.unavailable);
            let lost = u64::from(member.guaranteed == replicas);
            if lost == 0 || guaranteed > kept {
                cluster.scale(replicas - 1);
                self.version += 1;
            }
        }
    }

    /// Some time in which nothing fails.
    pub(crate) fn round(&mut self) {
        for _ in 0..3 {
            self.step(Fate::Done, Fate::Done);
        }
        for index in 0..self.clusters.len() {
            for _ in 0..3 {
                self.sync(index);
            }
            self.clusters[index].report();
        }
        self.wait(MIN_DELAY);
        for index in 0..self.clusters.len() {
            for pod in 0..self.clusters[index].pods.len() {
                if self.clusters[index].pods[pod].health == Health::Starting {
                    self.make_available(index, pod);
                }
            }
            self.clusters[index].report();
        }
    }

    /// Ends all faults. The target is rolled out, or a new one if it has failed, and then nothing is left to do.
    pub(crate) fn finish(&mut self) {
        self.late.clear();
        self.paused = false;
        for index in 0..self.clusters.len() {
            let cluster = &mut self.clusters[index];
            cluster.set_reach(Reach::Reachable);
            (cluster.cordoned, cluster.waits_for_nodes) = (false, false);
        }
        for _ in 0..300 {
            if self.is_finished() {
                break;
            }
            if self.decide().state.failed {
                // A bad revision never locks.
                self.target = REVISIONS.len() - 1;
            }
            self.approvals = vec![(0, self.target), (1, self.target)];
            self.round();
            for index in 0..self.clusters.len() {
                for pod in 0..self.clusters[index].pods.len() {
                    self.make_available(index, pod);
                }
                let requested: u64 = self.clusters.iter().map(Cluster::replicas).sum();
                if requested != self.replicas {
                    self.scale(index, requested < self.replicas);
                }
                self.clusters[index].sync(self.now);
                self.clusters[index].report();
            }
        }
        self.round();
        let settled = self.decide();
        assert!(
            self.is_finished(),
            "never completes: {:#?}\n{:#?}\n{settled:#?}",
            self.clusters,
            self.host
        );
        assert_eq!(settled.state, self.host, "a settled state changes");
        assert_eq!(settled.writes, [], "a settled rollout writes");
    }

    fn is_finished(&self) -> bool {
        let is_complete = |cluster: &Cluster| {
            cluster.revision() == self.target
                && cluster.available() == cluster.replicas()
                && cluster.pods.len() as u64 == cluster.replicas()
                && (cluster.pods.iter()).all(|pod| pod.revision == self.target && !pod.is_evicted)
        };
        let requested: u64 = self.clusters.iter().map(Cluster::replicas).sum();
        requested == self.replicas
            && self.clusters.iter().all(is_complete)
            && self.host.loans.is_empty()
            && self.host.revision == REVISIONS[self.target]
    }
}

fn has_revision(member: &Member<'_>, revision: usize) -> bool {
    (member.deployment).is_some_and(|found| found.revision == REVISIONS[revision])
}
