//! The worker thread: does what the failover machine asks for and tells it what happens.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crossdesk_core::h264::{Conditioner, Sps, UnitRefusal};
use crossdesk_core::time::Monotonic;

use super::Unit;
use super::graph::{Graph, Hooks, NotPushed};
use super::inbox::{Batch, Inbox, Report, Waiting};
use super::ledger::{Ledger, Record};
use super::tap::Tap;
use crate::clock;
use crate::gst::frame::GstFrame;
use crate::gst::proof::{self, Claim};
use crate::gst::registry;
use crate::gst::tag::Tag;
use crate::picture::Picture;
use crate::plan::decode::DecodePlan;
use crate::plan::decoders::{DecoderRow, Memory};
use crate::plan::failover::{Candidate, Effect, Failover};
use crate::plan::replay::{self, Replay};
use crate::plan::shape::StreamShape;
use crate::receive::{Pace, ReceiveConfig, ReceiveEvent, ReceiveOutput};

/// The decoder that shows something for every damaged picture, flat if need be.
const CONCEALING: &str = "avdec_h264";

/// Most stream time that may wait for a decoder. Pictures older than 2 s are of no use to anybody, so a slow decoder
/// must skip well before; less would let a short hiccup cost a long group of pictures.
const MAX_LAG: Duration = Duration::from_secs(1);

/// Access units a decoder gets beyond those it may hold before its first picture was accepted. A few, so that
/// a decoder that holds one more than it should still shows its first picture; not more, because its pictures
/// wait unseen in the device's few surfaces until then.
const PROOF_AHEAD: u32 = 4;
/// How long a sound graph may take to give its last pictures when the stream changes into one that its
/// settings do not fit. Nothing is decoded meanwhile.
const DRAIN_PATIENCE: Duration = Duration::from_millis(100);
/// In lossless pace, access units given to the decoder ahead of its pictures: enough for any reordering.
const LOSSLESS_WINDOW: usize = 24;
/// In lossless pace nothing says that a decoder consumed a unit without showing a picture, so look.
const LOSSLESS_LOOK: Duration = Duration::from_millis(5);
/// How long the end of a connection waits for a graph to stop; a sane one takes a millisecond.
const STOP_PATIENCE: Duration = Duration::from_millis(500);

/// A picture whose decoder is not trusted yet.
struct Held {
    record: Record,
    frame: GstFrame,
    decoded: Monotonic,
}

/// What is being done to believe the running decoder.
enum Proof {
    /// Nothing: it is trusted, or not running.
    None,
    /// The picture of this IDR is awaited; `None` until an IDR went in.
    Awaited(Option<Unit>),
    /// The picture of this access unit is being compared on a spare thread.
    Compared(u32),
}

pub(super) struct Worker {
    inbox: Arc<Inbox>,
    output: Arc<dyn ReceiveOutput>,
    tap: Arc<Tap>,
    pace: Pace,
    rows: Vec<&'static DecoderRow>,
    cores: u32,
    machine: Failover,
    conditioner: Conditioner,
    sps: Option<(Arc<Sps>, StreamShape)>,
    replay: Replay<Unit>,
    replayed_until: u32,
    newest_shown: u32,
    ledger: Ledger,
    last_pts: gst::ClockTime,
    graph: Option<(u32, Graph)>,
    proof: Proof,
    held: VecDeque<Held>,
    /// A drain was asked for and could not begin yet.
    finishing: bool,
    memory: Memory,
}

impl Worker {
    pub fn new(config: &ReceiveConfig, inbox: Arc<Inbox>, output: Arc<dyn ReceiveOutput>) -> Self {
        let rows = registry::candidates(&config.decoder);
        let machine = if rows.is_empty() {
            Failover::without_candidates(registry::why_none(&config.decoder))
        } else {
            Failover::new(rows.iter().map(|row| Candidate::from(*row)).collect())
        };
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Self {
            inbox,
            tap: Arc::new(Tap::new(output.clone())),
            output,
            pace: config.pace,
            rows,
            cores,
            machine,
            conditioner: Conditioner::new(),
            sps: None,
            replay: Replay::default(),
            replayed_until: 0,
            newest_shown: 0,
            ledger: Ledger::default(),
            last_pts: gst::ClockTime::ZERO,
            graph: None,
            proof: Proof::None,
            held: VecDeque::new(),
            finishing: false,
            memory: Memory::System,
        }
    }

    pub fn run(mut self) {
        loop {
            self.do_effects();
            let room = self.room();
            let Batch {
                units,
                reports,
                pictures,
                finish,
                stop,
            } = self.inbox.take(room, self.deadline(room));
            for report in reports {
                self.handle_report(report);
            }
            if stop {
                break;
            }
            if pictures {
                self.take_pictures();
            }
            for unit in units {
                self.take_unit(unit);
            }
            self.finishing |= finish;
            self.finish_when_settled();
            self.machine.handle_timeout(clock::now());
        }
        if let Some((_, graph)) = self.graph.take() {
            graph.dispose(STOP_PATIENCE);
        }
    }

