//! `crossdesk-cli doctor`: what this machine can decode, and the one fix that helps first.

mod advice;
mod bench;
mod report;
mod survey;
mod table;

use std::path::PathBuf;

use super::{Exit, Printer};

const MORE: &str = "\
Every decoder this project knows is tried on short embedded clips, and its pictures are compared:
  proven                  right pictures in time; used automatically
  listed but not usable   installed, but it cannot be opened or stops with an error
  wrong pixels            it decodes to the wrong picture; never used
  too slow                right pictures, but less than 30 a second at 1080p
  missing                 not installed

Examples:
  crossdesk-cli doctor
  crossdesk-cli doctor --json | jq '.candidates[] | {name, verdict, fix}'
  crossdesk-cli doctor --bench recording.mp4

Ends with status 0 when remote viewing works here, 3 when it does not.";

/// Check what this machine can decode and say what to fix first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// Print one JSON object for programs instead of a table
    #[arg(long)]
    json: bool,

    /// Also measure every usable decoder on this H.264 file (raw, MP4 or MKV)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    bench: Option<PathBuf>,
}

/// Looks at the machine and reports.
pub fn run(args: &Args, printer: &Printer) -> anyhow::Result<Exit> {
    let mut report = survey::look();
    if let Some(file) = &args.bench {
        report.bench = Some(bench::measure(file, &report)?);
    }
    let page = if args.json {
        format!("{}\n", serde_json::to_string(&report)?)
    } else {
        table::report(&report, printer)
    };
    printer.data(page.as_bytes())?;
    Ok(if report.remote_viewing {
        Exit::Success
    } else {
        Exit::Machine
    })
}
