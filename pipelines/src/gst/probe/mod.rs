//! Decoders looked at outside any connection: what is installed, what decodes right, how fast.

mod clips;
mod run;

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::{InitError, registry};
use crate::clock;
use crate::plan::decoders::{DECODERS, DecoderRow, Platform};
use crate::plan::encoder::{ENCODERS, EncoderRow};

/// A decoder that makes no progress for so long hangs; its thread is left to itself.
const STANDSTILL: Duration = Duration::from_secs(2);

/// All decoders together; `doctor` promises an answer within ten seconds.
const TOTAL_PATIENCE: Duration = Duration::from_secs(9);

/// Slower than this at 1080p, a decoder falls behind a stream of 30 pictures a second.
const SLOWEST_1080P_MS: f64 = 33.3;

/// What became of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every clip came out right, fast enough.
    Proven,
    /// It is installed, but cannot be opened, stops with an error or shows nothing.
    NotUsable,
    /// It decodes to the wrong picture.
    WrongPixels,
    /// Right, but slower than 30 pictures a second at 1080p.
    TooSlow,
    /// It is not installed.
    Missing,
}

impl Verdict {
    /// The words used in `doctor`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::NotUsable => "listed but not usable",
            Self::WrongPixels => "wrong pixels",
            Self::TooSlow => "too slow",
            Self::Missing => "missing",
        }
    }
}

/// One decoder of the table, looked at on this machine.
#[derive(Clone, Debug)]
pub struct DecoderReport {
    /// Its row in the table.
    pub row: &'static DecoderRow,
    /// True when the factory is registered.
    pub installed: bool,
    /// Version of its plugin, whether or not that registered the factory.
    pub plugin_version: Option<String>,
    /// True when the user ranked it NONE.
    pub switched_off: bool,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it is not proven, for people.
    pub reason: Option<String>,
    /// Most pictures it kept back in the small clips.
    pub frames_held: Option<u32>,
    /// Milliseconds of wall time per picture at 1920x1080.
    pub ms_per_frame_1080p: Option<f64>,
    /// The same at 3840x2160.
    pub ms_per_frame_4k: Option<f64>,
    /// Where its pictures live: `system`, `va`, …
    pub memory: Option<&'static str>,
}

impl DecoderReport {
    fn new(row: &'static DecoderRow) -> Self {
        let factory = gst::ElementFactory::find(row.factory);
        let plugin = gst::Registry::get().find_plugin(row.plugin);
        Self {
            row,
            installed: factory.is_some(),
            plugin_version: plugin.map(|plugin| plugin.version().to_string()),
            switched_off: factory.as_ref().is_some_and(registry::is_excluded),
            verdict: Verdict::Missing,
            reason: None,
            frames_held: None,
            ms_per_frame_1080p: None,
            ms_per_frame_4k: None,
            memory: None,
        }
    }

    fn fail(&mut self, verdict: Verdict, reason: String) {
        self.verdict = verdict;
        self.reason = Some(reason);
    }
}

/// Tries every decoder of this platform on the embedded clips, best first; takes less than ten seconds.
///
/// # Errors
/// When GStreamer cannot be initialised.
pub fn decoders() -> Result<Vec<DecoderReport>, InitError> {
    super::init()?;
    let end = clock::now() + TOTAL_PATIENCE;
    let rows: Vec<_> = DECODERS
        .iter()
        .filter(|row| row.platforms.contains(&Platform::current()))
        .collect();
    // Software first: it always answers, and drivers that hang must not use up its time.
    let software = rows.iter().filter(|row| !row.hardware);
    let hardware = rows.iter().filter(|row| row.hardware);
    let mut reports: Vec<_> = software
        .chain(hardware)
        .map(|row| look(row, end.since(clock::now())))
        .collect();
    let place = |report: &DecoderReport| rows.iter().position(|row| row.factory == report.row.factory);
    reports.sort_by_key(place);
    Ok(reports)
}

fn look(row: &'static DecoderRow, left: Duration) -> DecoderReport {
    let mut report = DecoderReport::new(row);
    if !report.installed {
        // A plugin registers only the decoders whose device and driver it finds.
        report.reason = report.plugin_version.as_ref().map(|version| {
            format!(
                "the plugin `{}` {version} is here, but finds no device or driver for it",
                row.plugin
            )
        });
        return report;
    }
    if report.switched_off {
        report.fail(Verdict::NotUsable, "ranked NONE, so it is never used".to_owned());
        return report;
    }
    let mut latest = report.clone();
    latest.fail(Verdict::NotUsable, "the attempt crashed".to_owned());
    // Every step fits, so the thread never waits; one that comes too late finds nobody listening and ends.
    let (steps, seen) = sync_channel(run::STEPS);
    let spawned = thread::Builder::new()
        .name(format!("probe {}", row.factory))
        .spawn(move || run::prove(report, &steps));
    if let Err(error) = spawned {
        latest.fail(Verdict::NotUsable, format!("no thread to try it on: {error}"));
        return latest;
    }
    let end = clock::now() + left;
    let mut shown = false;
    loop {
        match seen.recv_timeout(STANDSTILL.min(end.since(clock::now()))) {
            Ok(Step::Alive) => {}
            Ok(Step::Shown(report)) => (latest, shown) = (*report, true),
            Err(RecvTimeoutError::Timeout) if !shown => {
                latest.fail(Verdict::NotUsable, "it hangs: no progress within 2 s".to_owned());
                return latest;
            }
            Err(_) => return latest,
        }
    }
}

/// What a decoder being tried has come to.
enum Step {
    /// It showed another clip.
    Alive,
    /// This is known so far.
    Shown(Box<DecoderReport>),
}

/// How one decoder coped with a stream.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// GStreamer factory name.
    pub name: &'static str,
    /// Pictures that came out.
    pub pictures: u64,
    /// Milliseconds of wall time per picture, once there are two.
    pub ms_per_frame: Option<f64>,
    /// Why it stopped early, for people.
    pub reason: Option<String>,
}

/// Decodes a raw Annex B stream as fast as `row` can, outside any connection. Takes as long as it takes, up to a
/// standstill of two seconds.
pub fn measure(row: &'static DecoderRow, stream: &[u8]) -> Measurement {
    let speed = run::units(stream).and_then(|units| run::speed(row, &units));
    match speed {
        Ok(speed) => Measurement {
            name: row.factory,
            pictures: speed.pictures,
            ms_per_frame: speed.ms_per_frame,
            reason: None,
        },
        Err(reason) => Measurement {
            name: row.factory,
            pictures: 0,
            ms_per_frame: None,
            reason: Some(reason),
        },
    }
}

/// Version of the GStreamer library, such as `1.22.0`.
pub fn version() -> String {
    let (major, minor, micro, _) = gst::version();
    format!("{major}.{minor}.{micro}")
}

/// Encoders of this platform, best first, each with whether it is installed. Call after [`decoders`].
pub fn encoders() -> Vec<(&'static EncoderRow, bool)> {
    ENCODERS
        .iter()
        .filter(|row| row.platform.is_here())
        .map(|row| (row, gst::ElementFactory::find(row.element).is_some()))
        .collect()
}

#[cfg(test)]
mod tests;
