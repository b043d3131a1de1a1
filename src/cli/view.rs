//! `crossdesk-cli view`: the picture for a person, in the terminal or in a window.

use crate::config::Environment;

use super::{Exit, Printer};

const MORE: &str = "\
Examples:
  crossdesk-cli view --source test:
  crossdesk-cli view --source 'test:?size=3840x2160&fps=60&pattern=desktop' --window
  crossdesk-cli view --source 'file:recording.mp4?once'
  crossdesk-cli view --source rtsp://camera/live

In the terminal, q, Esc or Ctrl-C ends it and the picture follows the size of the terminal. With --window,
closing the window ends it too.";

/// Watch a stream in this terminal or in a window.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// What to watch: file:PATH, rtsp://…, rtp://…, sdp:PATH, test:
    #[arg(long, value_name = "URI")]
    source: String,

    /// Open a window instead of drawing in the terminal
    #[arg(long)]
    window: bool,

    /// `auto` prefers hardware, `software` never touches it, a name forces one decoder
    #[arg(long, value_name = "NAME", default_value = "auto")]
    decoder: String,
}

/// Shows the stream until it ends or the person has seen enough.
pub fn run(args: &Args, _printer: &Printer, _environment: &Environment) -> anyhow::Result<Exit> {
    let Args {
        source: _,
        window: _,
        decoder: _,
    } = args;
    anyhow::bail!("this build cannot show pictures yet")
}
