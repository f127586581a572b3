//! The query of a request: options of lists, watches, writes and deletions.

use crate::api::{FieldValidation, WriteOptions};
use crate::resources::Kind;
use crate::selectors::{FieldSelector, LabelSelector, Selector};
use crate::status::Status;

use super::path::decode;
use crate::field::FieldError;

/// The longest name of a field manager.
const MANAGER_BYTES_MAX: u64 = 128;

/// The query as pairs, decoded, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

/// The match of a list's `resourceVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// Options of lists and watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) selector: Selector,
    /// 0 means no limit.
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    /// `None` if the query has none.
    pub(crate) version: Option<u64>,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) allow_bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
}

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (
                decode(&key.replace('+', " ")),
                decode(&value.replace('+', " ")),
            )
        });
        Self(pairs.collect())
    }

    /// The first value of a key; empty if there is none.
    pub(crate) fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map_or("", |(_, value)| value)
    }

    /// Whether the query has the key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// Whether a parameter is true; a key without a value is, as in `?watch`.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.has(key) && !matches!(self.get(key), "false" | "0" | "False" | "F" | "f")
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, Status> {
        let text = self.get(key);
        if text.is_empty() {
            return Ok(None);
        }
        let refused = || {
            Status::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        };
        text.parse().map(Some).map_err(|_| refused())
    }

    /// Whether `dryRun` is `All`; other values are rejected.
    pub(crate) fn dry_run(&self, what: &str) -> Result<bool, Status> {
        match self.get("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => {
                let cause = FieldError::not_supported("dryRun", vec![other], &["All"]);
                Err(invalid_options(what, &[cause]))
            }
        }
    }

    /// The options of a write; `agent` is the field manager if the query has none.
    pub(crate) fn write_options(&self, what: &str, agent: &str) -> Result<WriteOptions, Status> {
        let field_validation = match self.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = &["", "Ignore", "Strict", "Warn"];
                let cause = FieldError::not_supported("fieldValidation", other, supported);
                return Err(invalid_options(what, &[cause]));
            }
        };
        let manager = match self.get("fieldManager") {
            "" => agent,
            named => named,
        };
        if manager.len() as u64 > MANAGER_BYTES_MAX {
            let error = FieldError::too_long("fieldManager", MANAGER_BYTES_MAX);
            return Err(invalid_options(what, &[error]));
        }
        if let Some((at, letter)) = manager
            .char_indices()
            .find(|(_, letter)| letter.is_control())
        {
            let why = format!(
                "invalid character U+{:04X} (at position {at})",
                u32::from(letter)
            );
            let error = FieldError::invalid("fieldManager", manager, why);
            return Err(invalid_options(what, &[error]));
        }
        Ok(WriteOptions {
            dry_run: self.dry_run(what)?,
            field_manager: manager.to_owned(),
            field_validation,
            duplicate_fields: Vec::new(),
            force: self.is_set("force"),
            user: None,
        })
    }

    /// The options of a list or a watch.
    pub(crate) fn list_options(&self, kind: &Kind, watch: bool) -> Result<ListOptions, Status> {
        self.check_version_options(watch)?;
        let selector = Selector {
            labels: LabelSelector::parse(self.get("labelSelector"))?,
            fields: FieldSelector::parse(kind, self.get("fieldSelector"))?,
        };
        let limit = self.number("limit")?.unwrap_or(0);
        let timeout = self.number("timeoutSeconds")?;
        Ok(ListOptions {
            selector,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: self.get("continue").to_owned(),
            version: match self.version() {
                Err(status) if !watch => {
                    let message = format!("invalid resource version: {}", status.message);
                    return Err(Status::bad_request(message));
                }
                version => version?,
            },
            version_match: match self.get("resourceVersionMatch") {
                "Exact" => Some(VersionMatch::Exact),
                "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            allow_bookmarks: self.is_set("allowWatchBookmarks"),
            send_initial_events: self
                .has("sendInitialEvents")
                .then(|| self.is_set("sendInitialEvents")),
            timeout_seconds: timeout.and_then(|seconds| u64::try_from(seconds).ok()),
        })
    }

    /// `resourceVersion`, if there is one.
    pub(crate) fn version(&self) -> Result<Option<u64>, Status> {
        let text = self.get("resourceVersion");
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| {
            let detail = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
            let message = format!("resourceVersion: Invalid value: {text:?}: {detail}");
            Status::new(500, "", message)
        })
    }

    /// Rejects invalid combinations of `resourceVersion`, its match and `sendInitialEvents`.
    fn check_version_options(&self, watch: bool) -> Result<(), Status> {
        let matching = self.get("resourceVersionMatch");
        let mut causes = Vec::new();
        let mut forbid = |field: &str, why: &str| causes.push(FieldError::forbidden(field, why));
        let initial = self.has("sendInitialEvents");
        if watch {
            if initial && matching != "NotOlderThan" {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                forbid("resourceVersionMatch", why);
            }
            if !matching.is_empty() && !initial {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                forbid("resourceVersionMatch", why);
            }
        } else {
            if !matching.is_empty() && self.get("resourceVersion").is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                forbid("resourceVersionMatch", why);
            }
            if matching == "Exact" && self.get("resourceVersion") == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                forbid("resourceVersionMatch", why);
            }
            if initial {
                forbid(
                    "sendInitialEvents",
                    "sendInitialEvents is forbidden for list",
                );
            }
        }
        // A watch from now, or from any version, is one with initial events.
        let has_match = !matching.is_empty()
            || watch && !initial && matches!(self.get("resourceVersion"), "" | "0");
        if has_match && !self.get("continue").is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            forbid("resourceVersionMatch", why);
        }
        if watch && initial && matching == "Exact" {
            let supported = &["NotOlderThan"];
            let cause = FieldError::not_supported("resourceVersionMatch", matching, supported);
            causes.push(cause);
        }
        if !matches!(matching, "" | "Exact" | "NotOlderThan") {
            let supported = &["Exact", "NotOlderThan", ""];
            causes.push(FieldError::not_supported(
                "resourceVersionMatch",
                matching,
                supported,
            ));
        }
        if causes.is_empty() {
            Ok(())
        } else {
            Err(invalid_options("ListOptions", &causes))
        }
    }
}

/// 422 for options, which are kinds of the group `meta.k8s.io`.
pub(crate) fn invalid_options(what: &str, errors: &[FieldError]) -> Status {
    Status::invalid_object(("meta.k8s.io", what), "", errors)
}