    /// How many access units may be taken now.
    fn room(&self) -> usize {
        match (self.pace, &self.graph) {
            (Pace::Live, _) => usize::MAX,
            (Pace::Lossless, Some((_, graph))) => LOSSLESS_WINDOW.saturating_sub(graph.backlog().0),
            (Pace::Lossless, None) => usize::from(!self.machine.is_opening()),
        }
    }

    fn deadline(&self, room: usize) -> Option<Monotonic> {
        let look = (room == 0 && self.graph.is_some()).then(|| clock::now() + LOSSLESS_LOOK);
        let due = self.machine.next_deadline();
        look.into_iter().chain(due).min()
    }

    fn take_unit(&mut self, waiting: Waiting) {
        let now = clock::now();
        if waiting.after_loss {
            self.lose(now);
        }
        let conditioned = match self.conditioner.condition(waiting.data) {
            Ok(conditioned) => conditioned,
            Err(refusal) => {
                if let UnitRefusal::PictureTooLarge(_) = refusal {
                    self.machine.handle_unsupported(refusal.to_string());
                }
                self.output.event(ReceiveEvent::UnitRefused {
                    sequence: waiting.sequence,
                    reason: refusal.to_string(),
                });
                self.lose(now);
                return;
            }
        };
        if !conditioned.has_picture {
            return;
        }
        let Some(shape) = conditioned.sps.and_then(|sps| self.shape_of(sps)) else {
            self.lose(now);
            return;
        };
        let follows = self.last_pts + gst::ClockTime::from_nseconds(1);
        self.last_pts = gst::ClockTime::from_useconds(waiting.received.as_micros()).max(follows);
        let unit = Unit {
            sequence: waiting.sequence,
            received: waiting.received,
            pts: self.last_pts,
            idr: conditioned.idr,
            data: conditioned.data,
            shape,
        };
        self.ledger.enter(&unit);
        self.replay.push(unit.clone(), unit.data.len(), unit.idr);
        if unit.idr {
            self.machine.handle_idr(now, &shape);
            self.do_effects();
        }
        let congested = self.pace == Pace::Live && self.is_congested(unit.received);
        let decode = self.machine.admit(now, unit.idr, congested);
        self.feed(&unit, decode);
    }

    /// The shape an SPS describes; remembered, because most units share one.
    fn shape_of(&mut self, sps: Arc<Sps>) -> Option<StreamShape> {
        if !self
            .sps
            .as_ref()
            .is_some_and(|(known, _)| Arc::ptr_eq(known, &sps))
        {
            let shape = StreamShape::from(&*sps);
            self.sps = Some((sps, shape));
        }
        self.sps.as_ref().map(|(_, shape)| *shape)
    }

    /// Units are missing: what follows cannot be decoded before the next IDR.
    fn lose(&mut self, now: Monotonic) {
        self.replay.clear();
        self.machine.handle_lost(now);
    }

    /// True when the decoder's queue has no room for a live unit, or holds more than is still worth showing. A
    /// replayed group in it does not count.
    fn is_congested(&self, newest: Monotonic) -> bool {
        let Some((attempt, graph)) = &self.graph else {
            return false;
        };
        let (units, bytes) = graph.backlog();
        let replaying = self.newest_shown < self.replayed_until;
        let groups = if replaying { 2 } else { 1 };
        let oldest = self
            .machine
            .oldest_pending()
            .and_then(|oldest| self.ledger.by_sequence(oldest));
        let lag = oldest.map_or(Duration::ZERO, |oldest| newest.since(oldest.received));
        let late = !replaying && self.machine.trusts(*attempt) && lag >= MAX_LAG;
        late || units >= groups * replay::MAX_UNITS || bytes >= groups * replay::MAX_BYTES
    }

    /// Gives a unit to the graph, when one takes units.
    fn feed(&mut self, unit: &Unit, decode: bool) {
        let Some(attempt) = self.machine.feeding() else {
            return;
        };
        let Some((_, graph)) = self.graph.as_ref().filter(|(current, _)| *current == attempt) else {
            return;
        };
        if let (Proof::Awaited(idr @ None), true) = (&mut self.proof, unit.idr && decode) {
            *idr = Some(unit.clone());
            graph.gate().hold_after(
                unit.sequence
                    .saturating_add(self.machine.may_hold() + PROOF_AHEAD),
            );
        }
        let now = clock::now();
        match graph.push(unit, decode) {
            Ok(()) if decode => self.machine.handle_fed(now, attempt, unit.sequence),
            Ok(()) => {}
            Err(NotPushed::Full) => self.lose(now),
            Err(NotPushed::Broken(reason)) => self.machine.handle_failure(now, attempt, &reason),
        }
    }

