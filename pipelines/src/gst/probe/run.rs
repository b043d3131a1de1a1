//! One decoder on a few streams: right pictures, pictures kept back, time per picture.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::h264::{AccessUnits, Conditioner};

use super::clips::{CLIPS, CROP_1080, Clip, DIGEST_START, PICTURE_4K, digest};
use super::{DecoderReport, SLOWEST_1080P_MS, STANDSTILL, Step, Verdict};
use crate::clock;
use crate::gst::frame::GstFrame;
use crate::gst::samples;
use crate::gst::trial::Trial;
use crate::plan::decoders::{DecoderRow, Memory};
use crate::plan::shape::StreamShape;

/// After this, a picture is taken to be kept back until the next access unit. Long enough for a software decoder
/// on a busy machine; paid once per picture that really is kept back.
const KEPT_BACK: Duration = Duration::from_millis(60);

/// One access unit and what its SPS says.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    data: Bytes,
    shape: StreamShape,
}

/// The access units of a raw stream, repaired as they are for viewers.
///
/// # Errors
/// When there is none that can be decoded.
pub(super) fn units(stream: &[u8]) -> Result<Vec<Unit>, String> {
    let mut conditioner = Conditioner::new();
    let units: Vec<Unit> = AccessUnits::new(stream)
        .filter_map(|unit| {
            let unit = conditioner.condition(Bytes::copy_from_slice(unit)).ok()?;
            let shape = StreamShape::from(&**unit.sps.as_ref()?);
            unit.has_picture.then_some(Unit {
                data: unit.data,
                shape,
            })
        })
        .collect();
    match units.first() {
        Some(first) => first
            .shape
            .refused
            .map_or(Ok(()), |why| Err(why.to_string()))
            .map(|()| units),
        None => Err("there is no H.264 picture in it".to_owned()),
    }
}

/// Most steps that [`prove`] reports: one a clip, and what is known after the clips and after each measurement.
pub(super) const STEPS: usize = CLIPS.len() + 3;

/// Finds out everything about an installed decoder, saying so step by step.
pub(super) fn prove(mut report: DecoderReport, steps: &SyncSender<Step>) {
    // Nobody listens any more once the decoder was given up.
    let say = |step: Step| drop(steps.try_send(step));
    let shown = |report: &DecoderReport| say(Step::Shown(Box::new(report.clone())));
    report.verdict = Verdict::Proven;
    for clip in &CLIPS {
        if let Err((verdict, reason)) = prove_clip(&mut report, clip) {
            report.fail(verdict, reason);
            shown(&report);
            return;
        }
        say(Step::Alive);
    }
    shown(&report);
    report.ms_per_frame_1080p = time(report.row, CROP_1080);
    if report.ms_per_frame_1080p.is_some_and(|ms| ms > SLOWEST_1080P_MS) {
        let reason = "slower than 30 pictures a second at 1080p";
        report.fail(Verdict::TooSlow, reason.to_owned());
    }
    shown(&report);
    report.ms_per_frame_4k = time(report.row, PICTURE_4K);
    shown(&report);
}

fn prove_clip(report: &mut DecoderReport, clip: &Clip) -> Result<(), (Verdict, String)> {
    let seen = units(clip.stream)
        .and_then(|units| check(report.row, clip, &units))
        .map_err(|reason| (Verdict::NotUsable, format!("{reason} ({})", clip.name)))?;
    report.frames_held = report.frames_held.max(Some(seen.held));
    report.memory = Some(seen.memory);
    if seen.digest == clip.digest {
        Ok(())
    } else {
        let reason = format!("wrong pixels in the {}", clip.name);
        Err((Verdict::WrongPixels, reason))
    }
}

fn time(row: &DecoderRow, stream: &[u8]) -> Option<f64> {
    let units = units(stream).ok()?;
    speed(row, &units).ok()?.ms_per_frame
}

/// What a decoder made of a clip.
struct Seen {
    digest: u64,
    held: u32,
    memory: &'static str,
}

