//! Everything that reaches the worker thread: access units, graph reports, a nudge when pictures wait.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::media::AccessUnit;
use crossdesk_core::time::Monotonic;

use super::graph::Graph;
use crate::clock;
use crate::plan::replay::{MAX_BYTES, MAX_UNITS};
use crate::receive::{Pace, Refused};

/// Most reports that wait. A graph sends a handful in its life; a decoder that posts error upon error loses
/// the later ones, which say nothing new.
const MAX_REPORTS: usize = 64;

/// What a graph, or a thread working on one, has to say.
pub(super) enum Report {
    /// The graph of this try was built and plays, or could not be.
    Opened {
        attempt: u32,
        result: Result<Box<Graph>, String>,
    },
    /// An element posted an error.
    Error { attempt: u32, reason: String },
    /// All pictures came out after the end of the stream.
    Drained { attempt: u32 },
    /// The first picture was compared.
    Verdict {
        attempt: u32,
        verdict: Result<(), String>,
    },
}

/// An access unit on its way to the worker.
pub(super) struct Waiting {
    pub sequence: u32,
    pub data: Bytes,
    pub received: Monotonic,
    /// True when units were lost between the one before and this one.
    pub after_loss: bool,
}

/// What the worker finds when it wakes.
#[derive(Default)]
pub(super) struct Batch {
    pub units: VecDeque<Waiting>,
    pub reports: VecDeque<Report>,
    pub pictures: bool,
    pub finish: bool,
    pub stop: bool,
}

#[derive(Default)]
struct State {
    units: VecDeque<Waiting>,
    bytes: usize,
    reports: VecDeque<Report>,
    pictures: bool,
    finish: bool,
    stop: bool,
    sequence: u32,
    lost: bool,
}

impl State {
    fn is_full_for(&self, bytes: usize) -> bool {
        self.units.len() >= MAX_UNITS || (self.bytes + bytes > MAX_BYTES && !self.units.is_empty())
    }

    fn has_news(&self, room: usize) -> bool {
        self.stop
            || self.pictures
            || !self.reports.is_empty()
            || (room > 0 && !self.units.is_empty())
            || (self.finish && self.units.is_empty())
    }
}

/// The worker's mailbox; bounds and policies stand in `docs/invariants.md`.
pub(crate) struct Inbox {
    state: Mutex<State>,
    news: Condvar,
    room: Condvar,
    pace: Pace,
}

impl Inbox {
    pub fn new(pace: Pace) -> Self {
        Self {
            state: Mutex::default(),
            news: Condvar::new(),
            room: Condvar::new(),
            pace,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an access unit, numbers it, and never blocks.
    pub fn push(&self, unit: AccessUnit) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.stop {
            return Err(Refused::Stopped);
        }
        let full = state.is_full_for(unit.data.len());
        if full && self.pace == Pace::Lossless {
            return Err(Refused::Full);
        }
        state.sequence = state.sequence.wrapping_add(1);
        if full {
            state.lost = true;
            return Err(Refused::Full);
        }
        let waiting = Waiting {
            sequence: state.sequence,
            after_loss: std::mem::take(&mut state.lost),
            received: unit.received,
            data: unit.data,
        };
        state.bytes += waiting.data.len();
        state.units.push_back(waiting);
        self.news.notify_one();
        Ok(())
    }

    /// Waits until a unit of `bytes` bytes has room, or `patience` has passed.
    pub fn wait_for_room(&self, bytes: usize, patience: Duration) {
        let full = |state: &mut State| state.is_full_for(bytes) && !state.stop;
        drop(self.room.wait_timeout_while(self.lock(), patience, full));
    }

    /// Hands over a report; gives it back when nobody will read it.
    pub(super) fn report(&self, report: Report) -> Result<(), Report> {
        let mut state = self.lock();
        if state.stop || state.reports.len() >= MAX_REPORTS {
            return Err(report);
        }
        state.reports.push_back(report);
        self.news.notify_one();
        Ok(())
    }

    /// A picture of try `attempt` that was delivered cannot be mapped.
    pub fn report_unreadable(&self, attempt: u32, reason: &str) {
        let reason = reason.to_owned();
        drop(self.report(Report::Error { attempt, reason }));
    }

    /// Says that pictures wait in the graph.
    pub fn nudge(&self) {
        let mut state = self.lock();
        if !state.pictures {
            state.pictures = true;
            self.news.notify_one();
        }
    }

    /// Asks for a drain once every unit was taken.
    pub fn finish(&self) {
        self.lock().finish = true;
        self.news.notify_one();
    }

    /// Ends the worker and everyone who waits.
    pub fn stop(&self) {
        self.lock().stop = true;
        self.news.notify_all();
        self.room.notify_all();
    }

    /// Waits for news, at most until `deadline`, and takes it: all reports, and at most `room` units.
    pub(super) fn take(&self, room: usize, deadline: Option<Monotonic>) -> Batch {
        let mut state = self.lock();
        while !state.has_news(room) {
            let Some(deadline) = deadline else {
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.since(clock::now());
            if left.is_zero() {
                break;
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = state.units.len().min(room);
        let units: VecDeque<_> = state.units.drain(..count).collect();
        state.bytes -= units.iter().map(|unit| unit.data.len()).sum::<usize>();
        if !units.is_empty() {
            self.room.notify_all();
        }
        let finish = state.finish && state.units.is_empty();
        if finish {
            state.finish = false;
        }
        Batch {
            units,
            reports: std::mem::take(&mut state.reports),
            pictures: std::mem::take(&mut state.pictures),
            finish,
            stop: state.stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(bytes: usize) -> AccessUnit {
        AccessUnit {
            data: Bytes::from(vec![0; bytes]),
            received: Monotonic::ZERO,
        }
    }

    #[test]
    fn a_full_live_inbox_counts_what_it_loses() {
        let inbox = Inbox::new(Pace::Live);
        for _ in 0..MAX_UNITS {
            inbox.push(unit(1)).unwrap();
        }
        assert_eq!(inbox.push(unit(1)), Err(Refused::Full));
        assert_eq!(inbox.take(usize::MAX, None).units.len(), MAX_UNITS);
        inbox.push(unit(1)).unwrap();
        let batch = inbox.take(usize::MAX, None);
        assert_eq!(batch.units[0].sequence, MAX_UNITS as u32 + 2);
        assert!(batch.units[0].after_loss);
    }

    #[test]
    fn bytes_are_bounded_too_but_one_large_unit_always_fits() {
        let inbox = Inbox::new(Pace::Lossless);
        inbox.push(unit(MAX_BYTES)).unwrap();
        assert_eq!(inbox.push(unit(1)), Err(Refused::Full));
        inbox.take(1, None);
        inbox.push(unit(1)).unwrap();
        let batch = inbox.take(1, None);
        assert_eq!((batch.units[0].sequence, batch.units[0].after_loss), (2, false));
    }

    #[test]
    fn waiting_ends_at_the_deadline_and_finish_comes_last() {
        let inbox = Inbox::new(Pace::Live);
        assert!(inbox.take(1, Some(Monotonic::ZERO)).units.is_empty());
        inbox.push(unit(1)).unwrap();
        inbox.push(unit(1)).unwrap();
        inbox.finish();
        assert!(!inbox.take(1, None).finish);
        assert!(inbox.take(1, None).finish);
        inbox.stop();
        assert!(inbox.take(1, None).stop);
        assert_eq!(inbox.push(unit(1)), Err(Refused::Stopped));
    }
}
