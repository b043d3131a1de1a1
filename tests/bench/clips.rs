//! The streams everything is measured with: two recorded ones, and others made of their pictures once and kept.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use crossdesk_core::h264::AccessUnits;
use gst::prelude::*;

use crate::paths;

/// A raw H.264 stream on disk.
#[derive(Clone, Debug)]
pub struct Clip {
    pub name: &'static str,
    pub path: PathBuf,
}

impl Clip {
    /// Its access units, sharing one allocation.
    pub fn units(&self) -> anyhow::Result<Vec<Bytes>> {
        units_of(&self.path)
    }
}

/// The access units of a raw stream, sharing one allocation.
pub fn units_of(path: &Path) -> anyhow::Result<Vec<Bytes>> {
    let stream = Bytes::from(fs::read(path).with_context(|| format!("cannot read {}", path.display()))?);
    let units: Vec<Bytes> = AccessUnits::new(&stream)
        .map(|unit| stream.slice_ref(unit))
        .collect();
    if units.is_empty() {
        bail!("{} holds no access unit", path.display());
    }
    Ok(units)
}

/// Recorded, 1920x1080, 30/s, High profile.
pub fn desktop_1080p() -> Clip {
    Clip {
        name: "desktop-1080p30",
        path: paths::desktop("desktop-1080p30.h264"),
    }
}

/// Recorded, 3840x2160, 15/s, Constrained Baseline.
pub fn desktop_4k() -> Clip {
    Clip {
        name: "desktop-4k",
        path: paths::desktop("desktop-4k.h264"),
    }
}

/// 1920x1080, 60/s, one slice a picture.
pub fn hd60() -> anyhow::Result<Clip> {
    made("1080p60", &desktop_1080p(), 1)
}

/// 3840x2160, 60/s, one slice a picture.
pub fn uhd60() -> anyhow::Result<Clip> {
    made("4k60", &desktop_4k(), 1)
}

/// The same pictures as [`uhd60`] in four slices each.
pub fn uhd60_in_slices() -> anyhow::Result<Clip> {
    made("4k60-4-slices", &desktop_4k(), 4)
}

/// Part of the file names, so that a change of [`encode`] makes new clips.
const RECIPE: &str = "3";

/// Recorded pictures encoded again the way a live sender does: 60 a second, no delay, a keyframe every two seconds.
fn made(name: &'static str, from: &Clip, slices: u32) -> anyhow::Result<Clip> {
    let path = paths::made(&format!("{name}-{RECIPE}.h264"))?;
    if !path.exists() {
        crate::report::progress(&format!("making {name}.h264 (once)"));
        let unfinished = path.with_extension("part");
        encode(from, slices, &unfinished)?;
        fs::rename(&unfinished, &path)?;
    }
    Ok(Clip { name, path })
}

fn encode(from: &Clip, slices: u32, to: &Path) -> anyhow::Result<()> {
    crossdesk_pipelines::gst::init()?;
    // Rate and colour are told, not converted: GStreamer takes any HD stream without colour description for BT.709.
    // Several slices the way a live encoder makes them, one per thread: it filters no edge between them, so that a
    // decoder can work on them side by side too.
    let threads = if slices > 1 {
        format!("sliced-threads=1:threads={slices}")
    } else {
        "sliced-threads=0:threads=1:slices=1".to_owned()
    };
    let text = format!(
        "filesrc location={} ! h264parse ! avdec_h264 ! capssetter caps=video/x-raw,framerate=60/1,colorimetry=bt601 ! \
         x264enc tune=zerolatency speed-preset=veryfast pass=quant quantizer=24 key-int-max=120 \
         option-string={threads} ! \
         video/x-h264,profile=high,stream-format=byte-stream,alignment=au ! filesink location={}",
        from.path.display(),
        to.display()
    );
    let pipeline =
        gst::parse::launch(&text).context("cannot encode clips (x264enc is in the ugly plugins)")?;
    let bus = pipeline.bus().context("a pipeline has a bus")?;
    pipeline.set_state(gst::State::Playing)?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let message = bus.timed_pop_filtered(gst::ClockTime::from_seconds(300), &ends);
    pipeline.set_state(gst::State::Null)?;
    match message.as_ref().map(|message| message.view()) {
        Some(gst::MessageView::Eos(_)) => Ok(()),
        Some(gst::MessageView::Error(error)) => Err(anyhow!("encoding failed: {}", error.error())),
        _ => Err(anyhow!("encoding took more than five minutes")),
    }
}
