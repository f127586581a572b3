//! From the layout to what each cluster should hold: layout, replicas that stay waiting, and probes.
//!
//! ```text
//! N less what frozen members hold -> layout within bounds and capacities (the scheduler)
//!   + what no cluster can run now: left waiting where it is, else where it would go (F18)
//!   + probes: a couple that wait in a full cluster, on top (F34)
//! ```

use federated_scheduler::{CapacityOverride, Cluster, Layout, Preference, Request, plan, what_if};

use super::{capacity::Room, drain, snapshot::CheckSettings};

/// One usable cluster, as far as its target depends on it.
#[derive(Clone, Debug)]
pub(crate) struct Usable<'a> {
    pub(crate) name: &'a str,
    /// What is preferred for it; without any it gets nothing (F3).
    pub(crate) preference: Option<Preference>,
    pub(crate) schedulable: bool,
    /// Whether all its replicas are to leave.
    pub(crate) draining: bool,
    /// Replicas asked of the local set now.
    pub(crate) placed: u64,
    /// Of these: waiting for a node or for creation.
    pub(crate) waiting: u64,
    /// Of these: probes that the last check left on top.
    pub(crate) probes: u64,
    /// What is known of its room.
    pub(crate) room: Room,
    /// Whether creating the local set has been refused for longer than X: counts as no room (F28).
    pub(crate) refused: bool,
}

impl<'a> Usable<'a> {
    /// The most the layout may give it.
    fn limit(&self) -> Option<u64> {
        let room = if self.refused {
            Some(0)
        } else {
            self.room.capacity
        };
        min_limit(room, self.open_limit())
    }

    /// Whether room is what may keep it below its share.
    fn is_limited(&self) -> bool {
        self.refused || self.room.capacity.is_some()
    }

    /// The limit that no probe can lift: a cordoned cluster keeps what it has.
    fn open_limit(&self) -> Option<u64> {
        (!self.schedulable).then(|| self.present())
    }

    /// Replicas that count as present (F13): probes never do, nor what has been found not to fit.
    fn present(&self) -> u64 {
        let placed = self.placed.saturating_sub(self.probes);
        self.room
            .capacity
            .map_or(placed, |capacity| placed.min(capacity))
    }

    /// As the scheduler sees it, within its limit.
    fn within_limit(&self) -> Cluster<'a> {
        self.holding(self.present(), self.limit())
    }

    /// As the scheduler sees it with `current` replicas and room for `capacity`.
    fn holding(&self, current: u64, capacity: Option<u64>) -> Cluster<'a> {
        Cluster {
            name: self.name,
            preference: self.preference,
            current,
            capacity,
        }
    }
}

/// What one usable cluster should hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// What the layout gives it.
    pub(crate) layout: u64,
    /// Replicas that no cluster can run now, waiting here (F18).
    pub(crate) pending: u64,
    /// Replicas left waiting on top, to notice room (F34).
    pub(crate) probes: u64,
}

impl Target {
    /// Replicas that the local set should have.
    pub(crate) fn total(self) -> u64 {
        self.layout + self.pending + self.probes
    }
}

/// The targets of all usable clusters, in their order, with the layout they come from.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    pub(crate) layout: Layout,
    pub(crate) per_cluster: Vec<Target>,
}

/// What each cluster whose room is known would get if its room had no limit and moves were free; `None` for the
/// others. The limits of the others hold: where all are full, each could take more than its share by weight.
pub(crate) fn shares_with_room(
    key: &str,
    replicas: u64,
    clusters: &[Usable<'_>],
) -> Vec<Option<u64>> {
    let mut shares = vec![None; clusters.len()];
    let limited = clusters
        .iter()
        .enumerate()
        .filter(|(_, cluster)| cluster.is_limited());
    let overrides: Vec<_> = limited
        .map(|(index, cluster)| CapacityOverride {
            cluster: index,
            capacity: cluster.open_limit(),
        })
        .collect();
    if overrides.is_empty() {
        return shares;
    }
    let within: Vec<_> = clusters.iter().map(Usable::within_limit).collect();
    let request = Request {
        key,
        replicas,
        rebalance: true,
        clusters: &within,
    };
    for (limit, share) in overrides.iter().zip(what_if(&request, &overrides)) {
        shares[limit.cluster] = Some(share);
    }
    shares
}

/// Lays `replicas` out over `clusters` (F10 to F19, F34). `with_room` is what [`shares_with_room`] says of them.
pub(crate) fn targets(
    key: &str,
    replicas: u64,
    rebalance: bool,
    clusters: &[Usable<'_>],
    with_room: Vec<Option<u64>>,
    settings: &CheckSettings,
) -> Targets {
    let within: Vec<_> = clusters.iter().map(Usable::within_limit).collect();
    let layout = plan(&Request {
        key,
        replicas,
        rebalance,
        clusters: &within,
    });
    let mut targets: Vec<Target> = layout
        .shares
        .iter()
        .map(|share| Target {
            layout: share.replicas,
            ..Target::default()
        })
        .collect();
    if layout.unplaced > 0 {
        place_pending(key, replicas, layout.unplaced, clusters, &mut targets);
        drain::keep_what_nobody_takes(layout.unplaced, clusters, &mut targets);
    }
    for ((target, cluster), with_room) in targets.iter_mut().zip(clusters).zip(with_room) {
        // Only where room is what keeps it below its share; those that wait anyway serve as probes.
        if let Some(share) = with_room
            && cluster.schedulable
        {
            let missing = share.saturating_sub(target.layout);
            let probes = missing.min(u64::from(settings.probe_replicas));
            target.probes = probes.saturating_sub(target.pending);
        }
    }
    Targets {
        layout,
        per_cluster: targets,
    }
}

/// Replicas that no cluster can run stay where they wait; those that wait nowhere yet wait where they would
/// go if there were room: a cluster autoscaler has to see them (F18, F34).
fn place_pending(
    key: &str,
    replicas: u64,
    unplaced: u64,
    clusters: &[Usable<'_>],
    targets: &mut [Target],
) {
    let mut left = unplaced;
    for (target, cluster) in targets.iter_mut().zip(clusters) {
        let beyond_layout = cluster.placed.saturating_sub(target.layout);
        let max = cluster.preference.map_or(Some(0), |it| it.max);
        let allowed = max.unwrap_or(u64::MAX).saturating_sub(target.layout);
        target.pending = beyond_layout.min(cluster.waiting).min(allowed).min(left);
        left -= target.pending;
    }
    if left == 0 {
        return;
    }
    let waiting: Vec<_> = clusters
        .iter()
        .zip(targets.iter())
        .map(|(cluster, target)| {
            let present = target.layout + target.pending;
            let closed = !cluster.schedulable || cluster.refused;
            cluster.holding(present, closed.then_some(present))
        })
        .collect();
    let layout = plan(&Request {
        key,
        replicas,
        rebalance: false,
        clusters: &waiting,
    });
    for (target, share) in targets.iter_mut().zip(&layout.shares) {
        target.pending = share.replicas.saturating_sub(target.layout);
    }
}

fn min_limit(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (limit, None) | (None, limit) => limit,
    }
}
