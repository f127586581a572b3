//! The name under which the program runs: `fedrs`, or `kubectl fedrs` as a plugin of kubectl.
//!
//! kubectl finds a plugin by the name of its file. Texts name commands as the user calls them.

use std::{env, ffi::OsString, path::Path};

use clap::{Arg, Command, builder::StyledStr};

/// The name of the file of a plugin.
const PLUGIN_FILE: &str = "kubectl-fedrs";
/// The name of the program in texts, before its subcommands.
const FEDRS: &str = "fedrs ";
/// What a plugin's texts have before it.
const KUBECTL: &str = "kubectl ";

/// The options that say which cluster and which namespace, each followed by its value.
const CONNECTION: [&str; 4] = ["--kubeconfig", "--context", "--namespace", "-n"];

/// How the user calls the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `fedrs`.
    Fedrs,
    /// `kubectl fedrs`.
    Plugin,
}

impl Program {
    /// How this process was called.
    pub(crate) fn current() -> Self {
        let path = env::args_os().next().unwrap_or_default();
        Self::of_file(Path::new(&path))
    }

    fn of_file(path: &Path) -> Self {
        match path.file_stem() {
            Some(name) if name == PLUGIN_FILE => Self::Plugin,
            _ => Self::Fedrs,
        }
    }

    /// `command`, which is that of `fedrs`, with texts for this program.
    pub(crate) fn command(self, command: Command) -> Command {
        if self == Self::Fedrs {
            return command;
        }
        let names = subcommands(&command);
        rename(command.bin_name("kubectl fedrs"), &names)
    }

    /// `text` with the commands in it as the user calls them. `command` is that of `fedrs`.
    pub(crate) fn text(self, text: &str, command: &Command) -> String {
        match self {
            Self::Fedrs => text.to_owned(),
            Self::Plugin => renamed(text, &subcommands(command)),
        }
    }
}

/// `arguments` with the options of a connection behind the subcommand that they are before: kubectl takes them anywhere.
pub(crate) fn with_options_behind(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let mut first: Vec<_> = arguments.by_ref().take(1).collect();
    let mut options = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        let is_alone = CONNECTION.iter().any(|option| text == *option);
        let is_whole = CONNECTION.iter().any(|option| {
            let rest = text.strip_prefix(option);
            rest.is_some_and(|rest| rest.starts_with('=') || !option.starts_with("--"))
        });
        if !is_alone && !is_whole {
            first.push(argument);
            break;
        }
        options.push(argument);
        options.extend(arguments.by_ref().take(usize::from(is_alone)));
    }
    first.into_iter().chain(options).chain(arguments).collect()
}

fn subcommands(command: &Command) -> Vec<String> {
    let names = command.get_subcommands().map(Command::get_name);
    names.map(str::to_owned).collect()
}

/// Renames the commands in all texts of `command` and of those below it.
fn rename(mut command: Command, names: &[String]) -> Command {
    let text = |text: &StyledStr| renamed(&text.to_string(), names);
    if let Some(about) = command.get_about().map(text) {
        command = command.about(about);
    }
    if let Some(about) = command.get_long_about().map(text) {
        command = command.long_about(about);
    }
    if let Some(help) = command.get_after_help().map(text) {
        command = command.after_help(help);
    }
    command
        .mut_args(|arg| rename_arg(arg, names))
        .mut_subcommands(|subcommand| rename(subcommand, names))
}

fn rename_arg(mut arg: Arg, names: &[String]) -> Arg {
    let text = |text: &StyledStr| renamed(&text.to_string(), names);
    if let Some(help) = arg.get_help().map(text) {
        arg = arg.help(help);
    }
    if let Some(help) = arg.get_long_help().map(text) {
        arg = arg.long_help(help);
    }
    arg
}

/// `text` with `kubectl` before each `fedrs` that one of these subcommands follows.
fn renamed(text: &str, names: &[String]) -> String {
    let mut parts = text.split(FEDRS);
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        let is_word =
            !renamed.ends_with(|last: char| last.is_alphanumeric() || "-_./".contains(last));
        let word = rest.split(|c: char| !c.is_ascii_lowercase()).next();
        if is_word && names.iter().any(|name| Some(&**name) == word) {
            renamed.push_str(KUBECTL);
        }
        renamed.push_str(FEDRS);
        renamed.push_str(rest);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_known_by_its_file() {
        for (path, program) in [
            ("fedrs", Program::Fedrs),
            ("/usr/local/bin/fedrs", Program::Fedrs),
            ("kubectl-fedrs", Program::Plugin),
            ("/home/u/.krew/bin/kubectl-fedrs", Program::Plugin),
            ("kubectl-fedrs.exe", Program::Plugin),
            ("", Program::Fedrs),
        ] {
            assert_eq!(Program::of_file(Path::new(path)), program, "{path}");
        }
    }

    #[test]
    fn options_of_the_connection_may_be_before_the_subcommand() {
        for (given, expected) in [
            (
                "fedrs -n shop rollout status web",
                "fedrs rollout -n shop status web",
            ),
            (
                "fedrs --context=a -nshop --kubeconfig f drain -n eu",
                "fedrs drain --context=a -nshop --kubeconfig f -n eu",
            ),
            ("fedrs drain -n shop", "fedrs drain -n shop"),
            ("fedrs --help -n", "fedrs --help -n"),
            ("fedrs -n", "fedrs -n"),
            ("fedrs --namespaces rollout", "fedrs --namespaces rollout"),
            ("fedrs", "fedrs"),
        ] {
            let arguments = with_options_behind(given.split(' ').map(OsString::from));
            let expected: Vec<_> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(arguments, expected, "{given}");
        }
    }

    #[test]
    fn commands_in_texts_are_those_of_the_user() {
        let names = ["rollout".to_owned(), "drain".to_owned()];
        for (text, expected) in [
            (
                "run `fedrs drain eu` to wait",
                "run `kubectl fedrs drain eu` to wait",
            ),
            (
                "  fedrs rollout undo web",
                "  kubectl fedrs rollout undo web",
            ),
            ("source <(fedrs drain)", "source <(kubectl fedrs drain)"),
            (
                "fedrs drain, fedrs drain",
                "kubectl fedrs drain, kubectl fedrs drain",
            ),
            ("the CRDs of fedrs are", "the CRDs of fedrs are"),
            ("deploy/fedrs drain", "deploy/fedrs drain"),
            ("fedrs drains", "fedrs drains"),
            ("", ""),
        ] {
            assert_eq!(renamed(text, &names), expected);
        }
    }
}
