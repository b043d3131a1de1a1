//! Children of the bench that decode one clip and say what it cost: a bare GStreamer line, or our receive graph.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use crossdesk_core::media::{AccessUnit, TapUnit};
use crossdesk_pipelines::clock;
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::receive::{
    DecoderChoice, Pace, Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput, Refused,
};
use gst::prelude::*;
use serde::{Deserialize, Serialize};

use crate::clips::{self, Clip};
use crate::cpu;

/// Pictures before the measurement begins: start-up and the decoder's proof are not what a stream costs.
const WARM_UP: u64 = 12;

/// A picture that has not come out this long after its access unit went in is held back.
const HELD: Duration = Duration::from_millis(500);

/// What decodes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `appsrc ! h264parse ! avdec_h264 ! fakesink`.
    Bare,
    /// Our receive graph.
    Receive,
}

/// When the next access unit goes in.
#[derive(Clone, Copy, Debug)]
pub enum Feed {
    /// After the picture of the one before: the wake-ups of a live stream without its waiting.
    Live,
    /// As fast as they are taken.
    Fast,
}

/// What a child measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Pictures measured, warm-up left out.
    pub pictures: u64,
    /// Processor time for all of them.
    pub cpu_ms: f64,
    /// Time for all of them.
    pub wall_ms: f64,
    /// Access units whose picture did not come before the next one went in; always 0 for `Fast`.
    pub held: u64,
}

impl Cost {
    pub fn cpu_per_picture(&self) -> f64 {
        self.cpu_ms / self.pictures as f64
    }

    pub fn pictures_per_second(&self) -> f64 {
        self.pictures as f64 * 1e3 / self.wall_ms
    }
}

/// Decodes `rounds` times `clip` in a child process.
pub fn measure(kind: Kind, feed: Feed, clip: &Clip, rounds: usize) -> anyhow::Result<Cost> {
    let kind = match kind {
        Kind::Bare => "bare",
        Kind::Receive => "receive",
    };
    let feed = match feed {
        Feed::Live => "live",
        Feed::Fast => "fast",
    };
    let output = Command::new(std::env::current_exe()?)
        .args(["--worker", kind, feed])
        .arg(&clip.path)
        .arg(rounds.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("the {kind} child failed on {}", clip.name);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The child's side: `KIND FEED FILE ROUNDS`.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [kind, feed, file, rounds] = arguments else {
        bail!("a worker needs KIND FEED FILE ROUNDS");
    };
    let feed = if feed == "live" { Feed::Live } else { Feed::Fast };
    let units = clips::units_of(Path::new(file))?;
    let meter = Arc::new(Meter::default());
    let cost = match kind.as_str() {
        "bare" => run_bare(&units, rounds.parse()?, feed, &meter)?,
        "receive" => run_receive(&units, rounds.parse()?, feed, &meter)?,
        other => bail!("unknown worker {other}"),
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&cost)?)?;
    Ok(())
}

#[derive(Clone, Copy)]
struct Moment {
    cpu: Duration,
    wall: Instant,
    pictures: u64,
}

#[derive(Default)]
struct Count {
    pictures: u64,
    begin: Option<Moment>,
    end: Option<Moment>,
    failure: Option<String>,
}

/// Counts pictures on the streaming thread and lets the feeding thread wait for them.
#[derive(Default)]
struct Meter {
    count: Mutex<Count>,
    changed: Condvar,
}

impl Meter {
    fn lock(&self) -> std::sync::MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn picture(&self) {
        let mut count = self.lock();
        count.pictures += 1;
        if count.pictures == WARM_UP {
            count.begin = Some(moment(count.pictures));
        }
        self.changed.notify_one();
    }

    fn fail(&self, reason: String) {
        self.lock().failure = Some(reason);
        self.changed.notify_one();
    }

    /// Waits until `count` pictures came out; false when they do not within `limit`.
    fn wait_for(&self, pictures: u64, limit: Duration) -> anyhow::Result<bool> {
        let missing = |count: &mut Count| count.pictures < pictures && count.failure.is_none();
        let count = self.changed.wait_timeout_while(self.lock(), limit, missing);
        let (mut count, _) = count.unwrap_or_else(PoisonError::into_inner);
        match &count.failure {
            Some(reason) => bail!("{reason}"),
            None if count.pictures < pictures => Ok(false),
            None => {
                count.end = Some(moment(count.pictures));
                Ok(true)
            }
        }
    }