/// Gives access units one at a time and counts what is kept back.
fn check(row: &DecoderRow, clip: &Clip, units: &[Unit]) -> Result<Seen, String> {
    let first = units.first().ok_or("an empty clip")?;
    let mut trial = Trial::open(row, &first.shape)?;
    let mut seen = Seen {
        digest: DIGEST_START,
        held: 0,
        memory: Memory::System.as_str(),
    };
    let mut shown = 0;
    for (index, unit) in units.iter().enumerate() {
        trial.push(&unit.data)?;
        // The first picture waits for the driver to come up; later ones are only late when they are kept back.
        let patience = if index == 0 { STANDSTILL / 4 } else { KEPT_BACK };
        while shown <= index {
            let Some(sample) = trial.pull(patience) else { break };
            seen.add(&sample, &units[shown].shape)?;
            shown += 1;
        }
        seen.held = seen
            .held
            .max(u32::try_from(index + 1 - shown).unwrap_or(u32::MAX));
    }
    trial.end();
    while shown < units.len() {
        let sample = trial
            .pull(STANDSTILL)
            .ok_or_else(|| complaint(&trial, shown, units.len()))?;
        seen.add(&sample, &units[shown].shape)?;
        shown += 1;
    }
    tracing::debug!(
        decoder = row.factory,
        clip = clip.name,
        held = seen.held,
        "clip decoded"
    );
    Ok(seen)
}

impl Seen {
    fn add(&mut self, sample: &gst::Sample, shape: &StreamShape) -> Result<(), String> {
        let frame = GstFrame::new(sample, shape)?;
        let mut picture = Vec::with_capacity(shape.visible.area() as usize * 3 / 2);
        samples::append(&frame, shape.visible, &mut picture).map_err(|error| error.to_string())?;
        self.digest = digest(self.digest, &picture);
        let feature = sample
            .caps()
            .and_then(|caps| Some(caps.features(0)?.nth(0)?.to_string()));
        let memory = feature.and_then(|feature| Memory::from_caps_feature(&feature));
        self.memory = memory.unwrap_or(Memory::System).as_str();
        Ok(())
    }
}

fn complaint(trial: &Trial, shown: usize, wanted: usize) -> String {
    trial.error().unwrap_or_else(|| match shown {
        0 => "shows no picture".to_owned(),
        _ => format!("shows {shown} of {wanted} pictures"),
    })
}

/// Time per picture over a whole stream.
pub(super) struct Speed {
    pub pictures: u64,
    pub ms_per_frame: Option<f64>,
}

/// Most access units given ahead of their pictures: enough to keep a decoder busy, few enough to stay small.
const AHEAD: u64 = 16;

/// Decodes `units` as fast as possible.
///
/// # Errors
/// Why it stopped.
pub(super) fn speed(row: &DecoderRow, units: &[Unit]) -> Result<Speed, String> {
    let first = units.first().ok_or("an empty stream")?;
    let mut trial = Trial::open(row, &first.shape)?;
    let (mut pushed, mut pictures) = (0_u64, 0_u64);
    let mut started = None;
    let mut last = clock::now();
    let mut waiting = units.iter();
    let mut open = true;
    loop {
        while open && pushed < pictures + AHEAD {
            match waiting.next() {
                Some(unit) => {
                    trial.push(&unit.data)?;
                    pushed += 1;
                }
                None => {
                    trial.end();
                    open = false;
                }
            }
        }
        let Some(_) = trial.pull(STANDSTILL) else { break };
        last = clock::now();
        // The first picture includes opening the device; time runs from it.
        started.get_or_insert(last);
        pictures += 1;
    }
    match trial.error() {
        Some(error) if pictures < pushed => return Err(error),
        _ if pictures == 0 => return Err("shows no picture".to_owned()),
        _ => {}
    }
    let spent = last.since(started.unwrap_or(last)).as_secs_f64() * 1000.0;
    let ms_per_frame = (pictures > 1).then(|| spent / (pictures - 1) as f64);
    Ok(Speed {
        pictures,
        ms_per_frame,
    })
}
