//! Values of a custom resource, against every keyword of a schema: types, ranges, formats, lists, rules; and who owns them.

#![expect(
    clippy::needless_pass_by_value,
    reason = "objects are written where they are used: a reference to each says nothing"
)]

use crate::reference::script::{
    ApiRequest, RequestScript, TABLE, apply, delete, get, merge, other, post, script, steps,
    strategic,
};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GOODS: &str = "${ns}.example.com/v1:goods";

pub(crate) fn all() -> Vec<RequestScript> {
    vec![accepted(), refused(), owned()]
}

/// The schema of each field of the spec.
fn fields() -> Value {
    let keyed = json!({
        "type": "object", "required": ["k"],
        "properties": { "k": { "type": "string" }, "v": { "type": "integer", "default": 7 } },
    });
    json!({
        "name": { "type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$" },
        "number": { "type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 9 },
        "integer": { "type": "integer", "format": "int32" },
        "choice": { "type": "string", "enum": ["a", "b"], "default": "b" },
        "any": { "x-kubernetes-preserve-unknown-fields": true },
        "either": { "x-kubernetes-int-or-string": true },
        "map": { "type": "object", "maxProperties": 2, "minProperties": 1, "additionalProperties": { "type": "integer" } },
        "set": { "type": "array", "maxItems": 3, "minItems": 1, "x-kubernetes-list-type": "set", "items": { "type": "string" } },
        "list": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": keyed },
        "plain": { "type": "array", "items": { "type": "object", "properties": { "k": { "type": "string" }, "v": { "type": "integer", "default": 7 } } } },
        "atomic": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } },
        "time": { "type": "string", "format": "date-time" },
        "uuid": { "type": "string", "format": "uuid" },
        "ip": { "type": "string", "format": "ipv4" },
        "duration": { "type": "string", "format": "duration" },
        "bytes": { "type": "string", "format": "byte" },
        "maybe": { "type": "string", "nullable": true },
        "not": { "type": "string", "not": { "enum": ["x"] } },
        "one": { "type": "integer", "oneOf": [{ "maximum": 5 }, { "minimum": 3 }] },
        "any-of": { "type": "integer", "anyOf": [{ "maximum": 3 }, { "minimum": 5 }] },
        "rules": {
            "type": "object",
            "properties": { "min": { "type": "integer" }, "max": { "type": "integer" } },
            "x-kubernetes-validations": [
                { "rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min is above max", "reason": "FieldValueForbidden", "fieldPath": ".min" },
                { "rule": "!has(self.min) || self.min != 13", "messageExpression": "'not thirteen'" },
                { "rule": "!has(oldSelf.max) || self.max >= oldSelf.max" },
            ],
        },
        "template": { "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
    })
}

fn definition() -> Value {
    let columns = json!([
        { "name": "Choice", "type": "string", "jsonPath": ".spec.choice" },
        { "name": "Number", "type": "number", "jsonPath": ".spec.number", "priority": 1 },
        { "name": "When", "type": "date", "jsonPath": ".spec.time" },
        { "name": "Set", "type": "string", "jsonPath": ".spec.set[*]" },
    ]);
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "required": ["name"], "properties": fields() },
        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "goods.${ns}.example.com" },
        "spec": {
            "group": "${ns}.example.com", "scope": "Namespaced",
            "names": { "plural": "goods", "singular": "good", "kind": "Good", "listKind": "GoodList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "additionalPrinterColumns": columns, "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// Creates the CRD in a group of the script's own, and waits until it is served.
fn install() -> [ApiRequest; 2] {
    [
        post(DEFINITIONS, definition()).only("/spec"),
        get(GOODS)
            .until(20, |object| object["kind"] == "GoodList")
            .only("/kind"),
    ]
}

fn good(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "${ns}.example.com/v1", "kind": "Good", "metadata": { "name": name }, "spec": spec })
}

fn full() -> Value {
    json!({
        "name": "abc", "number": 1.5, "integer": 3, "any": { "x": [1, 2.0] }, "either": "5%", "map": { "a": 1 },
        "set": ["b", "a"], "list": [{ "k": "1" }], "plain": [{}], "atomic": { "a": "1" },
        "time": "2020-01-01T00:00:00Z", "maybe": null, "rules": { "min": 1, "max": 2 },
        "template": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" }, "foo": 1 }, "unknown": 1,
    })
}

