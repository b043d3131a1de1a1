//! Which decoder runs, when it is believed, and who follows when it fails: a machine on virtual time.
//!
//! The owner feeds it what happens (`handle_*`), does what [`Failover::poll_effect`] asks for, and calls
//! [`Failover::handle_timeout`] at [`Failover::next_deadline`]. Rules:
//!
//! - A candidate is opened, then proven on the stream's own first IDR, then trusted.
//! - Hardware that fails in any way is out for the life of the connection; the next candidate replays the
//!   current group of pictures.
//! - Software that has shown good pictures is never out: the stream is to blame, and it starts again at the
//!   next IDR. So does the last software candidate when it cannot even be proven.
//! - Silence is failure: two seconds while opening or proving, half a second later on, but only while more
//!   access units are outstanding than a correct decoder may hold.

use std::collections::VecDeque;
use std::time::Duration;

use crossdesk_core::h264::ChromaFormat;
use crossdesk_core::time::Monotonic;

use super::shape::StreamShape;
use crate::receive::{DecoderFailure, FailureStage, ReceiveEvent, ReceiveFailure};

/// A decoder that neither opens nor shows its first picture in this time hangs (issue of drivers that block
/// in their first call; a working one needs some tens of milliseconds, a cold GPU some hundreds).
pub const HANG: Duration = Duration::from_secs(2);
/// A trusted decoder may be silent this long while access units arrive.
pub const STALL: Duration = Duration::from_millis(500);
/// Least time between two wishes for a keyframe; the automation protocol allows viewers the same rate.
pub const WISH_INTERVAL: Duration = Duration::from_secs(1);
/// The last software candidate has failed this often in a row without a picture: say so, and keep trying.
const HOPELESS: u32 = 3;
/// Outstanding access units remembered; beyond that a decoder is long past every limit.
const MAX_PENDING: usize = 256;

/// One decoder that may be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// GStreamer factory name.
    pub name: &'static str,
    /// True when it decodes on a GPU or codec device.
    pub hardware: bool,
    /// Chroma formats it may be given.
    pub chroma: &'static [ChromaFormat],
    /// Pictures it holds back beyond what the stream asks for.
    pub holds: u32,
}

/// What the owner must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Build a graph for a candidate, on a spare thread, and answer with [`Failover::handle_opened`].
    Start {
        /// Number of this try; everything the graph reports carries it.
        attempt: u32,
        /// Index into the candidates.
        candidate: usize,
        /// The stream it is built for.
        shape: StreamShape,
    },
    /// Check the next IDR's picture of the running graph; answer with [`Failover::handle_verdict`].
    Prove {
        /// The running try.
        attempt: u32,
    },
    /// Abandon the graph of this try.
    Stop {
        /// The try that is over.
        attempt: u32,
        /// True when nothing is wrong with it: the pictures it still has are to be delivered.
        drain: bool,
    },
    /// This candidate's pictures are delivered from now on.
    Selected {
        /// Index into the candidates.
        candidate: usize,
    },
    /// Tell the user of the receiver.
    Report(ReceiveEvent),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening { since: Monotonic },
    Proving { seen: Option<Monotonic> },
    Trusted,
}

#[derive(Debug)]
struct Run {
    attempt: u32,
    candidate: usize,
    stage: Stage,
    shape: StreamShape,
    pending: VecDeque<u32>,
    silent_since: Option<Monotonic>,
}

/// The machine; see the module's header.
#[derive(Debug)]
pub struct Failover {
    candidates: Vec<Candidate>,
    out: Vec<bool>,
    run: Option<Run>,
    preferred: Option<usize>,
    selected: Option<usize>,
    attempts: u32,
    fruitless: u32,
    complaint: Option<(ReceiveFailure, String)>,
    gate_open: bool,
    wished: Option<Monotonic>,
    effects: VecDeque<Effect>,
}

impl Failover {
    /// A machine that tries `candidates` in this order.
    pub fn new(candidates: Vec<Candidate>) -> Self {
        Self {
            out: vec![false; candidates.len()],
            candidates,
            run: None,
            preferred: None,
            selected: None,
            attempts: 0,
            fruitless: 0,
            complaint: None,
            gate_open: false,
            wished: None,
            effects: VecDeque::new(),
        }
    }

