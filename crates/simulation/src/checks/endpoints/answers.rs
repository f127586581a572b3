//! The answers of discovery for each set, and what is wrong with one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use fedrs_api::SetKind;
use sim_cluster::{Api, Change};
use tokio::time::{Duration, Instant};

use super::{
    currency::{Currency, Hindrance},
    truth::{HostTruth, MemberTruth, Serves},
};
use crate::{
    checks::violation::{Invariant, Violation},
    history::{History, KEPT},
    sim_federation::HOST,
};

/// What discovery answers for a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It waits for something.
    Waits(String),
    /// There is no such set, or it has no source.
    Nothing(String),
    /// Endpoints.
    Endpoints(AnswerOfSet),
}

/// The endpoints of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerOfSet {
    /// Its version.
    pub(crate) version: u64,
    /// By the names of the cluster and the pod.
    pub(crate) endpoints: Endpoints,
}

type Endpoints = BTreeMap<(String, String), Serves>;

/// What is true, and what was answered.
pub(crate) struct Answers {
    members: BTreeMap<String, MemberTruth>,
    host: Currency,
    sets: BTreeMap<String, Set>,
    /// The members that discovery knows by name, and whether it has listed their pods, or loaded them from a snapshot.
    known: BTreeMap<String, bool>,
}

struct Set {
    kind: SetKind,
    host: History<HostTruth>,
    /// The endpoints that were answered last, by any process.
    last: AnswerOfSet,
    /// What this process has answered last.
    shown: Option<String>,
    /// Whether this process has answered with endpoints.
    has_begun: bool,
}

