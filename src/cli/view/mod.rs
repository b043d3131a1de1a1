//! `crossdesk-cli view`: the picture for a person, in the terminal or in a window.

mod origin;
mod screen;
mod watch;

use std::sync::Arc;

use anyhow::Context;
use crossdesk_pipelines::receive::DecoderChoice;
use crossdesk_platform::secret::Inherited;

use crate::config::Environment;
use crate::terminal;

use super::server::ServerArgs;
use super::{Exit, Printer};

use origin::{Origin, parse_device};
use screen::{StillScreen, TerminalScreen, WindowScreen};
use watch::{End, Stream, Watch};

const MORE: &str = "\
The password of a remote desktop is typed when it is asked for, or handed over: write it to a pipe and let this program inherit the reading end as descriptor N (--password-fd).

Examples:
  # A remote desktop, found through a signaling server.
  crossdesk-cli view 123456789 --server signal.example.net

  # Streams.
  crossdesk-cli view --source test:
  crossdesk-cli view --source 'test:?size=3840x2160&fps=60&pattern=desktop' --window
  crossdesk-cli view --source 'file:recording.mp4?once'
  crossdesk-cli view --source rtsp://camera/live

In the terminal, q, Esc or Ctrl-C ends it and the picture follows the size of the terminal. With --window, closing the window ends it too. Where nothing can be drawn (standard output is no terminal, or TERM is dumb), a few pictures are written as text. A network source that is lost is tried again until it comes back; a remote desktop for a minute.";

/// Pictures written where nothing can be drawn.
const PICTURES_AS_TEXT: u32 = 3;

/// Lines of a picture that is written as text: as many as fit a page beside two others.
const ROWS_AS_TEXT: u16 = 24;

/// Watch a remote desktop or a stream in this terminal or in a window
///
/// A desktop is named by its nine digits and found through a signaling server; it is watched, not controlled.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE)]
pub struct Args {
    /// The remote desktop to watch: the nine digits that its `host` shows; spaces do not matter
    #[arg(value_name = "ID", requires = "server", required_unless_present = "source")]
    device: Option<String>,

    /// A stream to watch instead: file:PATH, rtsp://…, rtp://…, sdp:PATH, test:
    #[arg(long, value_name = "URI", conflicts_with_all = ["device", "server"])]
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

/// Shows what was asked for until it ends or the person has seen enough.
pub fn run(args: &Args, printer: &Printer, environment: &Environment) -> anyhow::Result<Exit> {
    // Before anything opens a descriptor of its own under the same number.
    let password = args.password_fd.map(Inherited::claim).transpose()?;
    let origin = match (&args.device, &args.source) {
        (Some(device), _) => Origin::device(
            parse_device(device)?,
            args.display,
            &args.server,
            password,
            printer,
        )?,
        (None, Some(source)) => Some(Origin::source(source, password)?),
        (None, None) => anyhow::bail!("name a device or a stream (--source)"),
    };
    let Some(origin) = origin else {
        return Ok(Exit::Success);
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
        Some(End::Left(reason)) => {
            printer.note(&reason);
            Ok(Exit::Success)
        }
        Some(End::Failed(reason)) => anyhow::bail!("{reason}"),
    }
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

/// `None` means that the person ended it.
fn in_terminal(stream: Stream, environment: &Environment) -> anyhow::Result<Option<End>> {
    let title = stream.origin.title();
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
    let screen = Arc::new(WindowScreen::open(&stream.origin.title(), *printer)?);
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
    let pace = stream.origin.pace();
    let _watch = Watch::start(stream, Arc::clone(&screen) as _)?;
    let mut sequence = 1;
    for _ in 0..PICTURES_AS_TEXT {
        let picture = match screen.next(sequence, pace.patience, || signals.asked()) {
            Ok(picture) => picture,
            Err(end) => return Ok(Some(end)),
        };
        sequence = picture.sequence + pace.apart;
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
}