    fn do_effects(&mut self) {
        while let Some(effect) = self.machine.poll_effect() {
            match effect {
                Effect::Start {
                    attempt,
                    candidate,
                    shape,
                } => self.start(attempt, candidate, &shape),
                Effect::Prove { .. } => self.proof = Proof::Awaited(None),
                Effect::Stop { attempt, drain } => self.stop(attempt, drain),
                Effect::Selected { candidate } => {
                    let row = self.rows[candidate];
                    self.output.event(ReceiveEvent::DecoderSelected {
                        name: row.factory.to_owned(),
                        hardware: row.hardware,
                        memory: self.memory.as_str().to_owned(),
                    });
                }
                Effect::Report(event) => self.output.event(event),
            }
        }
    }

    fn start(&mut self, attempt: u32, candidate: usize, shape: &StreamShape) {
        self.tap.switch_to(attempt);
        self.proof = Proof::Awaited(None);
        let plan = DecodePlan::new(self.rows[candidate], shape, self.cores);
        tracing::debug!(%plan, attempt, "opening a decoder");
        let hooks = Hooks {
            attempt,
            inbox: self.inbox.clone(),
            tap: self.tap.clone(),
        };
        let open = move || {
            let result = Graph::open(&plan, &hooks).map(Box::new);
            // Nobody reads it any more: the graph is disposed of here, on this thread.
            drop(hooks.inbox.report(Report::Opened { attempt, result }));
        };
        let spawned = std::thread::Builder::new()
            .name("graph-open".to_owned())
            .spawn(open);
        if let Err(error) = spawned {
            let reason = format!("no thread to open it: {error}");
            self.machine.handle_opened(clock::now(), attempt, Err(reason));
        }
    }

    fn stop(&mut self, attempt: u32, drain: bool) {
        let Some((_, graph)) = self.graph.take_if(|(current, _)| *current == attempt) else {
            return;
        };
        if drain {
            self.drain(attempt, &graph);
        }
        self.held.clear();
        self.proof = Proof::None;
        graph.dispose(Duration::ZERO);
    }

    /// Takes the last pictures of a sound graph that another one follows.
    fn drain(&mut self, attempt: u32, graph: &Graph) {
        graph.end();
        let deadline = clock::now() + DRAIN_PATIENCE;
        while let Some(sample) = graph.pull_until(deadline) {
            if self.take_picture(attempt, &sample).is_err() {
                return;
            }
        }
    }

    fn handle_report(&mut self, report: Report) {
        let now = clock::now();
        match report {
            Report::Opened { attempt, result } => self.handle_opened(now, attempt, result),
            Report::Error { attempt, reason } => {
                // Pictures it gave before it died are good.
                self.take_pictures();
                self.machine.handle_failure(now, attempt, &reason);
            }
            Report::Drained { attempt } if self.machine.is_current(attempt) => {
                self.take_pictures();
                self.machine.handle_drained(attempt);
                self.do_effects();
                self.output.event(ReceiveEvent::Drained);
            }
            Report::Verdict { attempt, verdict } if self.machine.is_current(attempt) => {
                self.proof = Proof::None;
                self.machine.handle_verdict(now, attempt, verdict);
                self.do_effects();
                self.release_held(attempt);
            }
            Report::Drained { .. } | Report::Verdict { .. } => {}
        }
        self.do_effects();
    }

    fn handle_opened(&mut self, now: Monotonic, attempt: u32, result: Result<Box<Graph>, String>) {
        match result {
            Ok(graph) if self.machine.is_current(attempt) => {
                self.graph = Some((attempt, *graph));
                self.machine.handle_opened(now, attempt, Ok(()));
                self.replay_group(now);
            }
            Ok(late) => late.dispose(Duration::ZERO),
            Err(reason) => self.machine.handle_opened(now, attempt, Err(reason)),
        }
    }

    fn replay_group(&mut self, now: Monotonic) {
        if !self.replay.is_complete() {
            self.machine.handle_lost(now);
            return;
        }
        let group: Vec<Unit> = self.replay.iter().cloned().collect();
        self.replayed_until = group.last().map_or(0, |unit| unit.sequence);
        for unit in &group {
            let decode = self.machine.admit(now, unit.idr, false);
            self.feed(unit, decode);
        }
    }

    fn take_pictures(&mut self) {
        while let Some((attempt, graph)) = &self.graph
            && let Some(sample) = graph.pull()
        {
            let attempt = *attempt;
            if let Err(reason) = self.take_picture(attempt, &sample) {
                self.machine.handle_failure(clock::now(), attempt, &reason);
            }
            self.do_effects();
        }
    }

