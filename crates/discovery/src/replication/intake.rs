//! What a replica takes from one stream of an upstream. No clock, no IO.
//!
//! The stream begins with how current the upstream is. What is known better here is held: nothing of it is taken, until the upstream
//! knows it at least as well, and the stream begins again. Pods are taken as they come; all else takes effect together once
//! everything has come, as do removals: a set whose selector has changed does not lose its pods because others come later.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use discovery_proto as proto;
use fedrs_api::{EndpointSetSpec, ObjectKey, SetKind};
use jiff::Timestamp;

use super::unpacker::{self, Misfit};
use crate::{
    freshness::Staleness,
    services::{Service, ServiceKey},
    set::SetKey,
    source::Source,
    state::State,
};

/// What has been taken from a stream.
#[derive(Debug, Default)]
pub(super) struct Intake {
    host: Option<Taking>,
    members: BTreeMap<Arc<str>, MemberTaking>,
    /// What has come before everything has: it is gone otherwise.
    listed: Listed,
    /// What takes effect once everything has come.
    deferred: Vec<proto::ReplicateResponse>,
    /// The responses so far to changes that have not come as a whole: of those alone, a set might have fewer endpoints than ever.
    parts: Vec<proto::ReplicateResponse>,
    pub(super) is_complete: bool,
}

/// Whether something of the upstream is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Taken,
    /// It is known better here.
    Held,
}

#[derive(Clone, Copy, Debug)]
struct MemberTaking {
    pods: Taking,
    services: Taking,
}

#[derive(Debug, Default)]
struct Listed {
    sets: HashSet<SetKey>,
    sources: HashSet<ObjectKey>,
    services: HashMap<Arc<str>, HashSet<ServiceKey>>,
    /// Whether a set could not be read: none is gone then.
    has_unreadable: bool,
}

/// Why a stream ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// The upstream knows now what was known better here: another stream has it.
    #[error("it has caught up")]
    CaughtUp,
    /// It sends something else.
    #[error("it sent something that does not fit: {0}")]
    Misfit(#[from] Misfit),
}

