//! A recording, looped or once, paced by its own timestamps.
//!
//! One thread reads a few access units ahead, this one delivers each when it is due. A round is a new
//! pipeline: it starts like the first one did whatever state damage left the last one in, and reading ahead
//! hides the few milliseconds that takes.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::error::ErrorCode;
use gst::prelude::*;
use gst_app::AppSink;

use super::elements::{self, Pipeline};
use super::port::{Port, Wake};
use crate::clock;
use crate::plan::source::sniff::{self, Container};
use crate::plan::source::timeline::{DecodeClock, Stamp, Timeline};
use crate::plan::source::{FileSource, SourceFailure};

/// Access units read ahead: an eighth of a second at 60 a second, more than a new round takes to start.
const READ_AHEAD: usize = 8;
/// How often a waiting thread looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(50);
/// A file that yields nothing for this long lies on storage that hangs, or is damage from end to end.
const SILENCE: Duration = Duration::from_secs(5);

/// One access unit with its timing.
type Timed = (Bytes, bool, Stamp);

enum Item {
    Unit(Timed),
    End,
    Failed(SourceFailure),
}

/// Plays `file` until it ends or `port` is stopped.
pub(super) fn run(file: FileSource, port: &Arc<Port>) -> Result<(), SourceFailure> {
    let (send, items) = sync_channel(READ_AHEAD);
    let reader = Reader {
        port: Arc::clone(port),
        send,
        stopped: false,
    };
    let thread = thread::Builder::new().name("source-read".to_owned());
    let reading = thread.spawn(move || reader.run(&file));
    let reading = reading.map_err(|error| {
        SourceFailure::passing(
            ErrorCode::SourceUnreachable,
            format!("no thread to read the file: {error}"),
        )
    })?;
    let result = pace(&items, port);
    drop(items);
    // A reader that hangs in the file system must not keep this thread: it ends when the system lets go.
    if !matches!(&result, Err(failure) if failure.code == ErrorCode::SourceStalled) {
        let _ = reading.join();
    }
    result
}

fn pace(items: &Receiver<Item>, port: &Port) -> Result<(), SourceFailure> {
    let mut timeline = Timeline::default();
    while let Some(item) = next(items, port)? {
        let (data, keyframe, stamp) = match item {
            Item::Unit(timed) => timed,
            Item::End => {
                port.end();
                return Ok(());
            }
            Item::Failed(failure) => return Err(failure),
        };
        let due = timeline.schedule(clock::now(), stamp);
        loop {
            match port.wait_until(due) {
                Wake::Stop => return Ok(()),
                // A recording has its keyframes where it has them.
                Wake::Keyframe => {}
                Wake::Time => break,
            }
        }
        port.unit(data, keyframe);
    }
    Ok(())
}