    /// A machine that has nothing to try and reports `reason` at once.
    pub fn without_candidates(reason: String) -> Self {
        let mut machine = Self::new(Vec::new());
        machine.complain(ReceiveFailure::DecoderUnavailable, reason);
        machine
    }

    /// The candidates, in order.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The try in progress, when its graph is open and takes access units.
    pub fn feeding(&self) -> Option<u32> {
        let run = self.run.as_ref()?;
        (!matches!(run.stage, Stage::Opening { .. })).then_some(run.attempt)
    }

    /// True when pictures of `attempt` may be delivered.
    pub fn trusts(&self, attempt: u32) -> bool {
        self.run
            .as_ref()
            .is_some_and(|run| run.attempt == attempt && run.stage == Stage::Trusted)
    }

    /// The oldest access unit that went into the current decoder and whose picture has not come out.
    pub fn oldest_pending(&self) -> Option<u32> {
        self.run.as_ref()?.pending.front().copied()
    }

    /// True while a graph is being opened.
    pub fn is_opening(&self) -> bool {
        self.run
            .as_ref()
            .is_some_and(|run| matches!(run.stage, Stage::Opening { .. }))
    }

    /// True when `attempt` is the try in progress.
    pub fn is_current(&self, attempt: u32) -> bool {
        self.run.as_ref().is_some_and(|run| run.attempt == attempt)
    }

    /// The candidate being tried, as an index.
    pub fn current_candidate(&self) -> Option<usize> {
        self.run.as_ref().map(|run| run.candidate)
    }

    /// Pictures that the current candidate may hold back of this stream.
    pub fn may_hold(&self) -> u32 {
        let Some(run) = &self.run else { return 0 };
        run.shape.depth() + self.candidates[run.candidate].holds
    }

    /// An IDR arrived, coded as `shape`; called before it is fed.
    pub fn handle_idr(&mut self, now: Monotonic, shape: &StreamShape) {
        if let Some(refused) = &shape.refused {
            self.handle_unsupported(refused.to_string());
            return;
        }
        let Some(run) = &mut self.run else {
            self.start_best(now, shape);
            return;
        };
        let old = std::mem::replace(&mut run.shape, *shape);
        let candidate = &self.candidates[run.candidate];
        if !candidate.chroma.contains(&shape.chroma) {
            self.stop();
            self.start_best(now, shape);
        } else if old.reorder_known() != shape.reorder_known()
            || old.low_delay() != shape.low_delay()
            || old.starts_cropped() != shape.starts_cropped()
            || old.frames_only != shape.frames_only
        {
            // The decoder's settings depend on this and are fixed once it runs.
            let candidate = run.candidate;
            self.stop();
            self.start(now, candidate, shape);
        } else if candidate.hardware && run.stage == Stage::Trusted && *shape != old {
            run.stage = Stage::Proving { seen: None };
            let attempt = run.attempt;
            self.effects.push_back(Effect::Prove { attempt });
        }
    }

    /// The stream turned into one that cannot be shown, until its next IDR says otherwise.
    pub fn handle_unsupported(&mut self, reason: String) {
        self.stop();
        self.complain(ReceiveFailure::StreamUnsupported, reason);
    }

    /// An access unit is on its way: true when it is to be decoded.
    ///
    /// `congested` says that the decoder's queue has no room for it.
    pub fn admit(&mut self, now: Monotonic, idr: bool, congested: bool) -> bool {
        if congested && self.gate_open {
            self.gate_open = false;
            self.effects.push_back(Effect::Report(ReceiveEvent::Overloaded));
        } else if idr && !congested {
            self.gate_open = true;
        }
        if !self.gate_open || (self.run.is_none() && self.complaint.is_none()) {
            self.wish(now);
        }
        self.gate_open
    }

    /// An access unit was lost or refused: nothing can be decoded before the next IDR.
    pub fn handle_lost(&mut self, now: Monotonic) {
        self.gate_open = false;
        self.wish(now);
    }

    /// The graph of `attempt` is open, or could not be opened.
    pub fn handle_opened(&mut self, now: Monotonic, attempt: u32, result: Result<(), String>) {
        match (self.current(attempt), result) {
            (Some(run), Ok(())) => run.stage = Stage::Proving { seen: None },
            (Some(_), Err(reason)) => self.fail(now, &reason),
            (None, _) => {}
        }
    }

