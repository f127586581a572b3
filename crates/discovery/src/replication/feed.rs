//! What a replica of the service gets that is fed by this one: first everything, then what changes, as fast as it reads.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use discovery_proto as proto;
use jiff::Timestamp;
use tokio::{sync::watch, time::timeout};

use super::packer::pack;
use crate::{catalog::Catalog, replicas::ReplicaId, state::Update};

/// How often something is sent: a replica takes longer silence for the end.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);
/// The pods that are packed at a time.
const PODS: usize = 10_000;

/// What one replica gets.
#[derive(Debug)]
pub(crate) struct Feed {
    catalog: Arc<Catalog>,
    replica: ReplicaId,
    changed: watch::Receiver<()>,
    stage: Stage,
    ready: VecDeque<proto::ReplicateResponse>,
}

#[derive(Debug)]
enum Stage {
    Begin,
    /// Pods of these members and namespaces are still to be sent.
    Pods(VecDeque<(Arc<str>, Arc<str>)>),
    Changes,
}

impl Feed {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        let (replica, changed) = catalog.add_replica();
        Self {
            catalog,
            replica,
            changed,
            stage: Stage::Begin,
            ready: VecDeque::new(),
        }
    }

    /// The next response.
    pub(crate) async fn next(&mut self) -> proto::ReplicateResponse {
        loop {
            if let Some(response) = self.ready.pop_front() {
                return response;
            }
            match &mut self.stage {
                Stage::Begin => self.begin(),
                Stage::Pods(namespaces) => match namespaces.pop_front() {
                    Some((member, namespace)) => self.pack_pods(&member, &namespace),
                    None => self.complete(),
                },
                Stage::Changes => {
                    if timeout(HEARTBEAT, self.changed.changed()).await.is_err() {
                        return proto::ReplicateResponse::default();
                    }
                    let update = self.catalog.take_update(self.replica, false);
                    self.pack(&update);
                }
            }
        }
    }

    /// How current everything is comes first, and then all but pods. What changes from now on comes later.
    fn begin(&mut self) {
        let ((currency, rest, namespaces), _) = self.catalog.look(|state| {
            let rest = state.update_of(&state.all_but_pods());
            (state.currency(), rest, state.namespaces())
        });
        self.pack(&Update {
            currency: Some(currency),
            ..Update::default()
        });
        self.pack(&Update {
            currency: None,
            ..rest
        });
        self.stage = Stage::Pods(namespaces.into());
    }

    fn pack_pods(&mut self, member: &Arc<str>, namespace: &Arc<str>) {
        let (pods, _) = (self.catalog).look(|state| state.selected_pods(member, namespace));
        for pods in pods.chunks(PODS) {
            self.pack(&Update {
                pods: vec![(Arc::clone(member), pods.to_vec())],
                ..Update::default()
            });
        }
    }

    /// What has changed meanwhile, and how current everything is with that.
    fn complete(&mut self) {
        let update = self.catalog.take_update(self.replica, true);
        self.pack(&update);
        let last = self.ready.back_mut();
        last.expect("it was packed").complete = true;
        self.stage = Stage::Changes;
    }

    fn pack(&mut self, update: &Update) {
        let responses = pack(update, Timestamp::now()).into_iter();
        let heartbeat = proto::ReplicateResponse::default();
        self.ready
            .extend(responses.filter(|response| *response != heartbeat));
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.catalog.end_replica(self.replica);
    }
}
