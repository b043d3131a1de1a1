//! `crossdesk-cli view`: the picture for a person, in the terminal or in a window.

mod screen;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
#[cfg(target_os = "linux")]
use crossdesk_core::signaling::{DeviceId, Password};
use crossdesk_pipelines::plan::source::{Credentials, SourceSpec};
use crossdesk_pipelines::receive::DecoderChoice;
use crossdesk_platform::secret::Inherited;

use crate::config::Environment;
use crate::terminal;
#[cfg(target_os = "linux")]
use crate::transport::remote::Target;

use super::server::ServerArgs;
use super::{Exit, Printer};

use screen::{StillScreen, TerminalScreen, WindowScreen};
use watch::{End, Origin, Stream, Watch};

const MORE: &str = "\
Examples:
  crossdesk-cli view --source test:
  crossdesk-cli view --source 'test:?size=3840x2160&fps=60&pattern=desktop' --window
  crossdesk-cli view --source 'file:recording.mp4?once'
  crossdesk-cli view --source rtsp://camera/live

  # A remote desktop, found through a signaling server; the password is asked for.
  crossdesk-cli view 123456789 --server signal.example.net

In the terminal, q, Esc or Ctrl-C ends it and the picture follows the size of the terminal. With --window, closing the window ends it too. Where nothing can be drawn (standard output is no terminal, or TERM is dumb), a few pictures are written as text. A network source that is lost is tried again until it comes back.";

/// Pictures written where nothing can be drawn.
const PICTURES_AS_TEXT: u32 = 3;

/// Pictures passed over between two that are written, so that the second differs to the eye.
const PICTURES_APART: u32 = 15;

/// Lines of a picture that is written as text: as many as fit a page beside two others.
const ROWS_AS_TEXT: u16 = 24;

/// How long the next picture may take: a network source that needs a reconnect has long said so by then.
const PATIENCE: Duration = Duration::from_secs(20);

/// Watch a remote desktop or a stream in this terminal or in a window
///
/// A desktop is named by its nine digits and found through a signaling server; it is watched, not controlled.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// The remote desktop to watch: the nine digits that its `host` shows; spaces do not matter
    #[arg(
        value_name = "ID",
        required_unless_present = "source",
        conflicts_with = "source",
        requires = "server"
    )]
    device: Option<String>,

    /// A stream to watch: file:PATH, rtsp://…, rtp://…, sdp:PATH, test:
    #[arg(long, value_name = "URI")]
    source: Option<String>,

    #[command(flatten)]
    server: ServerArgs,

    /// Which display of the remote desktop, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63), conflicts_with = "source")]
    display: u8,

    /// Open a window instead of drawing in the terminal
    #[arg(long)]
    window: bool,

    /// `auto` prefers hardware, `software` never touches it, a name forces one decoder
    #[arg(long, value_name = "NAME", default_value = "auto")]
    decoder: DecoderChoice,

    /// Read the password, for a stream also `user:password`, from inherited descriptor N; never from an address
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..=65535))]
    password_fd: Option<i32>,
}

/// Shows the stream until it ends or the person has seen enough.
pub fn run(args: &Args, printer: &Printer, environment: &Environment) -> anyhow::Result<Exit> {
    // Before anything opens a descriptor of its own under the same number.
    let password = args.password_fd.map(Inherited::claim).transpose()?;
    let origin = match &args.source {
        Some(source) => {
            let spec = SourceSpec::parse(source).context("--source")?;
            Origin::Source(spec, password.map(read_credentials).transpose()?.flatten())
        }
        None => match device(args, password)? {
            Some(origin) => origin,
            None => return Ok(Exit::Failed),
        },
    };
    let stream = Stream {
        origin,
        decoder: args.decoder.clone(),
    };
    let ended = if args.window {
        in_window(stream, printer)?
    } else if let Some(reason) = undrawable(printer.is_terminal(), environment.term.as_deref()) {
        as_text(stream, printer, reason)?
    } else {
        in_terminal(stream, environment)?
    };
    match ended {
        None | Some(End::Finished) => Ok(Exit::Success),
        Some(End::Failed(reason)) => anyhow::bail!("{reason}"),
    }
}

/// The remote desktop that is named; `None` when the person does not give its password.
#[cfg(target_os = "linux")]
fn device(args: &Args, password: Option<Inherited>) -> anyhow::Result<Option<Origin>> {
    let named = args.device.as_deref().unwrap_or_default();
    let digits: String = named
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .collect();
    let device = DeviceId::parse(&digits)
        .with_context(|| format!("{named:?} is no id: nine digits, the first of which is not 0"))?;
    let server = args
        .server
        .address()?
        .context("name the signaling server with --server")?;
    let password = match password {
        Some(inherited) => inherited.read()?.expose().to_owned(),
        None => match terminal::ask_password(&format!("password of {device}")) {
            Ok(Some(typed)) => typed,
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotConnected => {
                anyhow::bail!(
                    "nobody can be asked for the password without a terminal; hand it over with --password-fd"
                )
            }
            Err(error) => return Err(error).context("the password cannot be asked for"),
        },
    };
    Ok(Some(Origin::Device(Target {
        server,
        device,
        password: Password::new(password),
        display: args.display,
    })))
}