    /// The access unit numbered `sequence` went into the decoder of `attempt`.
    pub fn handle_fed(&mut self, now: Monotonic, attempt: u32, sequence: u32) {
        let limit = self.limit();
        let Some(run) = self.current(attempt) else { return };
        if run.pending.len() < MAX_PENDING {
            run.pending.push_back(sequence);
        }
        if run.pending.len() > limit {
            run.silent_since.get_or_insert(now);
        }
    }

    /// The decoder of `attempt` gave the picture of access unit `sequence`.
    pub fn handle_picture(&mut self, now: Monotonic, attempt: u32, sequence: u32) {
        let limit = self.limit();
        let Some(run) = self.current(attempt) else { return };
        while run.pending.front().is_some_and(|&pending| pending <= sequence) {
            run.pending.pop_front();
        }
        run.silent_since = (run.pending.len() > limit).then_some(now);
        if let Stage::Proving { seen: seen @ None } = &mut run.stage {
            *seen = Some(now);
        }
    }

    /// The first picture was found right, or wrong for this reason.
    pub fn handle_verdict(&mut self, now: Monotonic, attempt: u32, verdict: Result<(), String>) {
        let Some(run) = self.current(attempt) else { return };
        match verdict {
            Ok(()) if matches!(run.stage, Stage::Proving { .. }) => {
                run.stage = Stage::Trusted;
                // What waited for the verdict is decoded from now on.
                run.silent_since = run.silent_since.map(|_| now);
                let candidate = run.candidate;
                self.fruitless = 0;
                self.complaint = None;
                self.preferred = Some(candidate);
                if self.selected.replace(candidate) != Some(candidate) {
                    self.effects.push_back(Effect::Selected { candidate });
                }
            }
            Ok(()) => {}
            Err(reason) => self.fail(now, &reason),
        }
    }

    /// The decoder of `attempt` reported an error, or showed something that cannot be right.
    pub fn handle_failure(&mut self, now: Monotonic, attempt: u32, reason: &str) {
        if self.current(attempt).is_some() {
            self.fail(now, reason);
        }
    }

    /// The graph of `attempt` was drained and is of no more use; the next IDR opens another.
    pub fn handle_drained(&mut self, attempt: u32) {
        if self.current(attempt).is_some() {
            self.stop();
            self.gate_open = false;
        }
    }

