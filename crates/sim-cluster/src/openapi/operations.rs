//! The operations on a kind: paths, parameters and bodies.

use serde_json::{Map, Value, json};

use super::kind_entry::{KindEntry, document_path, reference};

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// A query parameter: name, type, description.
type Parameter = (&'static str, &'static str, &'static str);

const PRETTY: Parameter = (
    "pretty",
    "string",
    "If 'true', then the output is pretty printed.",
);
const DRY_RUN: Parameter = (
    "dryRun",
    "string",
    "When present, indicates that modifications should not be persisted. Valid values are: - All: all dry run stages will be processed",
);
const FIELD_MANAGER: Parameter = (
    "fieldManager",
    "string",
    "fieldManager is a name associated with the actor or entity that is making these changes.",
);
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "fieldValidation instructs the server on how to handle objects in the request (POST/PUT/PATCH) containing unknown or duplicate fields. Valid values are: - Ignore - Warn - Strict",
);
const FORCE: Parameter = (
    "force",
    "boolean",
    "Force is going to \"force\" Apply requests. It means user will re-acquire conflicting fields owned by other people.",
);
const LIST: [Parameter; 9] = [
    (
        "allowWatchBookmarks",
        "boolean",
        "allowWatchBookmarks requests watch events with type \"BOOKMARK\".",
    ),
    (
        "continue",
        "string",
        "The continue option should be set when retrieving more results from the server.",
    ),
    (
        "fieldSelector",
        "string",
        "A selector to restrict the list of returned objects by their fields.",
    ),
    (
        "labelSelector",
        "string",
        "A selector to restrict the list of returned objects by their labels.",
    ),
    (
        "limit",
        "integer",
        "limit is a maximum number of responses to return for a list call.",
    ),
    (
        "resourceVersion",
        "string",
        "resourceVersion sets a constraint on what resource versions a request may be served from.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "resourceVersionMatch determines how resourceVersion is applied to list calls.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "`sendInitialEvents=true` may be set together with `watch=true`.",
    ),
    (
        "watch",
        "boolean",
        "Watch for changes to the described resources and return them as a stream of add, update, and remove notifications.",
    ),
];
const DELETE: [Parameter; 4] = [
    DRY_RUN,
    (
        "gracePeriodSeconds",
        "integer",
        "The duration in seconds before the object should be deleted.",
    ),
    (
        "orphanDependents",
        "boolean",
        "Deprecated: please use the PropagationPolicy.",
    ),
    (
        "propagationPolicy",
        "string",
        "Whether and how garbage collection will be performed.",
    ),
];
const WRITE: [Parameter; 3] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const PATCH: [Parameter; 4] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];

/// Adds the paths of a kind whose definition is called `name`.
pub(super) fn add(kind: &KindEntry<'_>, name: &str, paths: &mut Map<String, Value>) {
    let root = format!("/{}", document_path(kind.group, kind.version));
    let collection = if kind.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{root}/{}", kind.plural)
    };
    let operations = KindOperations { kind, name };
    if kind.namespaced {
        let mut item = Map::from_iter([("get".to_owned(), operations.list("ForAllNamespaces"))]);
        item.insert("parameters".to_owned(), json!([query(&PRETTY)]));
        paths.insert(format!("{root}/{}", kind.plural), Value::Object(item));
    }
    paths.insert(collection.clone(), json!({
        "get": operations.list(""),
        "post": operations.write("post", "create"),
        "delete": operations.operation("deletecollection", "deleteCollection", &DELETE, STATUS, Some(json_body(DELETE_OPTIONS))),
        "parameters": operations.path_parameters(false),
    }));
    paths.insert(format!("{collection}/{{name}}"), json!({
        "get": operations.operation("get", "read", &[], name, None),
        "put": operations.write("put", "replace"),
        "patch": operations.operation("patch", "patch", &PATCH, name, Some(patch_body(kind.schema.is_some()))),
        "delete": operations.operation("delete", "delete", &DELETE, STATUS, Some(json_body(DELETE_OPTIONS))),
        "parameters": operations.path_parameters(true),
    }));
    for subresource in kind
        .subresources
        .iter()
        .filter(|one| ["status", "resize", "ephemeralcontainers"].contains(one))
    {
        paths.insert(
            format!("{collection}/{{name}}/{subresource}"),
            json!({
                "get": operations.operation("get", "read", &[], name, None),
                "put": operations.write("put", "replace"),
                "patch": operations.operation("patch", "patch", &PATCH, name, Some(patch_body(kind.schema.is_some()))),
                "parameters": operations.path_parameters(true),
            }),
        );
    }
}