impl Answers {
    /// Nothing has happened in these members, and of these sets there is none.
    pub(crate) fn new(sets: &[(&str, SetKind)], members: &[&str]) -> Self {
        let set = |kind| Set {
            kind,
            host: History::starting(HostTruth::default()),
            last: AnswerOfSet::default(),
            shown: None,
            has_begun: false,
        };
        Self {
            members: members
                .iter()
                .map(|name| ((*name).to_owned(), MemberTruth::default()))
                .collect(),
            host: Currency::default(),
            sets: sets
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), set(*kind)))
                .collect(),
            known: BTreeMap::new(),
        }
    }

    /// A cluster has changed.
    pub(crate) fn changed(&mut self, cluster: &str, change: &Change) {
        if let Some(member) = self.members.get_mut(cluster) {
            member.changed(change);
        } else if let Some(set) = self.sets.get_mut(&change.name)
            && let Some(now) = set.host.now().after(set.kind, change)
        {
            set.host.put(now);
        }
    }

    /// A cluster was restored from a backup.
    pub(crate) fn restored(&mut self, cluster: &str, api: &Api) {
        if let Some(member) = self.members.get_mut(cluster) {
            member.restored(api);
            return;
        }
        for (name, set) in &mut self.sets {
            set.host.put(HostTruth::restored(name, set.kind, api));
        }
    }

    /// Something hinders discovery from now on from knowing what has changed in a cluster.
    pub(crate) fn begin(&mut self, cluster: &str, hindrance: Hindrance, reason: &str) {
        self.currency(cluster).begin(hindrance, reason);
    }

    /// It does not any more, after `rest` at the latest.
    pub(crate) fn end(&mut self, cluster: &str, reason: &str, rest: Duration) {
        self.currency(cluster).end(reason, rest);
    }

    /// Watches of a cluster end, or have to be replaced by a list.
    pub(crate) fn watches_break(&mut self, cluster: &str) {
        self.currency(cluster).watches_break();
    }

    /// The process ends.
    pub(crate) fn process_ends(&mut self) {
        self.currencies()
            .for_each(|currency| currency.begin_restart(NO_PROCESS));
        self.known.clear();
        for set in self.sets.values_mut() {
            set.has_begun = false;
            set.shown = None;
        }
    }

    /// Another process starts.
    pub(crate) fn process_starts(&mut self) {
        self.currencies()
            .for_each(|currency| currency.end(NO_PROCESS, Duration::ZERO));
    }

    /// What keeps discovery from knowing changes of the host and of these members at once.
    pub(crate) fn hindered(&self, members: &[String]) -> Vec<String> {
        let members = members
            .iter()
            .map(|name| (&**name, &self.members[name].currency));
        let all = members.chain([(HOST, &self.host)]);
        let hindered = all.filter(|(_, currency)| !currency.is_at_once());
        hindered
            .map(|(name, currency)| format!("{name} ({})", currency.reasons().join(", ")))
            .collect()
    }

    fn currency(&mut self, cluster: &str) -> &mut Currency {
        let member = self.members.get_mut(cluster);
        member.map_or(&mut self.host, |member| &mut member.currency)
    }

    fn currencies(&mut self) -> impl Iterator<Item = &mut Currency> {
        let members = self.members.values_mut();
        members
            .map(|member| &mut member.currency)
            .chain([&mut self.host])
    }

    /// The members that the process knows by name, and whether it has listed their pods.
    pub(crate) fn put_known(&mut self, known: BTreeMap<String, bool>) {
        self.known = known;
    }

    /// The process answers this for a set. Returns what is wrong, and a line for the trace if the answer is another one.
    pub(crate) fn answered(
        &mut self,
        name: &str,
        answer: &Answer,
    ) -> (Option<Violation>, Option<String>) {
        let wrong = match answer {
            Answer::Waits(what) => self.waits(name, what),
            Answer::Nothing(what) => self.has_nothing(name, what),
            Answer::Endpoints(answer) => self.has(name, answer),
        };
        let Some(set) = self.sets.get_mut(name) else {
            return (None, None);
        };
        if let Answer::Endpoints(answer) = answer {
            set.has_begun = true;
            set.last.clone_from(answer);
        }
        let shown = describe(name, answer);
        let is_new = set.shown.as_ref() != Some(&shown);
        set.shown = Some(shown.clone());
        let wrong = wrong.map(|(invariant, text)| Violation {
            invariant,
            text: format!("{name}: {text}"),
        });
        (wrong, is_new.then_some(shown))
    }

    /// Discovery may wait for a host that it can't see. After that it only does while nothing is known to serve.
    fn waits(&self, name: &str, what: &str) -> Option<(Invariant, String)> {
        let set = self.sets.get(name)?;
        if !set.has_begun && !self.host.is_listed() {
            return None;
        }
        let lost = self.lost(name, &Endpoints::new())?;
        Some((Invariant::NoEmptyAnswer, format!("{what}, but {lost}")))
    }

    fn has_nothing(&self, name: &str, what: &str) -> Option<(Invariant, String)> {
        let set = self.sets.get(name)?;
        let mut states = set.host.since(self.host.known_since());
        states.all(HostTruth::exists).then(|| {
            let text = format!("{what}, but it was there {}", within(&self.host));
            (Invariant::NoEmptyAnswer, text)
        })
    }

    fn has(&self, name: &str, answer: &AnswerOfSet) -> Option<(Invariant, String)> {
        let set = self.sets.get(name)?;
        let mut states = set.host.since(self.host.known_since());
        if !states.any(HostTruth::exists) {
            let text = format!("it is answered, but was not there {}", within(&self.host));
            return Some((Invariant::TrueEndpoints, text));
        }
        if answer.version < set.last.version {
            let text = "its version is lower than before".to_owned();
            return Some((Invariant::VersionsGrow, text));
        }
        if answer.version == set.last.version && answer.endpoints != set.last.endpoints {
            let text = "one version has two answers".to_owned();
            return Some((Invariant::VersionsGrow, text));
        }
        let wrong = answer
            .endpoints
            .iter()
            .find_map(|(pod, serves)| self.wrong(name, pod, serves, &answer.endpoints));
        if let Some(text) = wrong {
            return Some((Invariant::TrueEndpoints, text));
        }
        if !answer.endpoints.is_empty() {
            let lost = self.lost(name, &answer.endpoints);
            return lost.map(|text| (Invariant::NoLostEndpoint, text));
        }
        let unknown = self.known.iter().find(|(_, is_known)| !**is_known);
        let unknown = unknown.map(|(member, _)| format!("{member} is not known"));
        let lost = unknown.or_else(|| self.lost(name, &answer.endpoints))?;
        let text = format!("it is answered as empty, but {lost}");
        Some((Invariant::NoEmptyAnswer, text))
    }

    /// What is wrong with an endpoint.
    fn wrong(
        &self,
        set: &str,
        (cluster, pod): &(String, String),
        serves: &Serves,
        endpoints: &Endpoints,
    ) -> Option<String> {
        let Some(member) = self.members.get(cluster) else {
            return Some(format!("it has {pod} in {cluster}, which is no member"));
        };
        let Some(history) = member.pods.get(pod) else {
            return Some(format!("it has {pod} in {cluster}, which never was"));
        };
        let known_since = member.currency.known_since();
        if known_since.elapsed() > KEPT {
            return None;
        }
        let is_this = |state: &Option<(String, Serves)>| {
            let state = state.as_ref();
            state.is_some_and(|(of, state)| of == set && state == serves)
        };
        let is_true = history.since(known_since).any(is_this);
        if !is_true {
            let when = if history.all().any(is_this) {
                within(&member.currency)
            } else {
                "at any time".to_owned()
            };
            return Some(format!(
                "it has {pod} in {cluster} as {}, which it was not {when}",
                describe_pod(serves)
            ));
        }
        let is_left_out = |host: &HostTruth| leaves_out(host, cluster, endpoints);
        let mut states = self.sets.get(set)?.host.since(self.host.known_since());
        states.all(is_left_out).then(|| {
            let when = within(&self.host);
            format!("it has {pod} in {cluster}, which is lost, {when}, while others serve")
        })
    }

    /// A pod that has served all the time, and is no endpoint.
    fn lost(&self, set: &str, endpoints: &Endpoints) -> Option<String> {
        let host = &self.sets.get(set)?.host;
        self.members.iter().find_map(|(cluster, member)| {
            let is_known = self.known.get(cluster).is_some_and(|is_known| *is_known);
            // What was not listed since a start without a snapshot is not answered.
            if !is_known && !member.currency.is_listed() {
                return None;
            }
            let mut hosts = host.since(self.host.known_since());
            if hosts.any(|host| !host.exists() || leaves_out(host, cluster, endpoints)) {
                return None;
            }
            let since = member.currency.known_since();
            let serves = |history: &History<Option<(String, Serves)>>| {
                let is_of_set = |state: &Option<(String, Serves)>| {
                    state.as_ref().is_some_and(|(of, _)| of == set)
                };
                history.since(since).all(is_of_set)
            };
            let is_missing =
                |pod: &String| !endpoints.contains_key(&(cluster.clone(), pod.clone()));
            let mut pods = member.pods.iter();
            let (pod, _) = pods.find(|(pod, history)| serves(history) && is_missing(pod))?;
            let when = within(&member.currency);
            Some(format!(
                "{pod} in {cluster} has served {when}, and is missing"
            ))
        })
    }
}