fn accepted() -> RequestScript {
    let [a, b] = install();
    let one = &format!("{GOODS}/a");
    script(
        "values::accepted",
        steps![
            a,
            b,
            post(GOODS, good("a", full())).called("all"),
            get(one).accept(TABLE).called("table"),
            post(
                GOODS,
                good(
                    "n",
                    json!({ "name": "abc", "choice": null, "list": null, "integer": null })
                )
            )
            .called("nulls"),
            post(
                GOODS,
                good("w", json!({ "name": "abc", "integer": 2.0, "number": 2.0 }))
            )
            .called("whole numbers"),
            merge(one, json!({ "spec": { "rules": { "max": 1 } } })).called("smaller"),
            merge(one, json!({ "spec": { "rules": { "max": 3 } } })).called("greater"),
            merge(
                &format!("{one}/status"),
                json!({ "status": { "x": 1 }, "metadata": { "labels": { "a": "b" } } })
            )
            .called("status"),
            merge(one, json!({ "metadata": { "labels": { "a": "b" } } })).called("labels"),
            merge(one, json!({ "metadata": { "generation": 99 } })).called("generation"),
            get(one),
            get(&format!("{one}/scale")),
            get(&format!("{GOODS}?fieldSelector=spec.name%3Dabc")),
            strategic(one, json!({})).called("strategic"),
            other("DELETE", GOODS).only("/kind").called("all go"),
            get(GOODS).called("none left"),
        ],
    )
}

fn refused() -> RequestScript {
    let [a, b] = install();
    let mut steps = steps![a, b];
    for (field, value) in [
        ("name", json!("a")),
        ("name", json!("abcde")),
        ("name", json!("AB")),
        ("name", json!("")),
        ("name", json!(1)),
        ("number", json!(1)),
        ("number", json!(10)),
        ("number", json!("1")),
        ("number", json!(-3)),
        ("integer", json!(1.5)),
        ("integer", json!(3_000_000_000_u32)),
        ("choice", json!("c")),
        ("choice", json!(1)),
        ("either", json!(true)),
        ("either", json!(1.5)),
        ("either", json!({})),
        ("map", json!({})),
        ("map", json!({ "a": 1, "b": 2, "c": 3 })),
        ("map", json!({ "a": "x" })),
        ("map", json!([])),
        ("set", json!([])),
        ("set", json!(["a", "a"])),
        ("set", json!(["a", "b", "c", "d"])),
        ("set", json!([1])),
        ("list", json!([{ "k": "1" }, { "k": "1" }])),
        ("list", json!([{}])),
        ("list", json!([{ "k": 1 }])),
        ("list", json!({})),
        ("time", json!("yesterday")),
        ("time", json!("2020-01-01")),
        ("uuid", json!("x")),
        ("ip", json!("1.2.3")),
        ("duration", json!("5 apples")),
        ("bytes", json!("***")),
        ("not", json!("x")),
        ("one", json!(4)),
        ("any-of", json!(4)),
        ("rules", json!({ "min": 3, "max": 2 })),
        ("rules", json!({ "min": 13 })),
        ("template", json!({ "kind": "Pod" })),
        ("template", json!({ "apiVersion": "v1" })),
        ("template", json!("x")),
    ] {
        let label = format!("{field} {value}");
        let object = good("x", json!({ "name": "abc", field: value }));
        steps.push(post(GOODS, object).called(&label).into());
        // Each accepted object is deleted before the next one.
        let gone = format!("{label}, off");
        let off = delete(&format!("{GOODS}/x")).called(&gone).only("/kind");
        steps.push(off.into());
    }
    script("values::refused", steps)
}

fn owned() -> RequestScript {
    let [a, b] = install();
    let one = |manager: &str| format!("{GOODS}/a?fieldManager={manager}");
    let item = |value: u32| json!([{ "k": "2", "v": value }]);
    script("values::owned", steps![
        a, b,
        post(GOODS, good("a", full())).called("all"),
        apply(&one("one"), good("a", json!({ "name": "abc", "set": ["c"], "list": item(1), "plain": [{ "k": "x" }], "atomic": { "b": "2" } }))).called("conflicts"),
        apply(&one("one"), good("a", json!({ "name": "abc", "set": ["c"], "list": item(1) }))).called("applies"),
        apply(&one("two"), good("a", json!({ "list": item(2) }))).called("conflict in an item"),
        apply(&format!("{}&force=true", one("two")), good("a", json!({ "list": item(2), "map": { "z": 1 } }))).called("force"),
        apply(&one("one"), good("a", json!({ "name": "abc" }))).called("gives up"),
        apply(&one("two"), good("a", json!({ "atomic": { "a": "1" } }))).called("shares an atomic"),
        apply(&format!("{GOODS}/new?fieldManager=two"), good("new", json!({}))).called("invalid and new"),
        get(&format!("{GOODS}/a")),
    ])
}
