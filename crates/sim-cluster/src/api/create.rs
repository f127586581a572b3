//! Creating objects.
//!
//! namespace checks -> identity (name, uid, times) -> admission -> exists? -> stored -> lifecycle.

use serde_json::{Value, json};

use super::admission::{self, check_body};
use super::options::WriteOptions;
use super::request::{Origin, Target, Written};
use super::state::{Api, State};
use super::{kind_rules, lifecycle, quota};
use crate::authorization::{Attributes, authorize, check_escalation};
use crate::clock::Clock;
use crate::field::FieldError;
use crate::object::{self, Object, text};
use crate::resources::{Kind, kinds};
use crate::status::{Status, StatusCause};

/// The attempts to generate a name that is not taken, as in the API server.
const GENERATED_NAME_TRIES: usize = 8;

impl Api {
    /// Creates an object. `namespace` is empty for cluster-scoped kinds.
    pub fn create(
        &self,
        kind: &Kind,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        Ok(self
            .create_written(kind, namespace, object, options)?
            .object)
    }

    /// [`Api::create`] that returns the warnings as well.
    pub(crate) fn create_written(
        &self,
        kind: &Kind,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let options = self.resolved(options);
        self.with_state(|state| {
            state.create(
                self.clock(),
                kind,
                namespace,
                object,
                &options,
                Origin::Written,
            )
        })
    }

    /// The options, with this handle's field manager if they do not name one.
    pub(crate) fn resolved(&self, options: &WriteOptions) -> WriteOptions {
        WriteOptions {
            field_manager: self.manager_of(options).to_owned(),
            ..options.clone()
        }
    }
}

impl State {
    pub(crate) fn create(
        &mut self,
        clock: &Clock,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
        origin: Origin<'_>,
    ) -> Result<Written, Status> {
        check_body(kind, namespace, &mut object)?;
        let given_name = text(&object, "/metadata/name").to_owned();
        self.check_namespace(kind, namespace, &given_name)?;
        if !matches!(text(&object, "/metadata/resourceVersion"), "" | "0") {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Status::new(500, "", message));
        }
        let name = self.name_new(kind, namespace, &mut object)?;
        self.identify_new(clock, kind, &mut object);
        if let Some(user) = &options.user {
            check_escalation(&self.store, user, kind, None, &object)?;
        }
        let warnings = admission::prepare_create(clock, kind, &mut object, options, origin)?;
        if self.store.get(kind, namespace, &name).is_some() {
            return Err(Status::already_exists(kind, &name));
        }
        quota::charge_quota(self, kind, namespace, &object, options)?;
        let object = if options.dry_run {
            object.into()
        } else {
            let stored = self.store.put(kind, namespace, &name, object);
            lifecycle::after_put(self, clock, kind, &stored);
            stored
        };
        Ok(Written {
            object,
            warnings,
            created: true,
        })
    }

    /// An update or apply of an absent object creates it: the user must be allowed to create.
    pub(crate) fn authorize_creation(
        &self,
        target: Target<'_>,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let Some(user) = &options.user else {
            return Ok(());
        };
        let resource = (target.kind.group.as_str(), target.kind.plural.as_str());
        let creation = Attributes::on_object("create", resource, target.namespace, target.name);
        authorize(&self.store, user, &creation)
    }

    /// The namespace of a new object must exist and must not be terminating.
    fn check_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Status> {
        if !kind.namespaced {
            return Ok(());
        }
        let found = self.store.get(&kinds::NAMESPACES, "", namespace);
        let found = found.ok_or_else(|| Status::not_found(&kinds::NAMESPACES, namespace))?;
        if object::is_terminating(found) {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = StatusCause::new(
                "NamespaceTerminating",
                "metadata.namespace",
                format!("namespace {namespace} is being terminated"),
            );
            return Err(Status::forbidden(kind, name, &why).with_cause(cause));
        }
        Ok(())
    }

    /// The name of a new object, generated if it has only a `generateName`.
    fn name_new(
        &mut self,
        kind: &Kind,
        namespace: &str,
        object: &mut Value,
    ) -> Result<String, Status> {
        let given = text(object, "/metadata/name");
        if !given.is_empty() {
            return Ok(given.to_owned());
        }
        let base = text(object, "/metadata/generateName").to_owned();
        if base.is_empty() {
            let cause = FieldError::required("metadata.name", "name or generateName is required");
            return Err(Status::invalid(kind, "", &[cause]));
        }
        let mut name = self.identities.name(&base);
        for _ in 1..GENERATED_NAME_TRIES {
            if self.store.get(kind, namespace, &name).is_none() {
                break;
            }
            name = self.identities.name(&base);
        }
        object["metadata"]["name"] = json!(name);
        Ok(name)
    }

    fn identify_new(&mut self, clock: &Clock, kind: &Kind, object: &mut Value) {
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "resourceVersion",
            "generation",
        ] {
            object::remove_metadata(object, field);
        }
        object["metadata"]["uid"] = json!(self.identities.uid());
        object["metadata"]["creationTimestamp"] = json!(clock.now_time());
        if kind_rules::has_generation(kind) {
            object["metadata"]["generation"] = json!(1);
        }
    }
}
