//! The thread of a capture: watches the screen, takes pictures when they are due, changes encoders.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crossdesk_core::screen::Screen;
use crossdesk_core::time::Monotonic;

use super::desk::{Desk, Wishes};
use super::graph::Graph;
use crate::capture::{CaptureEvent, CaptureFailure};
use crate::clock;
use crate::plan::capture::{CapturePlan, CaptureSettings};
use crate::plan::still::StillGate;

/// An encoder that owes a unit for this long is given up; opening a slow driver fits in well.
const PATIENCE: Duration = Duration::from_secs(3);

/// Pictures between screen and unit: one that is encoded, one that is taken meanwhile.
const IN_FLIGHT: usize = 2;

/// Encodes until the owner leaves (`Ok`), the screen is gone or no encoder is left.
pub(super) fn run(
    screen: Box<dyn Screen>,
    settings: CaptureSettings,
    desk: &Arc<Desk>,
) -> Result<(), CaptureFailure> {
    crate::gst::init().map_err(|error| CaptureFailure::Unusable(error.to_string()))?;
    let mut reasons = Vec::new();
    let candidates: Vec<_> = settings.candidates().collect();
    let mut worker = Worker {
        gate: StillGate::new(settings.rate, settings.bitrate),
        screen,
        settings,
        desk: Arc::clone(desk),
        in_flight: VecDeque::new(),
    };
    for row in candidates {
        if gst::ElementFactory::find(row.element).is_none() {
            continue;
        }
        let plan = CapturePlan::new(row, worker.screen.size(), &worker.settings);
        tracing::info!(%plan, "trying an encoder");
        match worker.encode(&plan) {
            Ok(()) => return Ok(()),
            Err(End::Screen(error)) => return Err(CaptureFailure::Screen(error)),
            Err(End::Encoder(reason)) => {
                tracing::warn!(encoder = row.element, reason, "an encoder does not work");
                reasons.push(format!("{}: {reason}", row.element));
                let encoder = row.element;
                desk.event(CaptureEvent::EncoderFailed { encoder, reason });
            }
        }
    }
    if reasons.is_empty() {
        reasons.push("none is installed; x264enc is in gstreamer1.0-plugins-ugly".to_owned());
    }
    Err(CaptureFailure::NoEncoder(reasons.join("; ")))
}

/// Why an encoder stopped.
enum End {
    Screen(crossdesk_core::screen::ScreenError),
    Encoder(String),
}

struct Worker {
    screen: Box<dyn Screen>,
    settings: CaptureSettings,
    desk: Arc<Desk>,
    gate: StillGate,
    /// When each picture was taken whose unit has not come out.
    in_flight: VecDeque<Monotonic>,
}

impl Worker {
    /// Feeds one encoder until the owner leaves (`Ok`) or something ends.
    fn encode(&mut self, plan: &CapturePlan) -> Result<(), End> {
        self.in_flight.clear();
        self.gate = StillGate::new(self.settings.rate, self.settings.bitrate);
        let mut graph = Graph::start(plan, clock::now(), &self.desk).map_err(End::Encoder)?;
        let mut fresh = true;
        loop {
            let wishes = self.desk.take_wishes();
            if wishes.stop {
                return Ok(());
            }
            self.apply(&wishes, &mut graph).map_err(End::Encoder)?;
            self.note_units();
            let now = clock::now();
            self.check(&graph, now).map_err(End::Encoder)?;
            let room = self.in_flight.len() < IN_FLIGHT && graph.waiting() == 0;
            let left = self.gate.due().since(now);
            if room && left.is_zero() {
                self.take(&mut graph, now, std::mem::take(&mut fresh))?;
                continue;
            }
            // Without room, the next unit wakes this thread; it looks after the encoder meanwhile.
            let timeout = if room { left } else { PATIENCE };
            if self.screen.wait(timeout).map_err(End::Screen)? {
                self.gate.changed(clock::now());
            }
        }
    }

    fn apply(&mut self, wishes: &Wishes, graph: &mut Graph) -> Result<(), String> {
        if wishes.keyframe {
            graph.ask_for_keyframe();
            self.gate.ask();
        }
        if let Some(bitrate) = wishes.bitrate {
            self.settings.bitrate = bitrate;
            graph.set_bitrate(bitrate);
        }
        if let Some(rate) = wishes.rate.filter(|rate| *rate != self.settings.rate) {
            self.settings.rate = rate;
            graph.set_rate(rate)?;
            self.gate.ask();
        }
        if let Some(size) = wishes.size {
            self.settings.size = size;
            graph.set_size(size);
            self.gate.ask();
        }
        self.gate.set(self.settings.rate, self.settings.bitrate);
        Ok(())
    }

    fn note_units(&mut self) {
        for report in self.desk.take_reports() {
            self.gate.unit(report.bytes);
            // An encoder may leave a picture out; it will not come after a later one.
            while self
                .in_flight
                .front()
                .is_some_and(|taken| *taken <= report.captured)
            {
                self.in_flight.pop_front();
            }
        }
    }

    fn check(&self, graph: &Graph, now: Monotonic) -> Result<(), String> {
        if let Some(error) = graph.error() {
            return Err(error);
        }
        match self.in_flight.front() {
            Some(oldest) if now.since(*oldest) >= PATIENCE => Err("it yields nothing".to_owned()),
            _ => Ok(()),
        }
    }

    /// Takes a picture and gives it to the encoder; all of it when the encoder is `fresh`.
    fn take(&mut self, graph: &mut Graph, now: Monotonic, fresh: bool) -> Result<(), End> {
        let mut drawn = Ok(());
        let grabbed = self.screen.grab(&mut |pixels, changed| {
            let whole = [crossdesk_core::units::PixelRect::whole(pixels.size)];
            drawn = graph.draw(&pixels, if fresh { &whole } else { changed });
        });
        grabbed.map_err(End::Screen)?;
        drawn.map_err(End::Encoder)?;
        graph.push(now).map_err(End::Encoder)?;
        self.gate.take(now);
        self.in_flight.push_back(now);
        Ok(())
    }
}
