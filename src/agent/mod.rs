//! The automation protocol over standard input and output.

mod capture;
mod event;
mod facts;
mod input;
mod media;
mod output;
mod owner;
mod start;
mod viewers;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context, bail};
use crossdesk_core::automation::{ExitReason, Session, SessionConfig};
use crossdesk_pipelines::plan::source::SourceSpec;
use crossdesk_pipelines::receive::DecoderChoice;
use crossdesk_platform::secret::Inherited;
use crossdesk_platform::stdio::{self, Waiting};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::capture::CaptureWorker;
use self::event::AgentEvent;
use self::input::read_lines;
use self::output::Writer;
use self::owner::{Owner, Parts};
use self::start::{Starter, StarterConfig};
use self::viewers::Viewers;
use crate::config::Environment;
use crate::log;
use crate::transport::signaling::ServerAddress;
use crate::video::{VideoConfig, VideoService};

/// Everything the command line and the environment say about one agent process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// Inherited descriptor the password is read from, ended by a newline or end of file.
    pub password_fd: Option<i32>,
    /// True when the loopback WebSocket listener is to be started.
    pub video_ws: bool,
    /// Where pictures come from, as typed after `--source`; `None` means the remote transport.
    pub source: Option<String>,
    /// The signaling server through which a remote host is found.
    pub server: Option<ServerAddress>,
    /// Name of the stream quality preset.
    pub quality: Option<String>,
    /// Directory for diagnostic logs; it must exist.
    pub log_dir: Option<PathBuf>,
    /// Decoders to use whatever `connect` asks for, for diagnosis.
    pub decoder: Option<DecoderChoice>,
}

/// Name of the log file inside `--log-dir`.
const LOG_FILE: &str = "agent.log";

/// Request lines read ahead of the loop. More would let a parent that never reads replies fill the memory.
const LINE_CREDITS: usize = 8;
/// Events waiting for the loop: streaming threads report a handful per second, the loop empties it at once.
const INBOX: usize = 256;

/// Speaks the automation protocol until the parent hangs up, a signal arrives or `exit` is asked for.
///
/// # Errors
/// When the agent cannot start, or when nobody reads its output any more; the text says what to do about it.
pub fn run(options: &AgentOptions, environment: &Environment) -> anyhow::Result<()> {
    // First of all: what the parent handed down must be claimed before anything else opens a descriptor.
    let stdio =
        stdio::take_over(options.password_fd).context("standard output cannot be kept for replies")?;
    let log_file = options.log_dir.as_ref().map(|directory| directory.join(LOG_FILE));
    log::start(log_file.as_deref(), environment.log_filter.as_deref());
    let source = options
        .source
        .as_deref()
        .map(SourceSpec::parse)
        .transpose()
        .context("--source")?;
    let (events, inbox) = sync_channel(INBOX);
    let (credits, granted) = sync_channel(LINE_CREDITS);
    for _ in 0..LINE_CREDITS {
        credits.try_send(()).expect("the channel has that many places");
    }
    watch_signals(events.clone())?;
    spawn("gstreamer", events.clone(), |events| {
        let ready = crossdesk_pipelines::gst::init().map_err(|error| error.to_string());
        tell(events, AgentEvent::MediaReady(ready));
    })?;
    let password_expected = stdio.password.is_some();
    if let Some(claimed) = stdio.password {
        spawn("password", events.clone(), move |events| {
            tell(events, AgentEvent::Password(claimed.and_then(Inherited::read)));
        })?;
    }
    let viewers = options.video_ws.then(|| listen(&events)).transpose()?;
    let told = events.clone();
    let parts = Parts {
        session: Session::new(SessionConfig {
            video_ws: options.video_ws,
            direct_source: source.is_some(),
        }),
        inbox,
        credits,
        writer: Writer::start(stdio.output, move |written| {
            tell(&told, AgentEvent::Written(written));
        })?,
        captures: CaptureWorker::start(events.clone())?,
        viewers,
        starter: Starter::new(StarterConfig {
            source,
            server: options.server.clone(),
            decoder: options.decoder.clone(),
            password_expected,
        }),
        events: events.clone(),
    };
    spawn("stdin", events, move |events| read_stdin(events, &granted))?;
    match Owner::new(parts).run() {
        ExitReason::OutputBlocked => {
            bail!("replies cannot be written: standard output is closed, or nobody read it for ten seconds")
        }
        ExitReason::Requested | ExitReason::InputClosed | ExitReason::Signal => Ok(()),
    }
}

fn read_stdin(events: &SyncSender<AgentEvent>, granted: &Receiver<()>) {
    read_lines(Waiting(std::io::stdin().lock()), |line| {
        // The loop ends by ending the process; until then it returns every credit.
        if granted.recv().is_ok() {
            tell(events, AgentEvent::Line(line));
        }
    });
    tell(events, AgentEvent::InputClosed);
}

fn listen(events: &SyncSender<AgentEvent>) -> anyhow::Result<Viewers> {
    let events = events.clone();
    let config = VideoConfig {
        // Full means that the loop has much to do; the viewer asks again a second later.
        keyframe_wanted: Box::new(move || drop(events.try_send(AgentEvent::KeyframeWanted))),
    };
    let service = VideoService::start(config).context("the loopback video listener cannot start")?;
    Ok(Viewers::new(service))
}

fn watch_signals(events: SyncSender<AgentEvent>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("signals cannot be watched")?;
    spawn("signals", events, move |events| {
        for _ in &mut signals {
            tell(events, AgentEvent::Signal);
        }
    })
}

fn spawn(
    name: &str,
    events: SyncSender<AgentEvent>,
    work: impl FnOnce(&SyncSender<AgentEvent>) + Send + 'static,
) -> anyhow::Result<()> {
    let started = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&events));
    started.with_context(|| format!("the {name} thread cannot start"))?;
    Ok(())
}

/// The loop is gone only when the process is about to end: then nobody is left to tell.
fn tell(events: &SyncSender<AgentEvent>, event: AgentEvent) {
    let _ = events.send(event);
}