/// What keeps discovery from knowing anything while none runs.
const NO_PROCESS: &str = "no process";

/// Whether endpoints in a cluster that is lost to the set are left out, because others serve.
fn leaves_out(host: &HostTruth, cluster: &str, endpoints: &Endpoints) -> bool {
    let mut endpoints = endpoints.iter();
    host.lost.contains(cluster)
        && endpoints.any(|((of, _), serves)| !serves.is_terminating && !host.lost.contains(of))
}

fn within(currency: &Currency) -> String {
    let age = Instant::now() - currency.known_since();
    format!("in the last {} s", age.as_secs())
}

fn describe_pod(serves: &Serves) -> String {
    let addresses = serves.addresses.iter().map(ToString::to_string);
    let state = if serves.is_terminating {
        "terminating"
    } else {
        "ready"
    };
    format!("{state}, {}", addresses.collect::<Vec<_>>().join(" and "))
}

/// The answer in a line: `endpoints of web: m1 4, m2 3 and 1 terminating`.
fn describe(set: &str, answer: &Answer) -> String {
    let answer = match answer {
        Answer::Waits(what) | Answer::Nothing(what) => {
            return format!("endpoints of {set}: {what}");
        }
        Answer::Endpoints(answer) => answer,
    };
    let clusters: BTreeSet<_> = answer
        .endpoints
        .keys()
        .map(|(cluster, _)| cluster)
        .collect();
    let count = |cluster: &str, is_terminating: bool| {
        let endpoints = answer.endpoints.iter();
        let of = endpoints
            .filter(|((of, _), serves)| of == cluster && serves.is_terminating == is_terminating);
        of.count()
    };
    let mut text = format!("endpoints of {set}:");
    for cluster in &clusters {
        let (ready, terminating) = (count(cluster, false), count(cluster, true));
        let _ = write!(text, " {cluster} {ready}");
        if terminating > 0 {
            let _ = write!(text, " and {terminating} terminating");
        }
        text.push(',');
    }
    if clusters.is_empty() {
        text.push_str(" none");
    }
    text.trim_end_matches(',').to_owned()
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
