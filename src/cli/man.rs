//! `crossdesk-cli man`: the manual pages, generated from the argument tree.

use std::path::PathBuf;

use anyhow::Context;
use clap_mangen::Man;

use super::{Exit, Printer};

const MORE: &str = "\
Examples:
  crossdesk-cli man | man -l -
  crossdesk-cli man --dir ~/.local/share/man/man1";

/// Print the manual page, or write one page per command.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// Write the pages of all commands to this existing directory
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Prints or writes the pages.
pub fn run(args: &Args, printer: &Printer) -> anyhow::Result<Exit> {
    if let Some(dir) = &args.dir {
        clap_mangen::generate_to(super::command(), dir)
            .with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
    } else {
        let mut page = Vec::new();
        Man::new(super::command()).render(&mut page)?;
        printer.data(&page)?;
    }
    Ok(Exit::Success)
}
