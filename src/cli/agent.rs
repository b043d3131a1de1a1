//! `crossdesk-cli agent`: the automation protocol for a parent program.

use std::path::PathBuf;

use crossdesk_pipelines::receive::DecoderChoice;

use crate::agent::AgentOptions;
use crate::config::Environment;

use super::Exit;
use super::server::ServerArgs;

const MORE: &str = "\
The protocol:
  One JSON object per line on standard input, one answer per line on standard output, and nothing else there.
  Diagnostics go to standard error, or to DIR with --log-dir. `docs/protocol.md` has every method.

The password:
  It is never an argument and never part of a request. Write it to a pipe, let the agent inherit the reading end as descriptor N, and end it with a newline or by closing the pipe.

Examples:
  # A session on the generated desktop, by hand; the 9 digits that name it are free to choose.
  crossdesk-cli agent --stdio --source test:
  {\"id\":1,\"method\":\"hello\",\"protocol\":\"crossdesk-automation/1\"}
  {\"id\":2,\"method\":\"connect\",\"device\":\"123456789\",\"mode\":\"observe\",\"display\":0}
  {\"id\":3,\"method\":\"screenshot\",\"timeout_ms\":5000}
  {\"id\":4,\"method\":\"exit\"}

  # A remote desktop, found through a signaling server; its password is in a file that only its owner can read.
  crossdesk-cli agent --stdio --password-fd 3 --server signal.example.net 3<secret

  # An RTSP camera; `user:password` is in a file that only its owner can read.
  crossdesk-cli agent --stdio --password-fd 3 --video-ws --source rtsp://camera/live 3<secret

Ends with status 0 on `exit`, end of input, SIGTERM and SIGINT.";

/// Speak the automation protocol on standard input and output.
///
/// For programs: an agent host starts this process, asks for screenshots and operations over its standard
/// input, and lets browsers on this machine watch over an authenticated loopback WebSocket.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// Talk over standard input and output, the only way there is
    #[arg(long, required = true)]
    stdio: bool,

    /// Read the password from inherited descriptor N, up to a newline or its end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..=65535))]
    password_fd: Option<i32>,

    /// Let local browsers watch over a WebSocket on 127.0.0.1, port chosen by the system
    #[arg(long)]
    video_ws: bool,

    /// Watch this stream instead of a device: file:PATH, rtsp://…, rtp://…, sdp:PATH, test:
    #[arg(long, value_name = "URI")]
    source: Option<String>,

    #[command(flatten)]
    server: ServerArgs,

    /// Without effect yet: a host has its own quality
    #[arg(long, value_name = "PRESET")]
    quality: Option<String>,

    /// Write diagnostics to this existing directory instead of standard error
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    log_dir: Option<PathBuf>,

    /// Use only this decoder, whatever `connect` asks for; `doctor` lists the names
    #[arg(long, value_name = "NAME")]
    decoder: Option<DecoderChoice>,
}

/// Runs the agent until its parent hangs up.
pub fn run(args: Args, environment: &Environment) -> anyhow::Result<Exit> {
    let options = AgentOptions {
        password_fd: args.password_fd,
        video_ws: args.video_ws,
        source: args.source,
        server: args.server.address()?,
        quality: args.quality,
        log_dir: args.log_dir,
        decoder: args.decoder,
    };
    crate::agent::run(&options, environment)?;
    Ok(Exit::Success)
}
