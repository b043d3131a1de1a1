//! One disposable GStreamer graph: built for one decoder try, thrown away with it.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crossdesk_core::time::Monotonic;
use gst::prelude::*;
use gst_app::{AppSink, AppSinkCallbacks};

use super::Unit;
use super::gate::Gate;
use super::inbox::{Inbox, Report};
use super::tap::Tap;
use crate::clock;
use crate::gst::elements;
use crate::gst::tag::Tag;
use crate::plan::decode::{DecodePlan, QUEUE_BYTES, QUEUE_UNITS, SINK_PICTURES};

/// Where a graph reports.
#[derive(Clone)]
pub(super) struct Hooks {
    pub attempt: u32,
    pub inbox: Arc<Inbox>,
    pub tap: Arc<Tap>,
}

/// Why a graph did not take an access unit.
pub(super) enum NotPushed {
    /// Too many wait for the decoder already: more arrive at once than any stream sends, or it is stuck.
    Full,
    /// It has stopped, for this reason.
    Broken(String),
}

/// A playing graph. Dropping it without [`dispose`](Self::dispose) disposes of it too.
pub(super) struct Graph {
    pipeline: gst::Pipeline,
    /// Where access units enter. The worker pushes them through the parser and to the tap itself: a source
    /// element would put one more thread, and its wake-up, on the way of each picture.
    entry: gst::Pad,
    queue: gst::Element,
    pictures: AppSink,
    gate: Arc<Gate>,
    disposed: bool,
}

impl Graph {
    /// Builds the graph of `plan` and sets it playing. May block in a driver: call it on a spare thread.
    pub fn open(plan: &DecodePlan, hooks: &Hooks) -> Result<Self, String> {
        let entry = elements::unit_entry();
        let parser = elements::make("h264parse", &[("config-interval", "-1")])?;
        let caps = elements::unit_caps_filter()?;
        let tee = elements::make("tee", &[])?;
        let queue = queue()?;
        let decoder = elements::decoder(plan)?;
        let tap = tap_sink(hooks);
        let pictures = picture_sink(plan, hooks);

        let mut graph = Self {
            pipeline: gst::Pipeline::new(),
            entry,
            queue,
            pictures,
            gate: Arc::default(),
            disposed: false,
        };
        let mut chain = vec![graph.queue.clone()];
        chain.extend(decoder);
        chain.push(graph.pictures.clone().upcast());
        let first = parser.static_pad("sink").expect("a parser has a sink pad");
        let front = [parser, caps, tee.clone()];
        elements::add_and_link(&graph.pipeline, &front)?;
        elements::add_and_link(&graph.pipeline, &[tap.clone().upcast()])?;
        elements::add_and_link(&graph.pipeline, &chain)?;
        graph.entry.link(&first).map_err(|error| error.to_string())?;
        // The tap's branch is requested first: it gets each unit before the decoder does.
        tee.link(&tap)
            .and_then(|()| tee.link(&graph.queue))
            .map_err(|error| error.to_string())?;
        skip_undecoded(&graph.queue);
        graph.gate.clone().guard(&graph.queue);
        watch(&graph.pipeline, hooks);
        if let Err(error) = graph.pipeline.set_state(gst::State::Playing) {
            graph.shut();
            return Err(format!("cannot be opened ({error})"));
        }
        if !elements::open_entry(&graph.entry) {
            return Err("takes no access units".to_owned());
        }
        Ok(graph)
    }

    /// Hands over an access unit; `decode` says whether the decoder is to see it.
    pub fn push(&self, unit: &Unit, decode: bool) -> Result<(), NotPushed> {
        // The push below ends in this queue and would wait for room in it.
        let waiting: u32 = self.queue.property("current-level-buffers");
        if waiting >= QUEUE_UNITS {
            return Err(NotPushed::Full);
        }
        let mut buffer = gst::Buffer::from_slice(unit.data.clone());
        let fresh = buffer.get_mut().expect("a new buffer has one owner");
        fresh.set_pts(unit.pts);
        fresh.set_dts(unit.pts);
        if !unit.idr {
            fresh.set_flags(gst::BufferFlags::DELTA_UNIT);
        }
        let tag = Tag {
            sequence: unit.sequence,
            received: unit.received,
            idr: unit.idr,
            decode,
        };
        tag.attach(fresh);
        match self.entry.push(buffer) {
            // An element that fails says why on the bus, and has by now.
            Ok(_) | Err(gst::FlowError::Error) => Ok(()),
            Err(error) => Err(NotPushed::Broken(format!("takes no access unit ({error})"))),
        }
    }

    /// Access units and bytes that wait for the decoder.
    pub fn backlog(&self) -> (usize, usize) {
        let units: u32 = self.queue.property("current-level-buffers");
        let bytes: u32 = self.queue.property("current-level-bytes");
        (units as usize, bytes as usize)
    }

    /// The next decoded picture, if one waits.
    pub fn pull(&self) -> Option<gst::Sample> {
        self.pictures.try_pull_sample(gst::ClockTime::ZERO)
    }

