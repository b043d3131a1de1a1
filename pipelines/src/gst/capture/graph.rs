//! One encoder with what surrounds it: pictures go in, conditioned access units come out.

use std::sync::Arc;

use crossdesk_core::h264::Conditioner;
use crossdesk_core::screen::ScreenPixels;
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::{FrameRate, PixelRect, PixelSize};
use gst::prelude::*;
use gst_app::{AppSink, AppSinkCallbacks, AppSrc, AppStreamType};

use super::desk::Desk;
use crate::capture::{CaptureEvent, CapturedUnit};
use crate::gst::encoder;
use crate::gst::source::elements::{self, Pipeline};
use crate::pixels::screen::Canvas;
use crate::plan::capture::{CapturePlan, even};
use crate::plan::encoder::EncoderRow;
use crate::plan::source::{Bitrate, SourceFailure};

/// A running encoder.
pub(super) struct Graph {
    row: &'static EncoderRow,
    rate: FrameRate,
    input: AppSrc,
    scaled: gst::Element,
    encoder: gst::Element,
    canvas: Canvas,
    pool: gst::BufferPool,
    /// Capture times are counted from here in timestamps.
    origin: Monotonic,
    pipeline: Pipeline,
}

impl Graph {
    pub(super) fn start(plan: &CapturePlan, origin: Monotonic, desk: &Arc<Desk>) -> Result<Self, String> {
        let row = plan.encoder.row;
        let (caps, canvas, pool) = picture(row, plan.taken, plan.rate)?;
        let input = AppSrc::builder()
            .caps(&caps)
            .format(gst::Format::Time)
            .stream_type(AppStreamType::Stream)
            .is_live(true)
            .block(false)
            .build();
        let reason = |failure: SourceFailure| failure.reason;
        let scale = elements::make("videoscale").map_err(reason)?;
        scale.set_property("add-borders", false);
        let scaled = elements::make("capsfilter").map_err(reason)?;
        let encoder = encoder::make(row)?;
        encoder::configure(&encoder, row, &plan.encoder.properties);
        let profile = elements::make("capsfilter").map_err(reason)?;
        let caps = gst::Caps::builder("video/x-h264").field("profile", plan.profile.caps_name());
        profile.set_property("caps", caps.build());
        let parser = elements::parser(true).map_err(reason)?;
        let sink = elements::unit_sink(1).map_err(reason)?;
        deliver(&sink, row, origin, desk);
        let pipeline = Pipeline(gst::Pipeline::new());
        let chain = [
            input.upcast_ref(),
            &scale,
            &scaled,
            &encoder,
            &profile,
            &parser,
            sink.upcast_ref(),
        ];
        elements::chain(&pipeline.0, &chain).map_err(reason)?;
        let graph = Self {
            row,
            rate: plan.rate,
            input,
            scaled,
            encoder,
            canvas,
            pool,
            origin,
            pipeline,
        };
        graph.set_size(Some(plan.encoded).filter(|size| *size != plan.taken));
        let started = graph.pipeline.0.set_state(gst::State::Playing);
        started.map_err(|_| graph.error().unwrap_or_else(|| "it does not start".to_owned()))?;
        Ok(graph)
    }

    /// Pictures that wait for the encoder.
    pub(super) fn waiting(&self) -> u64 {
        self.input.current_level_buffers()
    }

    /// Brings the picture up to date.
    pub(super) fn draw(&mut self, pixels: &ScreenPixels<'_>, changed: &[PixelRect]) -> Result<(), String> {
        let size = even(pixels.size);
        if size != self.canvas.size() {
            self.replace(size, self.rate)?;
            self.canvas.draw(pixels, PixelRect::whole(size));
            return Ok(());
        }
        for area in changed {
            self.canvas.draw(pixels, *area);
        }
        Ok(())
    }

    /// Gives the picture as it is, taken at `captured`, to the encoder.
    pub(super) fn push(&self, captured: Monotonic) -> Result<(), String> {
        let acquired = self.pool.acquire_buffer(None);
        let mut buffer = acquired.map_err(|error| format!("no picture buffer: {error}"))?;
        {
            let buffer = buffer.make_mut();
            let time = gst::ClockTime::try_from(captured.since(self.origin)).ok();
            buffer.set_pts(time);
            let mut mapped = buffer.map_writable().map_err(|error| error.to_string())?;
            mapped.copy_from_slice(self.canvas.bytes());
        }
        match self.input.push_buffer(buffer) {
            Ok(_) => Ok(()),
            Err(error) => Err(self
                .error()
                .unwrap_or_else(|| format!("it takes no pictures: {error}"))),
        }
    }