    fn take_picture(&mut self, attempt: u32, sample: &gst::Sample) -> Result<(), String> {
        let now = clock::now();
        let buffer = sample.buffer().ok_or("gives empty pictures")?;
        let record = match Tag::read(buffer) {
            Some(tag) => self.ledger.by_sequence(tag.sequence),
            None => buffer.pts().and_then(|pts| self.ledger.by_pts(pts)),
        };
        let Some(record) = record else { return Ok(()) };
        let sequence = record.sequence;
        let frame = GstFrame::new(sample, &record.shape)?;
        self.newest_shown = self.newest_shown.max(sequence);
        self.machine.handle_picture(now, attempt, sequence);
        let awaited = match &self.proof {
            Proof::Awaited(Some(idr)) if sequence >= idr.sequence => Some(idr.clone()),
            Proof::Compared(first) if sequence >= *first => {
                self.hold(record, frame, now);
                return Ok(());
            }
            _ => None,
        };
        match awaited {
            Some(idr) => self.prove(attempt, &idr, sample, (record, frame)),
            None => {
                let frame = frame.complaining_to(Arc::downgrade(&self.inbox), attempt);
                self.deliver(record, frame, now);
                Ok(())
            }
        }
    }

    /// Looks at the first picture: software at once, hardware against a reference on a spare thread.
    fn prove(
        &mut self,
        attempt: u32,
        idr: &Unit,
        sample: &gst::Sample,
        (record, frame): (Record, GstFrame),
    ) -> Result<(), String> {
        let now = clock::now();
        self.memory = memory_of(sample);
        let claim = Claim {
            idr: idr.data.clone(),
            shape: idr.shape,
            frame: GstFrame::new(sample, &record.shape)?,
        };
        let Some(row) = self
            .machine
            .current_candidate()
            .map(|candidate| self.rows[candidate])
        else {
            return Ok(());
        };
        self.hold(record, frame, now);
        if !row.hardware {
            self.proof = Proof::None;
            // libavcodec conceals a damaged IDR with one colour and says nothing: that is the stream's fault.
            if row.factory != CONCEALING {
                proof::plausible(&claim)?;
            }
            self.machine.handle_verdict(now, attempt, Ok(()));
            self.do_effects();
            self.release_held(attempt);
            return Ok(());
        }
        self.proof = Proof::Compared(idr.sequence);
        let inbox = self.inbox.clone();
        let compare = move || {
            let verdict = proof::judge(&claim, row);
            drop(claim);
            drop(inbox.report(Report::Verdict { attempt, verdict }));
        };
        let spawned = std::thread::Builder::new()
            .name("graph-proof".to_owned())
            .spawn(compare);
        spawned
            .map(drop)
            .map_err(|error| format!("no thread to prove it: {error}"))
    }

    /// Keeps a picture until its decoder is believed; bounded by what the decoder is given until then.
    fn hold(&mut self, record: Record, frame: GstFrame, decoded: Monotonic) {
        self.held.push_back(Held {
            record,
            frame,
            decoded,
        });
    }

    fn release_held(&mut self, attempt: u32) {
        if !self.machine.trusts(attempt) {
            return;
        }
        for held in std::mem::take(&mut self.held) {
            let frame = held.frame.complaining_to(Arc::downgrade(&self.inbox), attempt);
            self.deliver(held.record, frame, held.decoded);
        }
        if let Some((_, graph)) = &self.graph {
            graph.gate().open();
        }
    }

    fn deliver(&mut self, record: Record, frame: GstFrame, decoded: Monotonic) {
        let Some(numbers) = self.ledger.deliver(record.sequence) else {
            return;
        };
        self.output.picture(Picture {
            size: record.shape.visible,
            color: record.shape.color,
            sequence: numbers.sequence,
            geometry_epoch: numbers.geometry_epoch,
            received: record.received,
            decoded,
            frame: Arc::new(frame),
        });
    }

    /// Ends the stream for the decoder, once it was given everything.
    fn finish_when_settled(&mut self) {
        if !self.finishing || self.machine.is_opening() {
            return;
        }
        self.finishing = false;
        match &self.graph {
            Some((_, graph)) => graph.end(),
            None => self.output.event(ReceiveEvent::Drained),
        }
    }
}

impl From<&'static DecoderRow> for Candidate {
    fn from(row: &'static DecoderRow) -> Self {
        Self {
            name: row.factory,
            hardware: row.hardware,
            chroma: row.chroma,
            holds: row.holds,
        }
    }
}

/// Where the picture in `sample` lives.
fn memory_of(sample: &gst::Sample) -> Memory {
    let features = sample.caps().and_then(|caps| caps.features(0));
    let feature = features.and_then(|features| features.iter().next());
    feature
        .and_then(|feature| Memory::from_caps_feature(feature.as_str()))
        .unwrap_or(Memory::System)
}
