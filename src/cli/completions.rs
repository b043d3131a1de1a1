//! `crossdesk-cli completions`: completion scripts for shells.

use clap_complete::Shell;

use super::{Exit, Printer};

const MORE: &str = "\
Examples:
  crossdesk-cli completions bash > ~/.local/share/bash-completion/completions/crossdesk-cli
  crossdesk-cli completions zsh > ~/.zfunc/_crossdesk-cli
  crossdesk-cli completions fish > ~/.config/fish/completions/crossdesk-cli.fish";

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// The shell that will read the script
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script on standard output.
pub fn run(args: &Args, printer: &Printer) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "crossdesk-cli", &mut script);
    printer.data(&script)?;
    Ok(Exit::Success)
}
