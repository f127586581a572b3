//! The settings that the demo shortens, so that nobody has to wait. All others have their defaults.

use std::time::Duration;

use federation_controller::config::{Config, ProbeConfig};
use sim_cluster::Settings;

/// The controller's configuration in the demo.
pub(crate) fn controller() -> Config {
    Config {
        check_delay: Duration::from_millis(500),
        recheck_interval: Duration::from_secs(1),
        status_delay: Duration::from_millis(100),
        unscheduled_timeout: Some(Duration::from_secs(4)),
        backoff_initial: Duration::from_secs(5),
        backoff_max: Duration::from_secs(30),
        probe: ProbeConfig {
            period: Duration::from_millis(500),
            timeout: Duration::from_millis(1500),
            failure_threshold: 3,
        },
        lost_grace_period: Some(Duration::from_secs(5)),
        stabilization_window: Duration::from_secs(5),
        ..Config::default()
    }
}

/// The settings of the embedded clusters. Pods take two seconds to start, so that the table shows it.
pub(crate) fn clusters() -> Settings {
    Settings {
        start_time: Duration::from_secs(2),
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_capacity_probes_are_the_default() {
        assert_eq!(
            u64::from(controller().capacity_probes),
            crate::demo::expectation::CAPACITY_PROBES
        );
    }
}