/// The next item; `None` when the source is to stop.
fn next(items: &Receiver<Item>, port: &Port) -> Result<Option<Item>, SourceFailure> {
    let limit = clock::now() + SILENCE;
    loop {
        match items.recv_timeout(PATIENCE) {
            Ok(item) => return Ok(Some(item)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if port.stopped() => return Ok(None),
            Err(RecvTimeoutError::Timeout) if clock::now() >= limit => {
                let reason = "reading the file gave no access unit for 5 s";
                return Err(SourceFailure::passing(ErrorCode::SourceStalled, reason));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

struct Reader {
    port: Arc<Port>,
    send: SyncSender<Item>,
    stopped: bool,
}

impl Reader {
    fn run(mut self, file: &FileSource) {
        let last = match self.rounds(file) {
            Ok(()) => Item::End,
            Err(failure) => Item::Failed(failure),
        };
        // Nobody listens any more when the pacer has stopped.
        let _ = self.send.send(last);
    }

    fn rounds(&mut self, file: &FileSource) -> Result<(), SourceFailure> {
        let (path, container) = open(&file.candidates)?;
        loop {
            let mut round = Round::start(&path, container)?;
            let (units, trouble) = self.round(&mut round);
            if self.stopped {
                return Ok(());
            }
            match trouble {
                Some(failure) if units == 0 => return Err(failure),
                Some(failure) => {
                    tracing::warn!(reason = failure.reason, "a recording is damaged; playing on");
                }
                None if units == 0 => return Err(no_h264("no access unit was found")),
                None => {}
            }
            if file.once {
                return Ok(());
            }
        }
    }

    /// Reads one round to its end; gives the number of access units and what cut it short.
    fn round(&mut self, round: &mut Round) -> (u64, Option<SourceFailure>) {
        let mut units = 0;
        let mut clock = DecodeClock::default();
        let trouble = loop {
            if self.stopped || self.port.stopped() {
                self.stopped = true;
                break None;
            }
            match round.pull() {
                Pulled::Nothing => {}
                Pulled::End(trouble) => break trouble,
                Pulled::Unit(timed, presentation) => {
                    let (timed, reordered) = match presentation {
                        Some(time) => (clock.push(timed, time), true),
                        None => (Some((timed, Duration::ZERO)), false),
                    };
                    if let Some((timed, time)) = timed {
                        self.unit(&mut units, timed, reordered.then_some(time));
                    }
                }
            }
        };
        while let Some((timed, time)) = clock.pop() {
            self.unit(&mut units, timed, Some(time));
        }
        (units, trouble)
    }

    fn unit(&mut self, units: &mut u64, timed: Timed, decode: Option<Duration>) {
        let (data, keyframe, stamp) = timed;
        let stamp = Stamp {
            decode: decode.or(stamp.decode),
            round_start: *units == 0,
            ..stamp
        };
        *units += 1;
        self.stopped |= self.send.send(Item::Unit((data, keyframe, stamp))).is_err();
    }
}

fn no_h264(what: &str) -> SourceFailure {
    SourceFailure::lasting(
        ErrorCode::SourceInvalid,
        format!("the file holds no H.264: {what}"),
    )
}

/// The first name that exists, with its container.
fn open(candidates: &[PathBuf]) -> Result<(PathBuf, Container), SourceFailure> {
    let (path, head) = read_head(candidates, sniff::HEAD_BYTES)?;
    if head.is_empty() {
        return Err(no_h264("it is empty"));
    }
    let container = sniff::container(&head).map_err(no_h264)?;
    Ok((path, container))
}

/// The first `limit` bytes of the first name that exists and is a regular file.
pub(super) fn read_head(candidates: &[PathBuf], limit: usize) -> Result<(PathBuf, Vec<u8>), SourceFailure> {
    let path = candidates
        .iter()
        .find(|path| path.exists())
        .or(candidates.first());
    let path = path.ok_or_else(|| elements::broken("a file source without a name"))?;
    let unreadable = |error: std::io::Error| {
        let reason = match error.kind() {
            ErrorKind::NotFound => format!("there is no file {}", path.display()),
            _ => format!("{} cannot be read: {error}", path.display()),
        };
        SourceFailure::lasting(ErrorCode::SourceUnreachable, reason)
    };
    // Opening a pipe or a device may block for ever, and neither can be played twice.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        let reason = format!("{} is not a regular file", path.display());
        return Err(SourceFailure::lasting(ErrorCode::SourceInvalid, reason));
    }
    let mut head = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    file.take(limit).read_to_end(&mut head).map_err(unreadable)?;
    Ok((path.clone(), head))
}

enum Pulled {
    Nothing,
    /// With the presentation time when that is the only time known.
    Unit(Timed, Option<Duration>),
    End(Option<SourceFailure>),
}

/// One pass over the file, as fast as its reader takes it.
struct Round {
    sink: AppSink,
    /// Names the codec when a container holds no H.264.
    foreign: Arc<OnceLock<String>>,
    pipeline: Pipeline,
}

impl Round {
    fn start(path: &Path, container: Container) -> Result<Self, SourceFailure> {
        let pipeline = gst::Pipeline::new();
        let source = elements::make("filesrc")?;
        source.set_property("location", path);
        // Raw streams are passed on as they are; a container keeps its parameter sets outside the pictures.
        let parser = elements::parser(container != Container::AnnexB)?;
        let sink = elements::unit_sink(2)?;
        let foreign = Arc::new(OnceLock::new());
        elements::chain(&pipeline, &[&parser, sink.upcast_ref()])?;
        let demuxer = match container {
            Container::AnnexB => None,
            Container::Mp4 => Some(elements::make("qtdemux")?),
            Container::Matroska => Some(elements::make("matroskademux")?),
        };
        match demuxer {
            None => {
                pipeline
                    .add(&source)
                    .map_err(|error| elements::broken(error.to_string()))?;
                source
                    .link(&parser)
                    .map_err(|error| elements::broken(error.to_string()))?;
            }
            Some(demuxer) => {
                elements::chain(&pipeline, &[&source, &demuxer])?;
                link_video(&demuxer, &parser, &foreign);
            }
        }
        let round = Self {
            sink,
            foreign,
            pipeline: Pipeline(pipeline),
        };
        // Units that fill the sink before it plays would wait there for this thread to pull them while it waits for the
        // sink to play, for ever. So none gets there before.
        let gate = parser.static_pad("src").and_then(|pad| {
            let blocked = pad.add_probe(gst::PadProbeType::BLOCK_DOWNSTREAM, |_, _| {
                gst::PadProbeReturn::Ok
            });
            Some(pad).zip(blocked)
        });
        // A refused state change leaves its reason on the bus, where `pull` finds it.
        let _ = round.pipeline.0.set_state(gst::State::Playing);
        if let Some((pad, gate)) = gate {
            pad.remove_probe(gate);
        }
        Ok(round)
    }

    fn pull(&mut self) -> Pulled {
        let patience = gst::ClockTime::try_from(PATIENCE).ok();
        if let Some(sample) = self.sink.try_pull_sample(patience) {
            return timed(&sample);
        }
        if let Some(codec) = self.foreign.get() {
            return Pulled::End(Some(no_h264(&format!("its video is {codec}"))));
        }
        if let Some(error) = self.error() {
            return Pulled::End(Some(error));
        }
        if self.sink.is_eos() {
            Pulled::End(None)
        } else {
            Pulled::Nothing
        }
    }

    fn error(&self) -> Option<SourceFailure> {
        let message = self.pipeline.0.bus()?.pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => {
                let failure = elements::failure(error);
                let code = match failure.code {
                    ErrorCode::PluginMissing => failure.code,
                    _ => ErrorCode::SourceInvalid,
                };
                let reason = format!("the file cannot be played: {}", failure.reason);
                Some(SourceFailure::lasting(code, reason))
            }
            _ => None,
        }
    }
}

/// Links the first H.264 track; when all tracks are known and none is, says what the video is instead.
fn link_video(demuxer: &gst::Element, parser: &gst::Element, foreign: &Arc<OnceLock<String>>) {
    let other = Arc::new(OnceLock::new());
    let seen = Arc::clone(&other);
    let target = parser.static_pad("sink");
    let linked = target.clone();
    demuxer.connect_pad_added(move |_, pad| {
        let Some(target) = target.as_ref() else { return };
        let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
        let Some(format) = caps.structure(0) else { return };
        if format.name() == "video/x-h264" && !target.is_linked() {
            if pad.link(target).is_err() {
                tracing::warn!("an H.264 track could not be linked");
            }
        } else if format.name().starts_with("video/") {
            let _ = seen.set(format.name().trim_start_matches("video/x-").to_owned());
        }
    });
    let foreign = Arc::clone(foreign);
    demuxer.connect_no_more_pads(move |_| {
        if linked.as_ref().is_some_and(|pad| !pad.is_linked()) {
            let codec = other.get().cloned();
            let _ = foreign.set(codec.unwrap_or_else(|| "missing, there is only sound or data".to_owned()));
        }
    });
}

fn timed(sample: &gst::Sample) -> Pulled {
    let Some((data, keyframe)) = elements::unit(sample) else {
        return Pulled::Nothing;
    };
    let Some(buffer) = sample.buffer() else {
        return Pulled::Nothing;
    };
    let decode = buffer.dts().map(Duration::from);
    let stamp = Stamp {
        decode,
        duration: buffer.duration().map(Duration::from),
        round_start: false,
    };
    let presentation = buffer.pts().map(Duration::from).filter(|_| decode.is_none());
    Pulled::Unit((data, keyframe, stamp), presentation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far above what this takes on a busy machine.
    const LIMIT: Duration = Duration::from_secs(60);
    const THREADS: usize = 8;
    const ROUNDS: usize = 150;

    #[test]
    fn a_round_starts_however_late_its_thread_gets_on() {
        crate::gst::init().expect("GStreamer");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/h264/SVA_BA2_D.264");
        let (done, finished) = sync_channel(THREADS);
        // More threads than processors: some are always held up between two steps of a start.
        for _ in 0..THREADS {
            let (path, done) = (path.clone(), done.clone());
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    let mut round = Round::start(&path, Container::AnnexB).expect("a pipeline");
                    while !matches!(round.pull(), Pulled::Unit(..)) {}
                }
                // A test that has failed listens no more.
                let _ = done.send(());
            });
        }
        for _ in 0..THREADS {
            finished.recv_timeout(LIMIT).expect("every round gives a unit");
        }
    }
}
