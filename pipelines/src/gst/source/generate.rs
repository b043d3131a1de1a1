//! The generated desktop, drawn in real time and encoded with the best encoder that works here.

use std::sync::Arc;
use std::time::Duration;

use crossdesk_core::error::ErrorCode;
use crossdesk_core::time::Monotonic;
use gst::prelude::*;
use gst_app::{AppSrc, AppStreamType};

use super::elements::{self, Pipeline};
use super::port::{Port, Wake};
use crate::clock;
use crate::gst::encoder;
use crate::pixels::desktop::Desktop;
use crate::plan::encoder::{ENCODERS, EncoderPlan};
use crate::plan::source::{SourceFailure, TestSource};

/// An encoder that yields nothing for this long is given up; opening a slow driver fits in well.
const ENCODER_PATIENCE: Duration = Duration::from_secs(3);
/// Pictures waiting for the encoder: with one waiting, the next is skipped instead of growing a delay.
const WAITING_PICTURES: u64 = 1;
/// A keyframe this much late is asked for: the encoder counts pictures, and skipped ones do not count.
const KEYFRAME_SLACK: Duration = Duration::from_millis(50);

/// Draws and encodes until `port` is stopped or the wanted number of pictures is reached.
pub(super) fn run(source: &TestSource, port: &Arc<Port>) -> Result<(), SourceFailure> {
    let mut pictures = Pictures::new(source);
    let mut reasons = Vec::new();
    for row in ENCODERS.iter().filter(|row| row.platform.is_here()) {
        if gst::ElementFactory::find(row.element).is_none() {
            continue;
        }
        let plan = EncoderPlan::new(row, &source.encoder());
        tracing::info!(%plan, "trying an encoder");
        match Encoder::start(&plan, source, port).and_then(|encoder| encoder.play(&mut pictures, port)) {
            Ok(()) => return Ok(()),
            Err(reason) => {
                tracing::warn!(encoder = row.element, reason, "an encoder does not work");
                reasons.push(format!("{}: {reason}", row.element));
            }
        }
    }
    let reason = if reasons.is_empty() {
        "no H.264 encoder is installed; x264enc is in gstreamer1.0-plugins-ugly".to_owned()
    } else {
        format!("no H.264 encoder works here ({})", reasons.join("; "))
    };
    Err(SourceFailure::lasting(ErrorCode::PluginMissing, reason))
}

/// Which picture is due when; survives a change of encoder.
struct Pictures {
    source: TestSource,
    /// When picture 0 was due; unset until the first encoder is ready.
    origin: Option<Monotonic>,
    next: u64,
}

impl Pictures {
    fn new(source: &TestSource) -> Self {
        Self {
            source: *source,
            origin: None,
            next: 0,
        }
    }

    fn offset(&self, number: u64) -> Duration {
        let micros = number * 1_000_000 * u64::from(self.source.rate.den) / u64::from(self.source.rate.num);
        Duration::from_micros(micros)
    }

    fn due(&self) -> Monotonic {
        self.origin
            .map_or(Monotonic::ZERO, |origin| origin + self.offset(self.next))
    }