struct KindOperations<'a> {
    kind: &'a KindEntry<'a>,
    name: &'a str,
}

impl KindOperations<'_> {
    fn list(&self, suffix: &str) -> Value {
        let list = format!("{}List", self.name);
        let mut operation = self.operation("list", "list", &LIST, &list, None);
        if let Some(id) = operation["operationId"]
            .as_str()
            .map(|id| format!("{id}{suffix}"))
        {
            operation["operationId"] = id.into();
        }
        operation
    }

    fn write(&self, action: &str, verb: &str) -> Value {
        self.operation(action, verb, &WRITE, self.name, Some(json_body(self.name)))
    }

    fn operation(
        &self,
        action: &str,
        verb: &str,
        parameters: &[Parameter],
        answer: &str,
        body: Option<Value>,
    ) -> Value {
        let KindEntry {
            kind,
            version,
            namespaced,
            ..
        } = self.kind;
        let scope = if *namespaced { "Namespaced" } else { "" };
        let group = group_in_camel_case(self.kind.group);
        let mut operation = json!({
            "description": format!("{verb} the specified {kind}"),
            "operationId": format!("{verb}{group}{}{scope}{kind}", capitalized(version)),
            "parameters": parameters.iter().map(query).collect::<Vec<_>>(),
            "responses": {
                "200": { "description": "OK", "content": { "application/json": { "schema": reference(answer) } } },
                "401": { "description": "Unauthorized" },
            },
            "tags": [format!("{}_{version}", group.to_lowercase())],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.kind.group_version_kind(),
        });
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    }

    fn path_parameters(&self, named: bool) -> Value {
        let mut parameters = Vec::new();
        let in_path = |name: &str, description: String| json!({ "name": name, "in": "path", "description": description, "required": true, "schema": { "type": "string", "uniqueItems": true } });
        if named {
            parameters.push(in_path("name", format!("name of the {}", self.kind.kind)));
        }
        if self.kind.namespaced {
            parameters.push(in_path(
                "namespace",
                "object name and auth scope, such as for teams and projects".to_owned(),
            ));
        }
        parameters.push(query(&PRETTY));
        Value::Array(parameters)
    }
}

fn query((name, kind, description): &Parameter) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": { "type": kind, "uniqueItems": true } })
}

fn json_body(name: &str) -> Value {
    json!({ "content": { "*/*": { "schema": reference(name) } }, "required": true })
}

/// Clients choose a patch format from these: custom resources have no strategic merge patch.
fn patch_body(custom: bool) -> Value {
    let schema = json!({ "schema": { "description": "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.", "type": "object" } });
    let mut kinds = vec!["apply-patch+yaml", "json-patch+json", "merge-patch+json"];
    if !custom {
        kinds.push("strategic-merge-patch+json");
    }
    let content: Map<String, Value> = kinds
        .into_iter()
        .map(|kind| (format!("application/{kind}"), schema.clone()))
        .collect();
    json!({ "content": content, "required": true })
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// `Core` for the core group, `RbacAuthorization` for `rbac.authorization.k8s.io`.
fn group_in_camel_case(group: &str) -> String {
    if group.is_empty() {
        return "Core".to_owned();
    }
    group
        .trim_end_matches(".k8s.io")
        .split('.')
        .map(capitalized)
        .collect()
}
