//! `docs/cli.md`, generated from the argument tree, the exit codes and the environment variables.

use std::fmt::Write;

use crate::config::VARIABLES;

use super::Exit;

/// Columns of the help texts in the page; fixed, so that the page does not depend on a terminal.
const HELP_WIDTH: usize = 100;

/// The whole page as Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Command line\n\n\
         Generated from the program; a test fails when it is stale and names the command that renews it.\n",
    );
    let mut command = super::command().term_width(HELP_WIDTH);
    command.build();
    section(&mut page, &mut command, 2);
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .filter(|name| name != "help")
        .collect();
    for name in names {
        if let Some(sub) = command.find_subcommand_mut(&name) {
            section(&mut page, sub, 3);
        }
    }
    tables(&mut page);
    page
}

fn section(page: &mut String, command: &mut clap::Command, level: usize) {
    let title = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.clone().term_width(HELP_WIDTH).render_long_help();
    let help = help.to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    // Writing to a `String` cannot fail.
    let _ = write!(
        page,
        "\n{} `{title}`\n\n```text\n{}\n```\n",
        "#".repeat(level),
        lines.join("\n")
    );
}

fn tables(page: &mut String) {
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (exit, meaning) in Exit::TABLE {
        let _ = writeln!(page, "| {} | {meaning} |", exit.code());
    }
    page.push_str("\n## Environment\n\n| variable | meaning |\n|---|---|\n");
    for (name, meaning) in VARIABLES {
        let _ = writeln!(page, "| `{name}` | {meaning} |");
    }
}
