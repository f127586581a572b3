//! POST, PUT and PATCH of objects and their subresources.

use http::Response;
use serde_json::{Value, json};

use super::negotiate::{content_type, unsupported_media_type};
use super::query::invalid_options;
use super::respond::{Body, answer, warn};
use super::write_request::WriteRequest;
use super::{body, reviews};
use crate::api::{DeleteOptions, Patch, Preconditions, ScaleWrite, Target, WriteOptions, Written};
use crate::field::FieldError;
use crate::object::text;
use crate::resources::convert;
use crate::schema::duplicate_fields;
use crate::status::Status;

impl WriteRequest<'_> {
    fn respond(&self, written: &Written) -> Response<Body> {
        let object = convert::to_version(&self.view.kind, &written.object);
        let code = if written.created { 201 } else { 200 };
        let shown = self.view.object(&object, self.api.clock());
        let mut response = answer(code, &shown, Some(self.format));
        warn(&mut response, &written.warnings);
        response
    }

    /// POST.
    pub(crate) fn create(&self) -> Result<Response<Body>, Status> {
        if self.subresource.is_some() {
            return self.create_subresource();
        }
        let kind = &self.view.kind;
        if kind.is_review() {
            return reviews::answer_review(self);
        }
        let mut options = self.options("CreateOptions")?;
        options.duplicate_fields = duplicate_fields(self.body);
        let object = body::object(kind, self.headers, self.body)?;
        let written = self
            .api
            .create_written(kind, self.namespace, object, &options)?;
        Ok(self.respond(&written))
    }

    fn create_subresource(&self) -> Result<Response<Body>, Status> {
        let given = body::any(self.headers, self.body)?;
        match self.subresource {
            Some("binding") => {
                let options = self.options("CreateOptions")?;
                self.check_name(&given, "Binding")?;
                let node = text(&given, "/target/name");
                if node.is_empty() {
                    return Err(Status::new(500, "", "target.name: Required value"));
                }
                self.api.bind(self.namespace, self.name, node, &options)?;
                let success = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
                });
                Ok(answer(201, &success, Some(self.format)))
            }
            Some("eviction") => {
                self.check_name(&given, "Eviction")?;
                let preconditions = &given["deleteOptions"]["preconditions"];
                let text = |field: &str| preconditions[field].as_str().map(str::to_owned);
                let options = DeleteOptions {
                    grace_period: given["deleteOptions"]["gracePeriodSeconds"].as_i64(),
                    propagation: None,
                    preconditions: Preconditions {
                        uid: text("uid"),
                        resource_version: text("resourceVersion"),
                    },
                    dry_run: self.query.dry_run("CreateOptions")?
                        || given["deleteOptions"]["dryRun"].is_array(),
                };
                self.api.evict(self.namespace, self.name, &options)?;
                let success = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
                });
                Ok(answer(201, &success, Some(self.format)))
            }
            Some("token") => {
                let token = self.api.request_token(self.namespace, self.name, given)?;
                Ok(answer(201, &token, Some(self.format)))
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// Rejects a body with the name of another object.
    fn check_name(&self, given: &Value, kind: &str) -> Result<(), Status> {
        let name = text(given, "/metadata/name");
        if name.is_empty() || name == self.name {
            return Ok(());
        }
        let message = format!("name in URL does not match name in {kind} object");
        Err(Status::bad_request(message))
    }

    /// PUT.
    pub(crate) fn update(&self) -> Result<Response<Body>, Status> {
        let kind = &self.view.kind;
        let mut options = self.options("UpdateOptions")?;
        options.duplicate_fields = duplicate_fields(self.body);
        match self.subresource {
            Some("scale") => {
                let scale = body::any(self.headers, self.body)?;
                let write = ScaleWrite::Put(&scale);
                let scale = self.api.write_scale(self.target(), &write, &options)?;
                return Ok(answer(200, &scale, Some(self.format)));
            }
            Some("binding" | "eviction" | "token") => return Err(Status::method_not_allowed()),
            _ => {}
        }
        let mut object = body::object(kind, self.headers, self.body)?;
        if text(&object, "/metadata/name").is_empty() {
            return Err(Status::nameless(self.name));
        }
        convert::convert(kind, &mut object);
        let written = self.api.update_written(self.target(), object, &options)?;
        Ok(self.respond(&written))
    }

    /// PATCH.
    pub(crate) fn patch(&self) -> Result<Response<Body>, Status> {
        let patch = self.read_patch()?;
        let options = self.patch_options(&patch)?;
        match self.subresource {
            Some("scale") => {
                let write = ScaleWrite::Patch(&patch);
                let scale = self.api.write_scale(self.target(), &write, &options)?;
                return Ok(answer(200, &scale, Some(self.format)));
            }
            Some("binding" | "eviction" | "token") => return Err(Status::method_not_allowed()),
            _ => {}
        }
        let Target {
            kind,
            subresource,
            namespace,
            name,
        } = self.target();
        let written = self
            .api
            .patch(kind, subresource, namespace, name, &patch, &options)?;
        Ok(self.respond(&written))
    }

    fn patch_options(&self, patch: &Patch) -> Result<WriteOptions, Status> {
        let what = "PatchOptions";
        if matches!(patch, Patch::Apply(_)) {
            if self.query.get("fieldManager").is_empty() {
                let cause = FieldError::required("fieldManager", "is required for apply patch");
                return Err(invalid_options(what, &[cause]));
            }
        } else if self.query.has("force") {
            let cause = FieldError::forbidden("force", "may not be specified for non-apply patch");
            return Err(invalid_options(what, &[cause]));
        }
        self.options(what)
    }

    fn read_patch(&self) -> Result<Patch, Status> {
        let kind = &self.view.kind;
        let custom = kind.is_custom();
        let json = || {
            body::from_json(self.body).map_err(|error| {
                Status::bad_request(format!("error decoding patch: {}", error.detail()))
            })
        };
        match content_type(self.headers) {
            "application/json-patch+json" => Ok(Patch::Json(json()?)),
            "application/merge-patch+json" => Ok(Patch::Merge(json()?)),
            "application/strategic-merge-patch+json" if !custom => Ok(Patch::Strategic(json()?)),
            "application/apply-patch+yaml" => {
                let object = body::from_yaml(self.body).map_err(|error| {
                    Status::bad_request(format!("error decoding YAML: {error}"))
                })?;
                check_apply_type(kind, self.subresource, &object)?;
                Ok(Patch::Apply(object))
            }
            "application/strategic-merge-patch+json" => Err(unsupported_media_type(
                "the body of the request was in an unknown format",
                "application/strategic-merge-patch+json",
                &[
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/apply-patch+yaml",
                ],
            )),
            _ => {
                let message = "415: Unsupported Media Type";
                Err(Status {
                    details: Some(Box::default()),
                    ..Status::new(415, "UnsupportedMediaType", message)
                })
            }
        }
    }
}

/// An applied object must have a kind and an API version.
fn check_apply_type(
    kind: &crate::resources::Kind,
    subresource: Option<&str>,
    object: &Value,
) -> Result<(), Status> {
    if subresource == Some("scale") {
        return Ok(());
    }
    for (field, shown) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if object[field].as_str().unwrap_or_default().is_empty() {
            return Err(Status::bad_request(format!(
                "error decoding patch: Object '{shown}' is missing in '{object}'"
            )));
        }
    }
    body::check_type(kind, object)
}