    /// Time has passed; silence may have become failure.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        let reason = match self.run.as_ref().map(|run| run.stage) {
            Some(Stage::Opening { .. }) => "hangs while opening",
            Some(Stage::Proving { seen: None }) => "shows no first picture",
            Some(Stage::Proving { seen: Some(_) }) => "its first picture could not be read",
            Some(Stage::Trusted) => "shows no more pictures",
            None => return,
        };
        self.fail(now, &format!("{reason} ({} ms)", self.patience().as_millis()));
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, if at all.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let run = self.run.as_ref()?;
        let since = match run.stage {
            Stage::Opening { since } => Some(since),
            Stage::Proving { seen: Some(seen) } => Some(seen),
            Stage::Proving { seen: None } | Stage::Trusted => run.silent_since,
        };
        since.map(|since| since + self.patience())
    }

    /// What is to be done next, oldest first.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn patience(&self) -> Duration {
        let trusted = self.run.as_ref().is_some_and(|run| run.stage == Stage::Trusted);
        if trusted { STALL } else { HANG }
    }

    fn current(&mut self, attempt: u32) -> Option<&mut Run> {
        self.run.as_mut().filter(|run| run.attempt == attempt)
    }

    /// Most access units that may be outstanding without a question being asked.
    ///
    /// A trusted decoder gets one more: a single damaged unit gives no picture, and nothing follows it when
    /// the screen stands still.
    fn limit(&self) -> usize {
        let trusted = self.run.as_ref().is_some_and(|run| run.stage == Stage::Trusted);
        self.may_hold() as usize + usize::from(trusted)
    }

    fn wish(&mut self, now: Monotonic) {
        if self.wished.is_none_or(|last| now.since(last) >= WISH_INTERVAL) {
            self.wished = Some(now);
            self.effects
                .push_back(Effect::Report(ReceiveEvent::KeyframeWanted));
        }
    }

    fn complain(&mut self, code: ReceiveFailure, reason: String) {
        let complaint = (code, reason.clone());
        if self.complaint.as_ref() != Some(&complaint) {
            self.complaint = Some(complaint);
            self.effects
                .push_back(Effect::Report(ReceiveEvent::Failed { code, reason }));
        }
    }

    fn stop(&mut self) {
        if let Some(run) = self.run.take() {
            self.effects.push_back(Effect::Stop {
                attempt: run.attempt,
                drain: run.stage == Stage::Trusted,
            });
        }
    }

    fn start(&mut self, now: Monotonic, candidate: usize, shape: &StreamShape) {
        self.attempts += 1;
        self.run = Some(Run {
            attempt: self.attempts,
            candidate,
            stage: Stage::Opening { since: now },
            shape: *shape,
            pending: VecDeque::new(),
            silent_since: None,
        });
        self.effects.push_back(Effect::Start {
            attempt: self.attempts,
            candidate,
            shape: *shape,
        });
    }

    fn eligible(&self, shape: &StreamShape) -> Option<usize> {
        let fits =
            |index: &usize| !self.out[*index] && self.candidates[*index].chroma.contains(&shape.chroma);
        let all = || 0..self.candidates.len();
        self.preferred.filter(fits).or_else(|| all().find(fits))
    }

    fn start_best(&mut self, now: Monotonic, shape: &StreamShape) {
        if let Some(candidate) = self.eligible(shape) {
            self.start(now, candidate, shape);
            return;
        }
        let takes = |candidate: &Candidate| candidate.chroma.contains(&shape.chroma);
        if self.candidates.is_empty() {
            // Reported when the machine was made.
        } else if self.candidates.iter().any(takes) {
            self.complain(
                ReceiveFailure::DecoderFailed,
                "every decoder was tried and failed".to_owned(),
            );
        } else {
            let reason = format!("no usable decoder takes {}", chroma_name(shape.chroma));
            self.complain(ReceiveFailure::StreamUnsupported, reason);
        }
    }

    fn fail(&mut self, now: Monotonic, reason: &str) {
        let Some(run) = self.run.take() else { return };
        let stage = match run.stage {
            Stage::Opening { .. } => FailureStage::Open,
            Stage::Proving { .. } if self.selected == Some(run.candidate) => FailureStage::Running,
            Stage::Proving { .. } => FailureStage::Proof,
            Stage::Trusted => FailureStage::Running,
        };
        let candidate = self.candidates[run.candidate].clone();
        self.effects.push_back(Effect::Stop {
            attempt: run.attempt,
            drain: false,
        });
        self.effects
            .push_back(Effect::Report(ReceiveEvent::DecoderFailed(DecoderFailure {
                name: candidate.name.to_owned(),
                stage,
                reason: reason.to_owned(),
            })));
        self.out[run.candidate] = true;
        let proven_software = !candidate.hardware && stage == FailureStage::Running;
        let next = if proven_software {
            None
        } else {
            self.eligible(&run.shape)
        };
        match next {
            Some(next) => {
                self.start(now, next, &run.shape);
            }
            None if candidate.hardware => self.start_best(now, &run.shape),
            None => {
                // No software decoder shows this group: the group is to blame, and each may try the next one.
                for (out, candidate) in self.out.iter_mut().zip(&self.candidates) {
                    *out &= candidate.hardware;
                }
                self.preferred = proven_software.then_some(run.candidate);
                self.gate_open = false;
                self.fruitless += u32::from(!proven_software);
                if self.fruitless == HOPELESS {
                    self.complain(
                        ReceiveFailure::DecoderFailed,
                        format!("{} cannot decode this stream: {reason}", candidate.name),
                    );
                }
            }
        }
        self.wish(now);
    }
}

fn chroma_name(chroma: ChromaFormat) -> &'static str {
    match chroma {
        ChromaFormat::Monochrome => "monochrome pictures",
        ChromaFormat::Yuv420 => "4:2:0 pictures",
        ChromaFormat::Yuv422 => "4:2:2 pictures",
        ChromaFormat::Yuv444 => "4:4:4 pictures",
    }
}

#[cfg(test)]
#[path = "failover_tests.rs"]
mod tests;
