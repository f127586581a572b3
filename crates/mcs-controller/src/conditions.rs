//! The conditions of a ServiceExport, with the types and reasons of the API.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{
    export::{Export, Exporter},
    resolve::Conflict,
    view::{Invalid, MemberView, View},
};

/// The longest message: the API allows 32,768 bytes, and nobody reads them.
const MESSAGE_CHARS: usize = 1_024;

/// A condition without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) r#type: &'static str,
    pub(crate) is_true: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Reported {
    fn new(r#type: &'static str, is_true: bool, reason: &str, message: &str) -> Self {
        let message = message.chars().take(MESSAGE_CHARS).collect();
        Self {
            r#type,
            is_true,
            reason: reason.to_owned(),
            message,
        }
    }
}

/// The conditions of the export of `member`.
pub(crate) fn of_export(
    view: &View,
    member: &MemberView,
    exporters: &[Exporter],
    conflicts: &[Conflict],
) -> Vec<Reported> {
    let (reason, message) = match member.invalid() {
        None => return vec![valid(), ready(view), conflict(view, exporters, conflicts)],
        Some(Invalid::NoService) => ("NoService", "there is no Service of this name"),
        Some(Invalid::ServiceType) => (
            "InvalidServiceType",
            "a Service of the type ExternalName has no endpoints to export",
        ),
    };
    vec![
        Reported::new("Valid", false, reason, message),
        Reported::new("Ready", false, "Pending", "the export is not valid"),
        Reported::new("Conflict", false, "NoConflicts", ""),
    ]
}

fn valid() -> Reported {
    Reported::new("Valid", true, "Valid", "")
}

/// Whether all members that import have the ServiceImport.
fn ready(view: &View) -> Reported {
    let names = |is: fn(&MemberView) -> bool| {
        let members = view.importing().filter(|(_, member)| is(member));
        let names: Vec<&str> = members.map(|(name, _)| &**name).collect();
        names.join(", ")
    };
    let foreign = names(|member| member.import.is_some() && member.own_import().is_none());
    if !foreign.is_empty() {
        let message = format!("a ServiceImport of this name belongs to somebody else in {foreign}");
        return Reported::new("Ready", false, "Failed", &message);
    }
    let missing = names(|member| member.import.is_none());
    if !missing.is_empty() {
        let message = format!("there is no ServiceImport yet in {missing}");
        return Reported::new("Ready", false, "Pending", &message);
    }
    Reported::new("Ready", true, "Exported", "")
}

fn conflict(view: &View, exporters: &[Exporter], conflicts: &[Conflict]) -> Reported {
    if conflicts.is_empty() {
        return Reported::new("Conflict", false, "NoConflicts", "");
    }
    let reasons: Vec<_> = conflicts.iter().map(|conflict| conflict.reason).collect();
    let origin = match (view.recorded(), exporters.first()) {
        (None, Some(oldest)) => format!("from the oldest export in {}", oldest.cluster),
        _ => "as decided with a member that is not known now".to_owned(),
    };
    let count = exporters.len();
    let texts = conflicts.iter().map(|conflict| {
        let Conflict {
            property, disagree, ..
        } = conflict;
        format!("using {property}, {origin}; {disagree} of {count} exports disagree")
    });
    let message = texts.collect::<Vec<_>>().join(". ");
    Reported::new("Conflict", true, &reasons.join(","), &message)
}

/// The conditions of `export` with `reported` at `now`, and those of others as they are. `None` if nothing is new.
pub(crate) fn updated(
    export: &Export,
    reported: &[Reported],
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let mut conditions = export.status.conditions.clone();
    for new in reported {
        let status = if new.is_true { "True" } else { "False" };
        let condition = Condition {
            type_: new.r#type.to_owned(),
            status: status.to_owned(),
            reason: new.reason.clone(),
            message: new.message.clone(),
            observed_generation: export.metadata.generation,
            last_transition_time: Time(now),
        };
        let known = conditions
            .iter_mut()
            .find(|known| known.type_ == new.r#type);
        match known {
            Some(known) if known.status == status => {
                let last_transition_time = known.last_transition_time.clone();
                *known = Condition {
                    last_transition_time,
                    ..condition
                };
            }
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
    (conditions != export.status.conditions).then_some(conditions)
}