    /// The next decoded picture, waited for until `deadline`; `None` also after the last one.
    pub fn pull_until(&self, deadline: Monotonic) -> Option<gst::Sample> {
        let left = u64::try_from(deadline.since(clock::now()).as_micros()).unwrap_or(u64::MAX);
        self.pictures.try_pull_sample(gst::ClockTime::from_useconds(left))
    }

    /// What stands between the queue and the decoder.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Says that no access unit follows.
    pub fn end(&self) {
        self.entry.push_event(gst::event::Eos::new());
    }

    fn shut(&mut self) {
        self.gate.open();
        if !std::mem::replace(&mut self.disposed, true) {
            let _ = self.pipeline.set_state(gst::State::Null);
        }
    }

    /// Throws the graph away on a spare thread, because a hung decoder blocks whoever stops it; waits for
    /// that at most `patience`.
    pub fn dispose(mut self, patience: Duration) {
        let (done, finished) = mpsc::sync_channel(1);
        let pipeline = self.pipeline.clone();
        self.disposed = true;
        self.gate.open();
        let work = move || {
            let _ = pipeline.set_state(gst::State::Null);
            let _ = done.send(());
        };
        let spare = std::thread::Builder::new()
            .name("graph-end".to_owned())
            .spawn(work);
        if spare.is_ok() && !patience.is_zero() {
            let _ = finished.recv_timeout(patience);
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.shut();
    }
}

fn queue() -> Result<gst::Element, String> {
    elements::make(
        "queue",
        &[
            ("max-size-buffers", &QUEUE_UNITS.to_string()),
            ("max-size-bytes", &QUEUE_BYTES.to_string()),
            ("max-size-time", "0"),
            ("silent", "true"),
        ],
    )
}

fn tap_sink(hooks: &Hooks) -> AppSink {
    let Hooks { attempt, tap, .. } = hooks.clone();
    let publish = move |sink: &AppSink| {
        if let Ok(sample) = sink.pull_sample()
            && let Some(buffer) = sample.buffer_owned()
        {
            drop(sample);
            tap.publish(attempt, buffer);
        }
        Ok(gst::FlowSuccess::Ok)
    };
    AppSink::builder()
        .name("tap")
        .sync(false)
        .async_(false)
        .enable_last_sample(false)
        .max_buffers(SINK_PICTURES)
        .callbacks(AppSinkCallbacks::builder().new_sample(publish).build())
        .build()
}

/// Nothing is dropped here: a full sink makes the decoder wait, the backlog before it grows, and the worker
/// decides. Pictures are only few and the worker takes them at once, so this is the exception.
fn picture_sink(plan: &DecodePlan, hooks: &Hooks) -> AppSink {
    let inbox = hooks.inbox.clone();
    let nudge = move |_: &AppSink| {
        inbox.nudge();
        Ok(gst::FlowSuccess::Ok)
    };
    let Hooks { attempt, inbox, .. } = hooks.clone();
    let drained = move |_: &AppSink| {
        drop(inbox.report(Report::Drained { attempt }));
    };
    let sink = AppSink::builder()
        .name("pictures")
        .sync(false)
        .async_(false)
        .enable_last_sample(false)
        .max_buffers(SINK_PICTURES)
        .callbacks(AppSinkCallbacks::builder().new_sample(nudge).eos(drained).build())
        .build();
    sink.set_caps(Some(&elements::picture_caps(plan)));
    elements::answer_allocation(&sink, plan.allocation);
    sink
}

/// Keeps units marked as not to be decoded out of the decoder's queue.
fn skip_undecoded(queue: &gst::Element) {
    let pad = queue.static_pad("sink").expect("a queue has a sink pad");
    pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
        let skip = info
            .buffer()
            .and_then(|buffer| Tag::read(buffer))
            .is_some_and(|tag| !tag.decode);
        if !skip {
            return gst::PadProbeReturn::Ok;
        }
        // Not `Drop`: GStreamer 1.22 would release the buffer once more and complain.
        drop(info.data.take());
        info.flow_res = Ok(gst::FlowSuccess::Ok);
        gst::PadProbeReturn::Handled
    });
}

/// Turns error messages into reports, on whichever thread posts them; no message is kept.
fn watch(pipeline: &gst::Pipeline, hooks: &Hooks) {
    let bus = pipeline.bus().expect("a pipeline has a bus");
    let Hooks { attempt, inbox, .. } = hooks.clone();
    bus.set_sync_handler(move |_, message| {
        if let gst::MessageView::Error(error) = message.view() {
            let element = error
                .src()
                .map(|source| source.name().to_string())
                .unwrap_or_default();
            // The last line of the debug text is the decoder's own sentence; the rest is its source code.
            let debug = error.debug().unwrap_or_default();
            let detail = debug.lines().nth(1).unwrap_or_default();
            let separator = if detail.is_empty() { "" } else { " " };
            let reason = format!("{}{separator}{detail} ({element})", error.error());
            drop(inbox.report(Report::Error { attempt, reason }));
        }
        gst::BusSyncReply::Drop
    });
}