impl Intake {
    /// Takes what is new at `now`.
    ///
    /// # Errors
    /// If this stream has to end.
    pub(super) fn receive(
        &mut self,
        state: &mut State,
        response: proto::ReplicateResponse,
        now: Timestamp,
    ) -> Result<(), End> {
        let is_part = response.continued && self.is_complete;
        self.parts.push(response);
        if is_part {
            return Ok(());
        }
        for part in std::mem::take(&mut self.parts) {
            self.take(state, part, now)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        state: &mut State,
        mut response: proto::ReplicateResponse,
        now: Timestamp,
    ) -> Result<(), End> {
        let is_last = response.complete;
        let host = response.host.as_ref().and_then(|host| host.currency);
        let currencies: Vec<_> = (response.members.iter())
            .map(|part| {
                (
                    part.name.clone(),
                    part.pods_currency,
                    part.services_currency,
                )
            })
            .collect();
        self.decide(state, host, &currencies, now)?;
        for part in &mut response.members {
            self.take_pods(state, part)?;
        }
        if self.is_complete || !state.host_staleness().is_known {
            self.take_rest(state, response)?;
        } else {
            self.deferred.push(response);
        }
        if is_last {
            for (name, taking) in &self.members {
                if taking.pods == Taking::Taken {
                    state.apply_deferred_pods(name);
                }
            }
            for deferred in std::mem::take(&mut self.deferred) {
                self.take_rest(state, deferred)?;
            }
            self.end_lists(state);
            self.is_complete = true;
        }
        if self.is_complete {
            self.take_currencies(state, host, &currencies, now);
        }
        Ok(())
    }

    /// Whether what the upstream has of the host, and of each member, is taken.
    fn decide(
        &mut self,
        state: &mut State,
        host: Option<proto::Currency>,
        members: &[(String, Option<proto::Currency>, Option<proto::Currency>)],
        now: Timestamp,
    ) -> Result<(), End> {
        if let Some(theirs) = host {
            let theirs = unpacker::staleness(theirs, now);
            self.host = Some(self.decided(self.host, state.host_staleness(), theirs)?);
        }
        for (name, pods, services) in members {
            if name.is_empty() {
                return Err(Misfit::Invalid("a member without a name").into());
            }
            let known = self.members.get(&**name).copied();
            if known.is_none() && state.member_state(name).is_none() {
                state.add_member(&Arc::from(&**name));
            }
            let ours = state.member_state(name);
            let ours = ours.expect("it exists, or was added");
            // What the upstream does not say of a member that is new, it does not know.
            let theirs = |currency: &Option<proto::Currency>| {
                let currency = currency.map(|currency| unpacker::staleness(currency, now));
                currency.or_else(|| known.is_none().then(Staleness::default))
            };
            let decided =
                |taking: Option<Taking>, ours, theirs: Option<Staleness>| match (taking, theirs) {
                    (Some(taking), None) => Ok(taking),
                    (taking, theirs) => self.decided(taking, ours, theirs.unwrap_or_default()),
                };
            let taking = MemberTaking {
                pods: decided(known.map(|known| known.pods), ours.pods, theirs(pods))?,
                services: decided(
                    known.map(|known| known.services),
                    ours.services,
                    theirs(services),
                )?,
            };
            if known.is_none() {
                if taking.pods == Taking::Taken {
                    state.begin_pods(name);
                }
                self.members.insert(ours.name, taking);
            }
        }
        Ok(())
    }

    fn decided(
        &self,
        taking: Option<Taking>,
        ours: Staleness,
        theirs: Staleness,
    ) -> Result<Taking, End> {
        let is_older = theirs.is_older_than(ours);
        match taking {
            Some(Taking::Held) if !is_older => Err(End::CaughtUp),
            Some(taking) => Ok(taking),
            None if is_older => Ok(Taking::Held),
            // Changes alone are no list.
            None if self.is_complete && ours.is_known => Err(End::CaughtUp),
            None => Ok(Taking::Taken),
        }
    }

    fn taking(&self, member: &str) -> MemberTaking {
        let held = MemberTaking {
            pods: Taking::Held,
            services: Taking::Held,
        };
        self.members.get(member).copied().unwrap_or(held)
    }

    /// Takes the pods that are new or different, and leaves the rest of the part.
    fn take_pods(&self, state: &mut State, part: &mut proto::ReplicatedMember) -> Result<(), End> {
        let pods = proto::ReplicatedMember {
            labels: std::mem::take(&mut part.labels),
            ports: std::mem::take(&mut part.ports),
            nodes: std::mem::take(&mut part.nodes),
            pods: std::mem::take(&mut part.pods),
            ..proto::ReplicatedMember::default()
        };
        if !pods.pods.is_empty() && self.taking(&part.name).pods == Taking::Taken {
            state.replicate_pods(&part.name, !self.is_complete, |cluster, shared| {
                unpacker::pods(pods, cluster, shared)
            })?;
        }
        Ok(())
    }

    fn take_rest(
        &mut self,
        state: &mut State,
        response: proto::ReplicateResponse,
    ) -> Result<(), End> {
        let mut members = response.members;
        for part in &mut members {
            let services = std::mem::take(&mut part.services);
            if self.taking(&part.name).services == Taking::Held {
                continue;
            }
            for service in services {
                let key = unpacker::service_key(service.id)?;
                let balancer = service.load_balancer.map(unpacker::load_balancer);
                let service = Service {
                    selector: unpacker::json(&service.selector)?,
                    balancer: balancer.transpose()?,
                };
                state.apply_service(&part.name, &key, Some(service));
                self.list_service(&part.name, key);
            }
        }
        if let Some(host) = response.host.filter(|_| self.host == Some(Taking::Taken)) {
            self.take_host(state, host)?;
        }
        for part in members {
            let taking = self.taking(&part.name);
            if taking.services == Taking::Taken {
                for id in part.removed_services {
                    state.apply_service(&part.name, &unpacker::service_key(Some(id))?, None);
                }
            }
            if taking.pods == Taking::Taken {
                for id in part.removed_pods {
                    state.remove_pod(&part.name, &id.namespace, &id.name);
                }
            }
        }
        Ok(())
    }

    fn list_service(&mut self, member: &str, key: ServiceKey) {
        if self.is_complete {
            return;
        }
        if let Some((name, _)) = self.members.get_key_value(member) {
            let listed = self.listed.services.entry(Arc::clone(name));
            listed.or_default().insert(key);
        }
    }

    fn take_host(&mut self, state: &mut State, host: proto::ReplicatedHost) -> Result<(), End> {
        for source in host.sources {
            let key = unpacker::source_key(source.id)?;
            let lost = source.lost_clusters.into_iter().map(Arc::from);
            let source = Source {
                selector: unpacker::json(&source.selector)?,
                lost: lost.collect(),
            };
            state.apply_source(&key, source);
            self.listed.sources.insert(key);
        }
        for set in host.sets {
            let key = unpacker::set_key(set.id)?;
            match unpacker::json::<EndpointSetSpec>(&set.spec) {
                Ok(spec) => state.apply_spec(key.clone(), &spec),
                // The upstream may be of a later version.
                Err(error) => {
                    tracing::warn!(set = %key, %error, "skipped an EndpointSet of the upstream that can't be read");
                    self.listed.has_unreadable = true;
                }
            }
            self.listed.sets.insert(key);
        }
        for id in host.removed_sets {
            state.remove_set(&unpacker::set_key(Some(id))?);
        }
        for id in host.removed_sources {
            state.remove_source(&unpacker::source_key(Some(id))?);
        }
        Ok(())
    }

    /// What has not come does not exist.
    fn end_lists(&mut self, state: &mut State) {
        let listed = std::mem::take(&mut self.listed);
        if self.host == Some(Taking::Taken) && !listed.has_unreadable {
            state.end_sets(&listed.sets);
            for kind in SetKind::ALL {
                state.end_sources(kind, &listed.sources);
            }
        }
        let none = HashSet::new();
        for (name, taking) in &self.members {
            if taking.services == Taking::Taken {
                state.end_services(name, listed.services.get(name).unwrap_or(&none));
            }
            if taking.pods == Taking::Taken {
                state.remove_unlisted_pods(name);
            }
        }
    }

    /// All that is taken is as current as the upstream says.
    fn take_currencies(
        &self,
        state: &mut State,
        host: Option<proto::Currency>,
        members: &[(String, Option<proto::Currency>, Option<proto::Currency>)],
        now: Timestamp,
    ) {
        if let Some(theirs) = host.filter(|_| self.host == Some(Taking::Taken)) {
            state.replicate_host_currency(unpacker::staleness(theirs, now));
        }
        for (name, pods, services) in members {
            let taking = self.taking(name);
            if let Some(theirs) = pods.filter(|_| taking.pods == Taking::Taken) {
                state.replicate_pods_currency(name, unpacker::staleness(theirs, now));
            }
            if let Some(theirs) = services.filter(|_| taking.services == Taking::Taken) {
                let theirs = unpacker::staleness(theirs, now);
                state.refresh_services(name, |freshness| freshness.replicated(theirs));
            }
        }
    }
}
