//! `crossdesk-cli signal`: the signaling server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context as _;
use crossdesk_core::signaling::{CREDENTIAL_QUOTA, IceConfig, MAX_CONNECTIONS, Password, Relay, Stun};
use crossdesk_platform::secret::Inherited;

use crate::config::Environment;
use crate::log;
use crate::signal::{CertificateFiles, Listening, SignalOptions};

use super::{Exit, Printer};

/// The port of the public service.
const PORT: u16 = 9099;

/// STUN servers and TURN servers at most, each, as the public protocol has it.
const MAX_ICE_SERVERS: usize = 8;

/// Seconds for which TURN credentials are good.
const TURN_LIFETIME: u64 = 3600;

const MORE: &str = "\
Once it serves, standard output has its address and, with TLS, the SHA-256 fingerprint that clients can pin. Logs go to standard error; CROSSDESK_LOG=warn keeps them quiet.

The certificate:
  Without --cert a self-signed one is made on the first start and kept with its key in the data directory. Every later start uses the same one, so the fingerprint stays.

TURN:
  The secret is the one the TURN server knows as `static-auth-secret`. It is never an argument: write it to a pipe or a file and let the server inherit the reading end as descriptor N.

Examples:
  # On a LAN: hosts and guests connect to port 9099 of this machine and pin the printed fingerprint.
  crossdesk-cli signal

  # With a certificate of your own.
  crossdesk-cli signal --cert fullchain.pem --key privkey.pem

  # With a TURN server for guests behind NAT.
  crossdesk-cli signal --turn turn:turn.example.net --turn-secret-fd 3 3<turn-secret

  # For tests on this machine, without TLS.
  crossdesk-cli signal --listen 127.0.0.1:9099 --plain --data signal-data

  # Is it alive, and what does it carry?
  curl --insecure https://127.0.0.1:9099/healthz
  curl --insecure https://127.0.0.1:9099/metrics

Ends with status 0 on SIGTERM and SIGINT, after telling every client.";

/// Run a signaling server, through which guests find hosts
///
/// Hosts register here and get an id and a password; guests name both and are introduced. Pictures and input never
/// pass through it. It speaks the public CrossDesk signaling, so the public web client works with it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// Listen on this address [default: 0.0.0.0:9099, or 127.0.0.1:9099 with --plain]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Speak ws:// instead of wss://; only on a loopback address
    #[arg(long, conflicts_with_all = ["cert", "key"])]
    plain: bool,

    /// Certificate chain as a PEM file, the server's own certificate first
    #[arg(long, value_name = "FILE", requires = "key", value_hint = clap::ValueHint::FilePath)]
    cert: Option<PathBuf>,

    /// Private key of the certificate as a PEM file
    #[arg(long, value_name = "FILE", requires = "cert", value_hint = clap::ValueHint::FilePath)]
    key: Option<PathBuf>,

    /// Keep devices and a made certificate here [default: crossdesk/signal in the user's state directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data: Option<PathBuf>,

    /// Offer this TURN server, turn:HOST or turn:HOST:PORT, with ?transport=udp or tcp; up to 8 times
    #[arg(long, value_name = "URL", requires = "turn_secret_fd")]
    turn: Vec<Relay>,

    /// Read the secret shared with the TURN servers from inherited descriptor N
    #[arg(long, value_name = "N", requires = "turn", value_parser = clap::value_parser!(i32).range(3..=65535))]
    turn_secret_fd: Option<i32>,

    /// Offer this STUN server beside the TURN servers, stun:HOST or stun:HOST:PORT; up to 8 times
    #[arg(long, value_name = "URL")]
    stun: Vec<Stun>,

    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = MAX_CONNECTIONS)]
    max_connections: usize,

    /// Registrations, logins and password checks one address may cause a minute; more wait their turn
    #[arg(long, value_name = "N", default_value_t = CREDENTIAL_QUOTA, value_parser = clap::value_parser!(u32).range(1..))]
    credential_quota: u32,
}

/// Serves until it is told to stop.
pub fn run(args: &Args, printer: &Printer, environment: &Environment) -> anyhow::Result<Exit> {
    // Before anything opens a descriptor that could be mistaken for the inherited one.
    let secret = args.turn_secret_fd.map(Inherited::claim).transpose();
    let secret = secret
        .and_then(|claimed| claimed.map(Inherited::read).transpose())
        .context("--turn-secret-fd")?;
    if let Some(mistake) = mistake(args) {
        printer.error(&anyhow::anyhow!(mistake));
        return Ok(Exit::Usage);
    }
    log::start(None, environment.log_filter.as_deref());
    let secret = secret.map(|secret| Password::new(secret.expose()));
    let options = options(args, environment, secret)?;
    crate::signal::run(&options, |listening| announce(printer, listening))?;
    Ok(Exit::Success)
}

/// What the argument tree cannot say by itself.
fn mistake(args: &Args) -> Option<&'static str> {
    if args.plain && !listen(args).ip().is_loopback() {
        return Some(
            "--plain sends passwords unencrypted, so it listens on a loopback address only; leave it out to use TLS",
        );
    }
    let many = args.turn.len() > MAX_ICE_SERVERS || args.stun.len() > MAX_ICE_SERVERS;
    many.then_some("--turn and --stun can be given 8 times each")
}

fn listen(args: &Args) -> SocketAddr {
    let address = if args.plain {
        Ipv4Addr::LOCALHOST
    } else {
        Ipv4Addr::UNSPECIFIED
    };
    args.listen
        .unwrap_or_else(|| SocketAddr::new(IpAddr::V4(address), PORT))
}

fn options(
    args: &Args,
    environment: &Environment,
    secret: Option<Password>,
) -> anyhow::Result<SignalOptions> {
    let state = environment.state_home.as_ref();
    let data = args.data.clone();
    let data = data.or_else(|| state.map(|state| state.join("crossdesk").join("signal")));
    let files = args.cert.clone().zip(args.key.clone());
    Ok(SignalOptions {
        listen: listen(args),
        plain: args.plain,
        certificate: files.map(|(certificate, key)| CertificateFiles { certificate, key }),
        data: data.context("there is no home directory to keep data in; name one with --data")?,
        ice: IceConfig {
            stun: args.stun.clone(),
            relays: args.turn.clone(),
            secret,
            lifetime: TURN_LIFETIME,
        },
        max_connections: args.max_connections,
        credential_quota: args.credential_quota,
    })
}

fn announce(printer: &Printer, listening: &Listening) -> io::Result<()> {
    let address = listening.address;
    let text = match &listening.fingerprint {
        None => format!("listening on ws://{address}\n"),
        Some(fingerprint) => format!("listening on wss://{address}\nfingerprint sha256 {fingerprint}\n"),
    };
    printer.data(text.as_bytes())
}
