//! A decoder run on a few access units outside any connection, bounded in time.

use std::time::Duration;

use bytes::Bytes;
use gst::prelude::*;
use gst_app::{AppSink, AppSrc};

use super::frame::GstFrame;
use super::{elements, samples};
use crate::plan::decode::DecodePlan;
use crate::plan::decoders::DecoderRow;
use crate::plan::shape::StreamShape;

/// A small pipeline around one decoder.
pub(super) struct Trial {
    pipeline: gst::Pipeline,
    source: AppSrc,
    sink: AppSink,
    pushed: u64,
}

impl Trial {
    /// Opens the decoder of `row`; may block in a driver.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(row: &DecoderRow, shape: &StreamShape) -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let plan = DecodePlan::new(row, shape, cores);
        let trial = Self {
            pipeline: gst::Pipeline::new(),
            source: elements::unit_source(),
            sink: AppSink::builder()
                .sync(false)
                .async_(false)
                .enable_last_sample(false)
                .build(),
            pushed: 0,
        };
        trial.sink.set_caps(Some(&elements::picture_caps(&plan)));
        elements::answer_allocation(&trial.sink, plan.allocation);
        let mut chain: Vec<gst::Element> = vec![trial.source.clone().upcast()];
        chain.push(elements::make("h264parse", &[("config-interval", "-1")])?);
        chain.push(elements::unit_caps_filter()?);
        chain.extend(elements::decoder(&plan)?);
        chain.push(trial.sink.clone().upcast());
        elements::add_and_link(&trial.pipeline, &chain)?;
        match trial.pipeline.set_state(gst::State::Playing) {
            Ok(_) => Ok(trial),
            Err(error) => Err(trial
                .error()
                .unwrap_or_else(|| format!("cannot be opened ({error})"))),
        }
    }

    /// Hands over an access unit.
    ///
    /// # Errors
    /// When the graph takes none.
    pub fn push(&mut self, data: &Bytes) -> Result<(), String> {
        /// Any steady clock does; nothing is shown.
        const STEP: gst::ClockTime = gst::ClockTime::from_mseconds(16);
        let mut buffer = gst::Buffer::from_slice(data.clone());
        let fresh = buffer.get_mut().expect("a new buffer has one owner");
        fresh.set_pts(STEP * self.pushed);
        self.pushed += 1;
        self.source
            .push_buffer(buffer)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    /// Says that no access unit follows.
    pub fn end(&self) {
        let _ = self.source.end_of_stream();
    }

    /// The next picture, waited for at most `patience`.
    pub fn pull(&self, patience: Duration) -> Option<gst::Sample> {
        let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        self.sink.try_pull_sample(gst::ClockTime::from_nseconds(patience))
    }

    /// What the decoder complained about, if anything.
    pub fn error(&self) -> Option<String> {
        let message = self.pipeline.bus()?.pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => Some(error.error().to_string()),
            _ => None,
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// The samples of the picture `row` makes of one IDR access unit, in canonical order.
///
/// # Errors
/// Why there is none.
pub(super) fn first_picture(
    row: &DecoderRow,
    idr: &Bytes,
    shape: &StreamShape,
    patience: Duration,
) -> Result<Vec<u8>, String> {
    let mut trial = Trial::open(row, shape)?;
    trial.push(idr)?;
    trial.end();
    let sample = trial.pull(patience).ok_or("shows no picture")?;
    let mut picture = Vec::new();
    let frame = GstFrame::new(&sample, shape)?;
    samples::append(&frame, shape.visible, &mut picture).map_err(|error| error.to_string())?;
    Ok(picture)
}
