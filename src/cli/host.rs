//! `crossdesk-cli host`: shares this desktop.

use std::io;
use std::path::PathBuf;

use anyhow::Context as _;
use crossdesk_core::signaling::{PASSWORD_BYTES, Password};
use crossdesk_pipelines::plan::source::SourceSpec;
use crossdesk_platform::secret::Inherited;

use crate::config::Environment;
use crate::host::{Desk, HostOptions, Notice, SourceDesk, X11Desk};
use crate::log;

use super::server::ServerArgs;
use super::{Exit, Printer};

const MORE: &str = "\
Once guests can join, standard output has the id and the password; with --json it has one line, {\"id\":\"…\",\"password\":\"…\"}. Who comes and goes is written to standard error.

The id and the password:
  The signaling server gives them on the first start. They are kept in the data directory, in a file that only its owner can read, one pair for each server, so the id stays. To choose the password yourself, 6 characters, write it to a pipe and let the host inherit the reading end as descriptor N.

Examples:
  # Through a signaling server; if its certificate is self-signed, add --pin and the fingerprint that `signal` prints.
  crossdesk-cli host --server signal.example.net

  # Share another X display, for example a virtual one.
  crossdesk-cli host --server signal.example.net --display :7

  # Share a generated desktop, to try things out on one machine.
  crossdesk-cli signal --plain &
  crossdesk-cli host --server 127.0.0.1 --plain --source test:

Ends with status 0 on SIGTERM and SIGINT, after letting go of every key and telling every guest.";

/// Share this desktop with guests that know its id and password
///
/// `agent` sees and controls it, `view` watches; it speaks what the public CrossDesk web client is documented to speak.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    #[command(flatten)]
    server: ServerArgs,

    /// Share this stream instead of the desktop, without input: file:PATH, rtsp://…, rtp://…, sdp:PATH, test:
    #[arg(long, value_name = "URI")]
    source: Option<String>,

    /// Share this X display instead of the one in DISPLAY
    #[arg(long, value_name = ":N", conflicts_with = "source")]
    display: Option<String>,

    /// Write the id and the password as one line of JSON
    #[arg(long)]
    json: bool,

    /// Read the password that guests need from inherited descriptor N, up to a newline or its end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..=65535))]
    password_fd: Option<i32>,

    /// Let guests see the desktop and nothing more
    #[arg(long)]
    view_only: bool,

    /// End when the first guest has left
    #[arg(long)]
    once: bool,

    /// Keep the id and the password here [default: crossdesk/host in the user's state directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data: Option<PathBuf>,
}

/// Shares the desktop until it is told to stop.
pub fn run(args: &Args, printer: &Printer, environment: &Environment) -> anyhow::Result<Exit> {
    // Before anything opens a descriptor that could be mistaken for the inherited one.
    let password = args.password_fd.map(Inherited::claim).transpose();
    let password = password
        .and_then(|claimed| claimed.map(Inherited::read).transpose())
        .context("--password-fd")?;
    let Some(server) = args.server.address()? else {
        printer.error(&anyhow::anyhow!(
            "name the signaling server with --server; `crossdesk-cli signal` runs one of your own"
        ));
        return Ok(Exit::Usage);
    };
    let password = password.map(|secret| Password::new(secret.expose()));
    if password
        .as_ref()
        .is_some_and(|password| password.expose().len() != PASSWORD_BYTES)
    {
        printer.error(&anyhow::anyhow!(
            "--password-fd: a password has exactly {PASSWORD_BYTES} bytes"
        ));
        return Ok(Exit::Usage);
    }
    log::start(None, environment.log_filter.as_deref());
    let kept = environment
        .state_home
        .as_ref()
        .map(|state| state.join("crossdesk").join("host"));
    let options = HostOptions {
        server,
        data: args
            .data
            .clone()
            .or(kept)
            .context("there is no home directory to keep the id in; name one with --data")?,
        password,
        view_only: args.view_only,
        once: args.once,
    };
    let desk = desk(args)?;
    crate::host::run(options, desk, |notice| tell(&notice, args.json, printer))?;
    Ok(Exit::Success)
}

fn desk(args: &Args) -> anyhow::Result<Box<dyn Desk>> {
    match &args.source {
        Some(source) => Ok(Box::new(SourceDesk::new(
            SourceSpec::parse(source).context("--source")?,
        ))),
        None => {
            let desk = X11Desk::open(args.display.as_deref()).context(
                "this desktop cannot be shared; name an X display with --display :N, or share a stream with --source",
            )?;
            Ok(Box::new(desk))
        }
    }
}

fn tell(notice: &Notice, json: bool, printer: &Printer) -> io::Result<()> {
    match notice {
        Notice::Joinable { id, password } if json => {
            let line = serde_json::json!({ "id": id.to_string(), "password": password.expose() });
            printer.data(format!("{line}\n").as_bytes())
        }
        Notice::Joinable { id, password } => {
            let id = id.to_string();
            let text = format!(
                "id        {} {} {}\npassword  {}\n",
                &id[..3],
                &id[3..6],
                &id[6..],
                password.expose()
            );
            printer.data(text.as_bytes())
        }
        Notice::Connected { guest } => {
            printer.note(&format!("{guest} is connected"));
            Ok(())
        }
        Notice::Left { guest } => {
            printer.note(&format!("{guest} has left"));
            Ok(())
        }
        Notice::Trouble(text) => {
            printer.note(text);
            Ok(())
        }
    }
}