    pub(super) fn ask_for_keyframe(&self) {
        encoder::ask_for_keyframe(&self.encoder);
    }

    pub(super) fn set_bitrate(&self, bitrate: Bitrate) {
        let property = self.row.bitrate_property(bitrate);
        encoder::configure(&self.encoder, self.row, &[property]);
    }

    /// The size of encoded pictures, that of the screen with `None`.
    pub(super) fn set_size(&self, size: Option<PixelSize>) {
        let mut caps = gst::Caps::builder("video/x-raw");
        if let Some(size) = size.map(even) {
            let edge = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
            caps = caps
                .field("width", edge(size.width))
                .field("height", edge(size.height))
                .field("pixel-aspect-ratio", gst::Fraction::new(1, 1));
        }
        self.scaled.set_property("caps", caps.build());
    }

    pub(super) fn set_rate(&mut self, rate: FrameRate) -> Result<(), String> {
        self.rate = rate;
        let caps = encoder::picture_caps(self.row.layout, self.canvas.size(), rate);
        self.input.set_caps(Some(&caps));
        Ok(())
    }

    /// Starts over with pictures of another size, without stopping the encoder.
    fn replace(&mut self, size: PixelSize, rate: FrameRate) -> Result<(), String> {
        let (caps, canvas, pool) = picture(self.row, size, rate)?;
        self.input.set_caps(Some(&caps));
        // An active pool keeps its memory; buffers that are under way come back to it and are freed.
        let _ = std::mem::replace(&mut self.pool, pool).set_active(false);
        self.canvas = canvas;
        Ok(())
    }

    /// What went wrong, if anything did.
    pub(super) fn error(&self) -> Option<String> {
        let message = self.pipeline.0.bus()?.pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => Some(error.error().to_string()),
            _ => None,
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // An active pool keeps its memory.
        let _ = self.pool.set_active(false);
    }
}

/// Caps, picture and buffers of one size.
fn picture(
    row: &EncoderRow,
    size: PixelSize,
    rate: FrameRate,
) -> Result<(gst::Caps, Canvas, gst::BufferPool), String> {
    let caps = encoder::picture_caps(row.layout, size, rate);
    let info = gst_video::VideoInfo::from_caps(&caps).map_err(|error| error.to_string())?;
    let canvas = Canvas::new(size, encoder::layout(row.layout, &info));
    let pool = encoder::pool(&caps, &info)?;
    Ok((caps, canvas, pool))
}

/// Conditions every access unit on the encoder's thread and delivers it.
fn deliver(sink: &AppSink, row: &'static EncoderRow, origin: Monotonic, desk: &Arc<Desk>) {
    let desk = Arc::clone(desk);
    let mut conditioner = Conditioner::new();
    let mut size = None;
    let callbacks = AppSinkCallbacks::builder().new_sample(move |sink| {
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
        let time = running_time(&sample).unwrap_or_default();
        let Some((data, _)) = elements::unit(&sample) else {
            return Ok(gst::FlowSuccess::Ok);
        };
        let unit = match conditioner.condition(data) {
            Ok(unit) => unit,
            Err(refusal) => {
                tracing::warn!(encoder = row.element, %refusal, "an encoder put out something odd");
                return Err(gst::FlowError::Error);
            }
        };
        let now = unit.sps.as_ref().map(|sps| sps.visible_size());
        if let Some(now) = now.filter(|now| size != Some(*now)) {
            desk.event(match size.replace(now) {
                None => CaptureEvent::Started {
                    encoder: row.element,
                    hardware: row.hardware,
                    size: now,
                },
                Some(_) => CaptureEvent::SizeChanged(now),
            });
        }
        desk.unit(CapturedUnit {
            data: unit.data,
            idr: unit.idr,
            captured: origin + time.into(),
        });
        Ok(gst::FlowSuccess::Ok)
    });
    sink.set_callbacks(callbacks.build());
}

/// When the picture of `sample` was taken, counted from the graph's origin. Encoders move timestamps, x264enc by a
/// thousand hours, and say so in the segment.
fn running_time(sample: &gst::Sample) -> Option<gst::ClockTime> {
    let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
    segment.to_running_time(sample.buffer()?.pts()?)
}
