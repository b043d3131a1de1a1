//! What people type: argument trees, one file per subcommand, exit codes and the printer.
//!
//! Parsing only records what was typed. Help, version, completions and the manual page are answered before
//! anything looks at the machine, so they work when GStreamer or a driver is broken.

mod agent;
mod completions;
mod doctor;
mod exit;
#[cfg(target_os = "linux")]
mod host;
mod man;
mod printer;
mod reference;
mod server;
mod signal;
mod table;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crossdesk_pipelines::plan::source::SourceSpecError;

use crate::config::Environment;
pub use exit::Exit;
pub use printer::{Printer, Tone};
pub use reference::reference;

const ABOUT: &str = "See a remote desktop: live H.264, decoded by hardware or software, in a terminal, a window or \
a browser on this machine.";

const LEARN: &str = "\
First steps:
  crossdesk-cli doctor                     check what this machine can decode
  crossdesk-cli view --source test:        watch a generated desktop in this terminal (q ends it)
  crossdesk-cli view --source file:clip.mp4 --window
  crossdesk-cli agent --help               drive it from a program

Data goes to standard output, everything else to standard error. `crossdesk-cli COMMAND --help` explains a command, `crossdesk-cli man` prints the manual page.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "crossdesk-cli", version, about = ABOUT, after_help = LEARN)]
#[command(
    max_term_width = 110,
    subcommand_required = true,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Agent(agent::Args),
    Doctor(doctor::Args),
    View(view::Args),
    #[cfg(target_os = "linux")]
    Host(host::Args),
    Signal(signal::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The argument tree, for everything that is generated from it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let environment = Environment::read();
    let printer = Printer::new(&environment);
    let ended = match cli.command {
        Command::Agent(args) => agent::run(args, &environment),
        Command::Doctor(args) => doctor::run(&args, &printer),
        #[cfg(target_os = "linux")]
        Command::Host(args) => host::run(&args, &printer, &environment),
        Command::Signal(args) => signal::run(&args, &printer, &environment),
        Command::View(args) => view::run(&args, &printer, &environment),
        Command::Completions(args) => completions::run(&args, &printer),
        Command::Man(args) => man::run(&args, &printer),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            printer.error(&error);
            // An address that makes no sense is an argument that makes no sense.
            if error.is::<SourceSpecError>() {
                Exit::Usage.into()
            } else {
                Exit::Failed.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_tree_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_argument_and_command_has_a_sentence_of_help() {
        fn check(command: &clap::Command) {
            assert!(
                command.get_about().is_some(),
                "{} has no help",
                command.get_name()
            );
            for argument in command.get_arguments() {
                let id = argument.get_id();
                assert!(
                    argument.get_help().is_some(),
                    "{}: {id} has no help",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }
}
