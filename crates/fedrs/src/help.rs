//! The first page of help: the commands in groups, in the order in which a user needs them.

use std::fmt::Write as _;

use clap::Command;

/// Groups of commands, each with a heading.
pub(crate) const GROUPS: [(&str, &[&str]); 8] = [
    (
        "Try without a Kubernetes cluster",
        &["demo", "sim", "simulate"],
    ),
    (
        "Installation",
        &[
            "crds",
            "rbac",
            "controller",
            "replica-set-controller",
            "discovery",
            "mcs-controller",
            "uninstall",
        ],
    ),
    (
        "Member clusters",
        &[
            "join",
            "cordon",
            "uncordon",
            "drain",
            "maintenance",
            "unjoin",
        ],
    ),
    (
        "FederatedReplicaSets and FederatedDeployments",
        &["plan", "explain"],
    ),
    ("FederatedDeployments", &["rollout"]),
    ("LocalReplicaSets", &["lrs", "migrate", "migrations"]),
    ("EndpointSets", &["resolve"]),
    ("Other commands", &["completions", "help"]),
];

/// `command` with a first page that shows its subcommands in groups.
pub(crate) fn grouped(mut command: Command) -> Command {
    // Building adds the command `help`.
    command.build();
    let commands = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{commands}\nOptions:\n{{options}}"
    ))
}

fn groups(command: &Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = write!(text, "\n{heading}:\n");
        // A build without the demo has fewer commands.
        for subcommand in names
            .iter()
            .filter_map(|name| command.find_subcommand(name))
        {
            let about = subcommand.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let _ = writeln!(text, "  {:width$}  {about}", subcommand.get_name());
        }
    }
    text
}
