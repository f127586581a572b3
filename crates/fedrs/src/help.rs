//! The first page of help: commands in the order in which one meets them, in groups.

use std::fmt::Write as _;

use clap::Command;

/// Groups of commands, each with a heading.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Try it, without a cluster", &["demo", "sim", "plan"]),
    ("Set it up", &["crds", "rbac", "controller", "uninstall"]),
    (
        "Members",
        &["join", "cordon", "uncordon", "drain", "unjoin"],
    ),
    ("Understand", &["explain"]),
    ("Others", &["completions", "help"]),
];

/// `command` with a first page that shows its subcommands in groups.
pub(crate) fn grouped(mut command: Command) -> Command {
    // `help` itself is added when it is built.
    command.build();
    let commands = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{commands}\nOptions:\n{{options}}"
    ))
}

fn groups(command: &Command) -> String {
    let width = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .map(|it| it.len());
    let width = width.max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = write!(text, "\n{heading}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = crate::Cli::command();
        command.build();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        all.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(all, grouped);
    }

    #[test]
    fn a_command_is_told_in_a_line() {
        let mut command = crate::Cli::command();
        command.build();
        for line in groups(&command).lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
}