#[cfg(not(target_os = "linux"))]
fn device(_: &Args, _: Option<Inherited>) -> anyhow::Result<Option<Origin>> {
    anyhow::bail!("this system's sockets are not supported yet; watch a stream with --source")
}

fn read_credentials(password: Inherited) -> anyhow::Result<Option<Credentials>> {
    Ok(Credentials::from_descriptor(
        password.read()?.expose().as_bytes(),
    )?)
}

/// Why no picture can be drawn on standard output; `None` when one can.
fn undrawable(terminal: bool, term: Option<&str>) -> Option<&'static str> {
    match term {
        _ if !terminal => Some("standard output is no terminal"),
        Some("dumb") => Some("this terminal cannot place its cursor (TERM=dumb)"),
        // Windows has no TERM, and its terminals can.
        None if !cfg!(windows) => Some("TERM does not say what this terminal can do"),
        _ => None,
    }
}

/// What is watched, for the status line, which has the size of the pictures beside it.
fn title(origin: &Origin) -> String {
    match origin {
        Origin::Source(SourceSpec::Test(_), _) => "generated desktop".to_owned(),
        Origin::Source(spec, _) => spec.to_string(),
        #[cfg(target_os = "linux")]
        Origin::Device(target) => target.device.to_string(),
    }
}

/// `None` means that the person ended it.
fn in_terminal(stream: Stream, environment: &Environment) -> anyhow::Result<Option<End>> {
    let title = title(&stream.origin);
    let screen = Arc::new(TerminalScreen::default());
    let watch = Watch::start(stream, Arc::clone(&screen) as _)?;
    let options = terminal::Options {
        depth: depth(environment),
        title,
    };
    let reason = terminal::run(&screen.feed, &options).context("cannot draw on this terminal")?;
    drop(watch);
    Ok(match reason {
        terminal::ExitReason::Quit | terminal::ExitReason::Signal => None,
        terminal::ExitReason::Ended(_) => screen.ended(),
    })
}

fn in_window(stream: Stream, printer: &Printer) -> anyhow::Result<Option<End>> {
    let display = crossdesk_platform::look().display;
    anyhow::ensure!(
        display.usable(),
        "no display to open a window on (display server: {display}); leave --window out to watch in the terminal"
    );
    let signals = terminal::EndSignals::watch().context("signals cannot be watched")?;
    let screen = Arc::new(WindowScreen::open(&title(&stream.origin), *printer)?);
    let watch = Watch::start(stream, Arc::clone(&screen) as _)?;
    let ended = screen.run(&signals);
    drop(watch);
    Ok(ended)
}

fn as_text(stream: Stream, printer: &Printer, reason: &str) -> anyhow::Result<Option<End>> {
    let signals = terminal::EndSignals::watch().context("signals cannot be watched")?;
    printer.note(&format!(
        "{reason}: {PICTURES_AS_TEXT} pictures are written as text instead"
    ));
    let screen = Arc::new(StillScreen::new(*printer));
    let _watch = Watch::start(stream, Arc::clone(&screen) as _)?;
    let mut sequence = 1;
    for _ in 0..PICTURES_AS_TEXT {
        let picture = match screen.next(sequence, PATIENCE, || signals.asked()) {
            Ok(picture) => picture,
            Err(end) => return Ok(Some(end)),
        };
        sequence = picture.sequence + PICTURES_APART;
        let (number, size) = (picture.sequence, picture.size);
        let title = format!("picture {number}, {}x{}\n", size.width, size.height);
        let columns = u16::try_from(printer.width()).unwrap_or(u16::MAX);
        let text = terminal::still(&picture, columns, ROWS_AS_TEXT)?;
        printer.data(format!("{title}{text}").as_bytes())?;
    }
    Ok(Some(End::Finished))
}

/// What the environment says about colours.
fn depth(environment: &Environment) -> terminal::ColorDepth {
    terminal::ColorDepth::detect(&terminal::TerminalEnv {
        colorterm: environment.color_term.clone(),
        term: environment.term.clone(),
        no_color: environment.no_color,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_drawn_on_terminals_that_can_place_a_cursor() {
        assert_eq!(undrawable(true, Some("xterm-256color")), None);
        for (terminal, term, word) in [
            (false, Some("xterm"), "no terminal"),
            (true, Some("dumb"), "TERM=dumb"),
            (true, None, "TERM"),
        ] {
            let reason = undrawable(terminal, term);
            assert!(reason.is_some_and(|reason| reason.contains(word)), "{reason:?}");
        }
    }

    #[test]
    fn the_size_of_the_generated_desktop_is_not_in_its_title() {
        let spec = |text| Origin::Source(SourceSpec::parse(text).unwrap(), None);
        assert_eq!(title(&spec("test:?size=640x360")), "generated desktop");
        assert_eq!(title(&spec("rtsp://cam/live?key=x")), "rtsp://cam/live");
    }
}