    fn cost(&self, held: u64) -> anyhow::Result<Cost> {
        let count = self.lock();
        let (begin, end) = count.begin.zip(count.end).context("too few pictures")?;
        Ok(Cost {
            pictures: end.pictures - begin.pictures,
            cpu_ms: cpu::ms(end.cpu - begin.cpu),
            wall_ms: cpu::ms(end.wall - begin.wall),
            held,
        })
    }
}

fn moment(pictures: u64) -> Moment {
    Moment {
        cpu: cpu::of_this_process(),
        wall: Instant::now(),
        pictures,
    }
}

/// Pushes all units and returns how many were held back.
fn feed_all(
    units: &[Bytes],
    rounds: usize,
    feed: Feed,
    meter: &Meter,
    push: &dyn Fn(&Bytes, u64) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut held = 0;
    let mut pushed = 0;
    for unit in std::iter::repeat_n(units, rounds).flatten() {
        push(unit, pushed)?;
        pushed += 1;
        // A decoder is chosen and proven on the first one, which may take a while.
        let limit = if pushed == 1 { 10 * HELD } else { HELD };
        if matches!(feed, Feed::Live) && !meter.wait_for(pushed - held, limit)? {
            held += 1;
        }
    }
    if matches!(feed, Feed::Fast) && !meter.wait_for(pushed, Duration::from_secs(60))? {
        bail!("pictures are missing");
    }
    Ok(held)
}

fn run_bare(units: &[Bytes], rounds: usize, feed: Feed, meter: &Arc<Meter>) -> anyhow::Result<Cost> {
    crossdesk_pipelines::gst::init()?;
    let cores = std::thread::available_parallelism()?;
    let line = format!(
        "appsrc name=in is-live=true format=time block=true max-buffers=4 max-bytes=0 max-time=0 \
         caps=video/x-h264,stream-format=byte-stream,alignment=au ! h264parse ! \
         avdec_h264 thread-type=slice std-compliance=normal max-threads={cores} ! fakesink name=out sync=false"
    );
    let pipeline = gst::parse::launch(&line)?
        .downcast::<gst::Pipeline>()
        .ok()
        .context("a pipeline")?;
    let input = pipeline
        .by_name("in")
        .and_downcast::<gst_app::AppSrc>()
        .context("its source")?;
    let pad = pipeline
        .by_name("out")
        .and_then(|sink| sink.static_pad("sink"))
        .context("its sink")?;
    let counted = Arc::clone(meter);
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        counted.picture();
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Playing)?;
    let push = |unit: &Bytes, index: u64| {
        let mut buffer = gst::Buffer::from_slice(unit.clone());
        let pts = gst::ClockTime::from_useconds(index * 16_667);
        buffer
            .get_mut()
            .context("a new buffer has one owner")?
            .set_pts(pts);
        input.push_buffer(buffer).map(|_| ()).context("appsrc takes it")
    };
    let held = feed_all(units, rounds, feed, meter, &push)?;
    let cost = meter.cost(held);
    pipeline.set_state(gst::State::Null)?;
    cost
}

struct Counter(Arc<Meter>);

impl ReceiveOutput for Counter {
    fn unit(&self, _: TapUnit) {}

    fn picture(&self, _: Picture) {
        self.0.picture();
    }

    fn event(&self, event: ReceiveEvent) {
        match event {
            ReceiveEvent::Failed { reason, .. } | ReceiveEvent::UnitRefused { reason, .. } => {
                self.0.fail(reason);
            }
            _ => {}
        }
    }
}

fn run_receive(units: &[Bytes], rounds: usize, feed: Feed, meter: &Arc<Meter>) -> anyhow::Result<Cost> {
    let config = ReceiveConfig {
        decoder: DecoderChoice::Software,
        pace: Pace::Lossless,
    };
    let receiver = Receiver::start(&config, Arc::new(Counter(Arc::clone(meter))))?;
    let push = |unit: &Bytes, _| {
        loop {
            let unit = AccessUnit {
                data: unit.clone(),
                received: clock::now(),
            };
            let done = meter.lock().pictures;
            match receiver.push(unit) {
                Ok(()) => return Ok(()),
                Err(Refused::Full) => meter.wait_for(done + 1, HELD).map(|_| ())?,
                Err(other) => bail!("{other}"),
            }
        }
    };
    let held = feed_all(units, rounds, feed, meter, &push)?;
    meter.cost(held)
}
