//! What the demo shortens so that nobody has to wait: every other setting is the product's default.

use std::time::Duration;

use federation_controller::config::{Config, ProbeConfig};
use sim_cluster::Settings;

/// The controller's configuration in the demo.
pub(crate) fn controller() -> Config {
    Config {
        check_delay: Duration::from_millis(500),
        recheck_interval: Duration::from_secs(1),
        status_delay: Duration::from_millis(100),
        unscheduled_timeout: Duration::from_secs(4),
        backoff_initial: Duration::from_secs(5),
        backoff_max: Duration::from_secs(30),
        probe: ProbeConfig {
            period: Duration::from_millis(500),
            timeout: Duration::from_millis(1500),
            failure_threshold: 3,
        },
        lost_grace_period: Duration::from_secs(5),
        ..Config::default()
    }
}

/// How quick the embedded clusters are: pods take two seconds to start, so that it is seen.
pub(crate) fn clusters() -> Settings {
    Settings {
        start_time: Duration::from_secs(2),
        ..Settings::default()
    }
}

/// What is said about it.
pub(crate) fn told() -> String {
    let demo = controller();
    let product = Config::default();
    let wait = |it: Duration| it.as_secs();
    format!(
        "Waits are shortened: a pod may wait {} s for a node (by default {} s), a lost cluster has {} s of grace ({} s), \
         probes come every {} ms ({} s).",
        wait(demo.unscheduled_timeout),
        wait(product.unscheduled_timeout),
        wait(demo.lost_grace_period),
        wait(product.lost_grace_period),
        demo.probe.period.as_millis(),
        wait(product.probe.period),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_storys_probes_are_the_products() {
        assert_eq!(
            u64::from(controller().probe_replicas),
            crate::demo::expect::PROBES
        );
        assert!(told().contains("a pod may wait 4 s for a node (by default 60 s)"));
    }
}
