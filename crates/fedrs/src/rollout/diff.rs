//! `fedrs rollout diff`: what a rollout changes in the template.

use std::process::ExitCode;

use clap::Args;
use fedrs_api::ClusterStatus;
use membership::rollout::{Target, Template, history};
use similar::TextDiff;

use super::name::NameArgs;
use crate::output::{self, Format, print_error};

/// Lines around a change.
const CONTEXT: usize = 3;

/// Show how the pod template changes, as a unified diff
///
/// From the current revision, which all clusters had last, to the spec. The exit status is 0 with and without differences.
#[derive(Args)]
#[command(after_help = "Examples:
  # What does the rollout change?
  fedrs rollout diff web

  # What would an undo to revision 3 change?
  fedrs rollout diff web --revision=4 --to-revision=3")]
pub(super) struct DiffArgs {
    #[command(flatten)]
    pub(super) name: NameArgs,
    #[command(flatten)]
    options: DiffOptions,
}

/// What is compared.
#[derive(Args)]
pub(crate) struct DiffOptions {
    /// Compare with the revision of this number. By default with the current one
    #[arg(long, value_name = "N")]
    pub(crate) revision: Option<i64>,
    /// The revision to compare in place of the spec
    #[arg(long, value_name = "M")]
    pub(crate) to_revision: Option<i64>,
}

pub(super) async fn run(target: Target<'_>, args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let history = history(target).await?;
    let [from, to] = history.compared(args.options.revision, args.options.to_revision)?;
    let text = unified(from, to);
    let status = history.object.status.as_ref();
    let clusters = status.map(|status| &*status.clusters).unwrap_or_default();
    let found = found_templates(clusters);
    if !found.is_empty() {
        let (name, clusters) = (target.name, found.join(", "));
        print_error(format_args!(
            "warning: the clusters {clusters} have a template that no revision has, from before they belonged to {target}, or from \
             another writer. The rollout replaces it, and it is not compared here: in these clusters `kubectl get deployment {name} -o yaml` shows it"
        ));
    } else if text.is_empty() {
        print_error(format_args!("{target}: no differences"));
    }
    Ok(output::print(&text))
}

/// The clusters with pods of a template that no revision has.
fn found_templates(clusters: &[ClusterStatus]) -> Vec<&str> {
    let found = clusters
        .iter()
        .filter(|cluster| cluster.replicas > 0 && cluster.revision.is_none());
    found.map(|cluster| cluster.name.as_str()).collect()
}

/// The unified diff of two templates as YAML; empty if they are equal.
pub(crate) fn unified(from: Template<'_>, to: Template<'_>) -> String {
    let yaml = |template: Template<'_>| Format::Yaml.serialize(template.template);
    let (before, after) = (yaml(from), yaml(to));
    let diff = TextDiff::from_lines(&before, &after);
    let mut unified = diff.unified_diff();
    unified
        .context_radius(CONTEXT)
        .header(&label(from), &label(to));
    unified.to_string()
}

fn label(template: Template<'_>) -> String {
    match template.of {
        Some(revision) => format!("revision {} ({})", revision.revision, revision.name),
        None => "spec.template".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use membership::rollout::{Revision, Users};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_diff_has_the_lines_that_change_with_their_context() {
        let template = |image: &str, limits: &Value| {
            let resources = json!({ "limits": limits });
            json!({
                "metadata": { "labels": { "app": "web", "tier": "front" } },
                "spec": { "containers": [{ "image": image, "name": "web", "resources": resources }] },
            })
        };
        let revision = Revision {
            revision: 3,
            name: "web-0a1b2c3d".to_owned(),
            change_cause: None,
            users: Users::Clusters(Vec::new()),
            data: Value::Null,
            template: template("web:1", &json!({ "cpu": "1" })),
        };
        let from = Template {
            of: Some(&revision),
            template: &revision.template,
        };
        let spec = template("web:2", &json!({ "cpu": "1", "memory": "1Gi" }));
        let to = Template {
            of: None,
            template: &spec,
        };
        insta::assert_snapshot!(unified(from, to));
        assert_eq!(unified(from, from), "");
    }
}