    /// Takes the picture that is due now, leaving out those whose time has passed.
    fn take(&mut self, now: Monotonic) -> u64 {
        let origin = *self.origin.get_or_insert(now);
        while now >= origin + self.offset(self.next + 1) && !self.last() {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }

    fn last(&self) -> bool {
        self.source.frames.is_some_and(|frames| self.next + 1 >= frames)
    }

    fn finished(&self) -> bool {
        self.source.frames.is_some_and(|frames| self.next >= frames)
    }

    /// How long a group of pictures lasts.
    fn group(&self) -> Duration {
        self.offset(u64::from(self.source.gop))
    }
}

struct Encoder {
    input: AppSrc,
    encoder: gst::Element,
    sink: gst_app::AppSink,
    pool: gst::BufferPool,
    desktop: Desktop,
    started: Monotonic,
    pipeline: Pipeline,
}

impl Encoder {
    fn start(plan: &EncoderPlan, source: &TestSource, port: &Arc<Port>) -> Result<Self, String> {
        let caps = encoder::picture_caps(plan.row.layout, source.size, source.rate);
        let info = gst_video::VideoInfo::from_caps(&caps).map_err(|error| error.to_string())?;
        let input = AppSrc::builder()
            .caps(&caps)
            .format(gst::Format::Time)
            .stream_type(AppStreamType::Stream)
            .is_live(true)
            .block(false)
            .build();
        let encoder = encoder::make(plan.row)?;
        encoder::configure(&encoder, plan.row, &plan.properties);
        let reason = |failure: SourceFailure| failure.reason;
        let parser = elements::parser(true).map_err(reason)?;
        let sink = elements::unit_sink(2).map_err(reason)?;
        elements::deliver(&sink, port);
        let pipeline = Pipeline(gst::Pipeline::new());
        elements::chain(
            &pipeline.0,
            &[input.upcast_ref(), &encoder, &parser, sink.upcast_ref()],
        )
        .map_err(reason)?;
        let desktop = Desktop::new(source.size, encoder::layout(plan.row.layout, &info));
        let pool = encoder::pool(&caps, &info)?;
        pipeline
            .0
            .set_state(gst::State::Playing)
            .map_err(|_| "it does not start".to_owned())?;
        Ok(Self {
            input,
            encoder,
            sink,
            pool,
            desktop,
            started: clock::now(),
            pipeline,
        })
    }

    /// Feeds pictures until the end (`Ok`) or until the encoder lets us down (`Err`).
    fn play(self, pictures: &mut Pictures, port: &Port) -> Result<(), String> {
        let mut wanted = false;
        let mut asked = self.started;
        loop {
            match port.wait_until(pictures.due()) {
                Wake::Stop => return Ok(()),
                Wake::Keyframe => {
                    wanted = true;
                    continue;
                }
                Wake::Time => {}
            }
            if pictures.finished() {
                return self.finish(port);
            }
            let now = clock::now();
            self.check(now, port)?;
            let number = pictures.take(now);
            if self.input.current_level_buffers() >= WAITING_PICTURES {
                continue;
            }
            let newest = port.last_keyframe().unwrap_or(self.started).max(asked);
            if wanted || now.since(newest) > pictures.group() + KEYFRAME_SLACK {
                encoder::ask_for_keyframe(&self.encoder);
                asked = now;
                wanted = false;
            }
            self.push(number, pictures)?;
        }
    }

    fn push(&self, number: u64, pictures: &Pictures) -> Result<(), String> {
        let acquired = self.pool.acquire_buffer(None);
        let mut buffer = acquired.map_err(|error| format!("no picture buffer: {error}"))?;
        {
            let buffer = buffer.make_mut();
            buffer.set_pts(gst::ClockTime::try_from(pictures.offset(number)).ok());
            buffer.set_duration(gst::ClockTime::try_from(pictures.offset(1)).ok());
            let mut mapped = buffer.map_writable().map_err(|error| error.to_string())?;
            // The counter shows what fits in its 32 marks; at 240 a second that wraps after half a year.
            self.desktop.draw(number as u32, &mut mapped);
        }
        match self.input.push_buffer(buffer) {
            Ok(_) => Ok(()),
            Err(error) => Err(self
                .error()
                .unwrap_or_else(|| format!("it takes no pictures: {error}"))),
        }
    }

    fn check(&self, now: Monotonic, port: &Port) -> Result<(), String> {
        if let Some(error) = self.error() {
            return Err(error);
        }
        let sign_of_life = port.last_unit().unwrap_or(self.started).max(self.started);
        if now.since(sign_of_life) > ENCODER_PATIENCE {
            return Err("it yields nothing".to_owned());
        }
        Ok(())
    }

    fn error(&self) -> Option<String> {
        let message = self.pipeline.0.bus()?.pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => Some(error.error().to_string()),
            _ => None,
        }
    }

    /// Lets the encoder put out what it still holds, then ends.
    fn finish(self, port: &Port) -> Result<(), String> {
        let ended = self.input.end_of_stream().is_ok();
        let limit = clock::now() + ENCODER_PATIENCE;
        while ended && !self.sink.is_eos() && clock::now() < limit {
            if port.wait_until(clock::now() + Duration::from_millis(5)) == Wake::Stop {
                return Ok(());
            }
        }
        port.end();
        Ok(())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // An active pool keeps its memory.
        let _ = self.pool.set_active(false);
    }
}
