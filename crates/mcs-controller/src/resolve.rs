//! One Service from the exports of several members: the rules for conflicts of KEP-1645.
//!
//! The oldest export decides, and then the name of its member. Ports are merged. While a member is not known from which the Service
//! was imported, what was decided with it comes before all exports: it may have been the oldest, or the only one with a port.

use std::collections::BTreeMap;

use crate::{
    export::Exporter,
    import::{Exported, Import, ImportSpec, ImportType},
    ports::ServicePort,
};

/// What exports disagree about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The reason of the condition.
    pub(crate) reason: &'static str,
    /// The property, and what it is now.
    pub(crate) property: String,
    /// How many exports have it otherwise.
    pub(crate) disagree: usize,
}

/// The Service that all exports together make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) spec: ImportSpec,
    pub(crate) exported: Exported,
    pub(crate) conflicts: Vec<Conflict>,
}

/// Resolves `exporters`, which are in the order of precedence.
pub(crate) fn resolve(exporters: &[Exporter], recorded: Option<&Import>) -> Resolved {
    let mut resolving = Resolving {
        exporters,
        recorded,
        conflicts: Vec::new(),
    };
    let ports = resolving.ports();
    let r#type = resolving.prefer(
        "TypeConflict",
        "type",
        |import| import.spec.r#type,
        type_of,
        |r#type| format!("{type:?}"),
    );
    let mut spec = ImportSpec {
        r#type,
        ports,
        session_affinity: "None".to_owned(),
        ..ImportSpec::default()
    };
    if r#type == ImportType::ClusterSetIp {
        resolving.affinity(&mut spec);
    }
    resolving.traffic(&mut spec);
    let exported = resolving.exported();
    let conflicts = resolving.conflicts;
    Resolved {
        spec,
        exported,
        conflicts,
    }
}

fn type_of(exporter: &Exporter) -> ImportType {
    if exporter.service.is_headless() {
        ImportType::Headless
    } else {
        ImportType::ClusterSetIp
    }
}

fn affinity_of(exporter: &Exporter) -> String {
    match &*exporter.service.spec.session_affinity {
        "" => "None".to_owned(),
        affinity => affinity.to_owned(),
    }
}

/// The properties so far.
struct Resolving<'a> {
    exporters: &'a [Exporter],
    recorded: Option<&'a Import>,
    conflicts: Vec<Conflict>,
}

impl Resolving<'_> {
    /// The property as it was recorded, or as the first export has it. Others are a conflict.
    fn prefer<T: PartialEq + Default>(
        &mut self,
        reason: &'static str,
        name: &str,
        recorded: impl Fn(&Import) -> T,
        of: impl Fn(&Exporter) -> T,
        show: impl Fn(&T) -> String,
    ) -> T {
        let first = || self.exporters.first().map(&of);
        let value = self.recorded.map(recorded).or_else(first);
        let value = value.unwrap_or_default();
        let exporters = self.exporters.iter();
        let disagree = exporters.filter(|&exporter| of(exporter) != value).count();
        self.conflict(reason, format!("{name} {}", show(&value)), disagree);
        value
    }

    fn conflict(&mut self, reason: &'static str, property: String, disagree: usize) {
        if disagree > 0 {
            self.conflicts.push(Conflict {
                reason,
                property,
                disagree,
            });
        }
    }

    /// The union of all ports. Of two that one Service can't have, the one of the export that comes first.
    fn ports(&mut self) -> Vec<ServicePort> {
        let recorded = self.recorded.map(|import| import.spec.ports.clone());
        let mut ports = recorded.unwrap_or_default();
        let (mut disagree, mut contended) = (0, Vec::new());
        for exporter in self.exporters {
            let mut agrees = true;
            for port in &exporter.service.spec.ports {
                if ports.contains(port) {
                    continue;
                }
                match ports.iter().find(|known| known.excludes(port)) {
                    Some(known) => {
                        agrees = false;
                        contended.push(known.to_string());
                    }
                    None => ports.push(port.clone()),
                }
            }
            disagree += usize::from(!agrees);
        }
        contended.sort();
        contended.dedup();
        let property = format!("ports {}", contended.join(", "));
        self.conflict("PortConflict", property, disagree);
        ports
    }

    fn affinity(&mut self, spec: &mut ImportSpec) {
        spec.session_affinity = self.prefer(
            "SessionAffinityConflict",
            "sessionAffinity",
            |import| import.spec.session_affinity.clone(),
            affinity_of,
            Clone::clone,
        );
        // An affinity that is not used has no configuration to disagree about.
        let affinity = spec.session_affinity.clone();
        let first = self.exporters.iter();
        let mut first = first.filter(|&exporter| affinity_of(exporter) == affinity);
        let config = |exporter: &Exporter| exporter.service.spec.session_affinity_config.clone();
        let recorded = self.recorded.map(|import| &import.spec);
        let used = match recorded {
            Some(recorded) => recorded.session_affinity_config.clone(),
            None => first.clone().next().and_then(config),
        };
        let disagree = first.by_ref().filter(|&exporter| config(exporter) != used);
        let disagree = disagree.count();
        let timeout = used.as_ref().and_then(|config| config.client_ip.as_ref());
        let timeout = timeout.and_then(|client| client.timeout_seconds);
        let property = match timeout {
            Some(seconds) => format!("sessionAffinityConfig.clientIP.timeoutSeconds {seconds}"),
            None => "sessionAffinityConfig none".to_owned(),
        };
        self.conflict("SessionAffinityConfigConflict", property, disagree);
        spec.session_affinity_config = used;
    }

    fn traffic(&mut self, spec: &mut ImportSpec) {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        spec.internal_traffic_policy = self.prefer(
            "InternalTrafficPolicyConflict",
            "internalTrafficPolicy",
            |import| import.spec.internal_traffic_policy.clone(),
            |exporter| exporter.service.spec.internal_traffic_policy.clone(),
            show,
        );
        spec.traffic_distribution = self.prefer(
            "TrafficDistributionConflict",
            "trafficDistribution",
            |import| import.spec.traffic_distribution.clone(),
            |exporter| exporter.service.spec.traffic_distribution.clone(),
            show,
        );
    }

    /// All labels, and all annotations, of the export that comes first.
    fn exported(&mut self) -> Exported {
        let show = |values: &BTreeMap<String, String>| {
            let values = values.iter().map(|(key, value)| format!("{key}={value}"));
            format!("{:?}", values.collect::<Vec<_>>().join(","))
        };
        Exported {
            annotations: self.prefer(
                "AnnotationsConflict",
                "exportedAnnotations",
                |import| import.exported().annotations,
                |exporter| exporter.export.spec.exported_annotations.clone(),
                show,
            ),
            labels: self.prefer(
                "LabelsConflict",
                "exportedLabels",
                |import| import.exported().labels,
                |exporter| exporter.export.spec.exported_labels.clone(),
                show,
            ),
        }
    }
}
