//! `fedrs lrs diff`: what a change of the template does to the pods, before it is made (L12).

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Context, bail};
use fedrs_api::{LocalReplicaSet, UpdateMode};
use local_controller::{Change, Patch, TemplateOfPods};
use membership::rollout::{History, Target, Template, history};

use crate::{
    output::{self, print_error},
    rollout::diff::{DiffOptions, unified},
};

pub(super) async fn run(
    target: Target<'_, LocalReplicaSet>,
    options: &DiffOptions,
) -> anyhow::Result<ExitCode> {
    let history = history(target).await?;
    let [from, to] = history.compared(options.revision, options.to_revision)?;
    let [old, new] = [template(&history, from)?, template(&history, to)?];
    let mut text = unified(from, to);
    if text.is_empty() && old == new {
        print_error(format_args!("{target}: no differences"));
        return Ok(ExitCode::SUCCESS);
    }
    let resources = history.object.spec.deployment_strategy.resource_updates;
    text += &effect(&old.change(&new, resources));
    if history.object.spec.update_mode == UpdateMode::Never {
        text += "spec.updateMode is Never: pods stay as they are, and only new ones get the template.\n";
    }
    Ok(output::print(&text))
}

/// The template that pods have.
fn template(
    history: &History<LocalReplicaSet>,
    of: Template<'_>,
) -> anyhow::Result<TemplateOfPods> {
    if let Some(revision) = of.of {
        let template = TemplateOfPods::of_revision(&revision.data);
        return template.with_context(|| {
            let name = &revision.name;
            format!("controllerrevision {name} can't be read: its pods are recreated")
        });
    }
    TemplateOfPods::of_set(&history.object).or_else(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        bail!("the spec is invalid: {}", errors.join("; "))
    })
}

/// What happens to the pods, and why.
fn effect(change: &Change) -> String {
    match change {
        Change::Recreate(fields) => {
            let fields = fields.join(", ");
            format!("Pods are recreated, because these fields change: {fields}\n")
        }
        Change::InPlace(patch) if *patch == Patch::default() => {
            "Pods stay as they are, but for the label of their revision.\n".to_owned()
        }
        Change::InPlace(patch) => {
            let patched = patched(patch).join("; ");
            format!("Pods are updated in place: {patched}\n")
        }
    }
}

/// What is patched in a pod.
fn patched(patch: &Patch) -> Vec<String> {
    let join = |names: Vec<&str>| names.join(", ");
    let keys =
        |map: &BTreeMap<String, Option<String>>| map.keys().cloned().collect::<Vec<_>>().join(", ");
    let tolerations = if patch.tolerations.is_empty() {
        ""
    } else {
        "added"
    };
    let images = patch.images.keys().chain(patch.sidecar_images.keys());
    let images = images.map(String::as_str);
    let parts = [
        (
            "the images, with a restart, of containers",
            join(images.collect()),
        ),
        (
            "CPU and memory, with a restart, of containers",
            join(resized(patch, true)),
        ),
        (
            "CPU and memory, without a restart, of containers",
            join(resized(patch, false)),
        ),
        ("labels", keys(&patch.labels)),
        ("annotations", keys(&patch.annotations)),
        ("tolerations", tolerations.to_owned()),
    ];
    let present = parts.into_iter().filter(|(_, names)| !names.is_empty());
    present
        .map(|(what, names)| format!("{what} {names}"))
        .collect()
}

/// The containers that get other CPU and memory, with a restart or without.
fn resized(patch: &Patch, restarts: bool) -> Vec<&str> {
    let resizes = patch.resizes.iter();
    let of = resizes.filter(|(_, resize)| resize.restarts == restarts);
    of.map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use local_controller::ContainerResize;

    use super::*;

    #[test]
    fn l12_an_effect_names_what_is_patched_or_what_recreates() {
        let image = ("web".to_owned(), "web:2".to_owned());
        let patch = Patch {
            images: [image].into(),
            resizes: [("log", false), ("web", true)]
                .map(|(name, restarts)| {
                    let resize = ContainerResize {
                        restarts,
                        ..ContainerResize::default()
                    };
                    (name.to_owned(), resize)
                })
                .into(),
            labels: [("team".to_owned(), None)].into(),
            tolerations: vec![serde_json::json!({})],
            ..Patch::default()
        };
        assert_eq!(
            effect(&Change::InPlace(patch)),
            "Pods are updated in place: the images, with a restart, of containers web; CPU and memory, with a restart, of containers web; CPU and memory, without a restart, of containers log; labels team; tolerations added\n"
        );
        let fields = ["spec.volumes", "spec.containers[web].env"].map(str::to_owned);
        assert_eq!(
            effect(&Change::Recreate(fields.into())),
            "Pods are recreated, because these fields change: spec.volumes, spec.containers[web].env\n"
        );
    }
}
