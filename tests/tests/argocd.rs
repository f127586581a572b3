//! The health checks in `deploy/argocd`, run over recorded objects as Argo CD runs them.

#![expect(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use fedrs_tests::recorded::ALL;
use mlua::{Lua, LuaOptions, StdLib, Table};
use serde_json::Value;

/// The directory of the health checks.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/argocd")
}

/// The script for objects of a kind.
fn script(kind: &str) -> PathBuf {
    directory().join(format!("fedrs.dev/{kind}/health.lua"))
}

/// Runs the script for an object's kind: health and message.
fn health(object: &Value) -> mlua::Result<(String, String)> {
    // Argo CD opens no string or math library for health checks.
    let lua = Lua::new_with(StdLib::TABLE, LuaOptions::default())?;
    lua.globals().set("obj", to_lua(&lua, object)?)?;
    let script = script(object["kind"].as_str().unwrap());
    let health: Table = lua.load(fs::read_to_string(script)?).eval()?;
    Ok((health.get("status")?, health.get("message")?))
}

fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    Ok(match value {
        Value::Null => mlua::Value::Nil,
        Value::Bool(value) => mlua::Value::Boolean(*value),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap()),
        Value::String(text) => mlua::Value::String(lua.create_string(text)?),
        Value::Array(items) => {
            let items: mlua::Result<Vec<_>> = items.iter().map(|item| to_lua(lua, item)).collect();
            mlua::Value::Table(lua.create_sequence_from(items?)?)
        }
        Value::Object(fields) => {
            let table = lua.create_table()?;
            for (name, field) in fields {
                table.set(name.as_str(), to_lua(lua, field)?)?;
            }
            mlua::Value::Table(table)
        }
    })
}

#[test]
fn each_recorded_object_has_its_health_and_a_message() {
    for recorded in ALL {
        let object = recorded.object();
        let Some(expected) = recorded.argocd else {
            // Argo CD itself shows an object that is being deleted as Progressing.
            assert!(object["metadata"]["deletionTimestamp"].is_string());
            continue;
        };
        let (health, message) = health(&object).unwrap();
        assert_eq!(health, expected, "{}: {message}", recorded.name);
        assert!(!message.is_empty(), "{}", recorded.name);
    }
}

#[test]
fn an_object_without_a_status_is_progressing() {
    for name in ["set-ready", "deployment-ready", "member-ready"] {
        let recorded = fedrs_tests::recorded::Recorded::named(name).unwrap();
        let mut object = recorded.object();
        object.as_object_mut().unwrap().remove("status");
        assert_eq!(health(&object).unwrap().0, "Progressing", "{name}");
    }
}

#[test]
fn the_component_and_the_readme_name_each_script() {
    let component = fs::read_to_string(directory().join("kustomization.yaml")).unwrap();
    let readme = fs::read_to_string(directory().join("README.md")).unwrap();
    for kind in [
        "FederatedDeployment",
        "FederatedReplicaSet",
        "MemberCluster",
    ] {
        assert!(script(kind).is_file(), "{kind}");
        let entry = format!("resource.customizations.health.fedrs.dev_{kind}=");
        let path = format!("fedrs.dev/{kind}/health.lua");
        assert!(component.contains(&format!("{entry}{path}")), "{kind}");
        assert!(
            readme.contains(&format!("{entry}deploy/argocd/{path}")),
            "{kind}"
        );
    }
}
