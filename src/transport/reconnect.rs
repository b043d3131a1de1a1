//! When a direct source is started, given up and tried again: a state machine on virtual time.

use std::collections::VecDeque;

use crossdesk_core::automation::TransportState;
use crossdesk_core::error::ErrorCode;
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::gst::source::SourceEvent;
use crossdesk_pipelines::plan::source::SourceFailure;

use super::backoff::Backoff;

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the source; stop the one before, if any. Its events carry this attempt number.
    Start(u64),
    /// Tell the session.
    State(TransportState),
}

/// Where the machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A source runs, or is starting.
    Running,
    /// Nothing runs until the given time.
    Resting(Monotonic),
    /// Over.
    Over,
}

/// Decides over one direct source.
#[derive(Debug)]
pub struct Reconnect {
    /// True when losing the source is worth another attempt.
    persistent: bool,
    phase: Phase,
    backoff: Backoff,
    /// Number of the newest start; events of earlier ones are stale.
    start: u64,
    actions: VecDeque<Action>,
}

impl Reconnect {
    /// A machine that has just asked for the first start; `persistent` sources are tried again.
    pub fn new(persistent: bool) -> Self {
        let mut machine = Self {
            persistent,
            phase: Phase::Running,
            backoff: Backoff::default(),
            start: 0,
            actions: VecDeque::new(),
        };
        machine
            .actions
            .push_back(Action::State(TransportState::Connecting));
        machine.begin();
        machine
    }

    /// Takes an event of start number `start`; one of an earlier start is ignored.
    pub fn handle_event(&mut self, now: Monotonic, start: u64, event: SourceEvent) {
        if start != self.start || self.phase != Phase::Running {
            return;
        }
        match event {
            SourceEvent::Opened { .. } => {
                self.backoff.succeed();
                self.state(TransportState::Connected);
            }
            SourceEvent::Waiting { reason } => {
                let (attempt, _) = self.backoff.fail();
                self.state(TransportState::Reconnecting {
                    attempt,
                    code: ErrorCode::SourceStalled,
                    reason,
                });
            }
            SourceEvent::Ended => {
                self.over(TransportState::Ended {
                    code: ErrorCode::SourceEnded,
                    reason: "the source was played to its end".to_owned(),
                });
            }
            SourceEvent::Failed(failure) => self.failed(now, failure),
        }
    }

    /// Tells the machine that time has passed.
    pub fn handle_timeout(&mut self, now: Monotonic) {
        if let Phase::Resting(until) = self.phase
            && now >= until
        {
            self.begin();
        }
    }

    /// What to do next; ask until empty.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When `handle_timeout` is due.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        match self.phase {
            Phase::Resting(until) => Some(until),
            Phase::Running | Phase::Over => None,
        }
    }

    /// True once nothing more will happen.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    fn failed(&mut self, now: Monotonic, failure: SourceFailure) {
        let SourceFailure {
            code,
            reason,
            retryable,
        } = failure;
        if !(self.persistent && retryable) {
            self.over(TransportState::Failed { code, reason });
            return;
        }
        let (attempt, wait) = self.backoff.fail();
        self.phase = Phase::Resting(now + wait);
        self.state(TransportState::Reconnecting {
            attempt,
            code,
            reason,
        });
    }

    fn begin(&mut self) {
        self.phase = Phase::Running;
        self.start += 1;
        self.actions.push_back(Action::Start(self.start));
    }

    fn over(&mut self, state: TransportState) {
        self.phase = Phase::Over;
        self.state(state);
    }

    fn state(&mut self, state: TransportState) {
        self.actions.push_back(Action::State(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_micros(ms * 1000)
    }

    fn opened() -> SourceEvent {
        SourceEvent::Opened {
            description: String::new(),
        }
    }

    fn lost() -> SourceEvent {
        SourceEvent::Failed(SourceFailure::passing(ErrorCode::ConnectionLost, "gone"))
    }

    fn actions(machine: &mut Reconnect) -> Vec<Action> {
        std::iter::from_fn(|| machine.poll_action()).collect()
    }

    fn reconnecting(attempt: u32) -> Action {
        Action::State(TransportState::Reconnecting {
            attempt,
            code: ErrorCode::ConnectionLost,
            reason: "gone".to_owned(),
        })
    }

    #[test]
    fn a_lost_network_source_is_started_again_after_growing_waits() {
        let mut machine = Reconnect::new(true);
        assert_eq!(
            actions(&mut machine),
            [Action::State(TransportState::Connecting), Action::Start(1)]
        );
        machine.handle_event(at(0), 1, opened());
        assert_eq!(actions(&mut machine), [Action::State(TransportState::Connected)]);
        machine.handle_event(at(100), 1, lost());
        assert_eq!(actions(&mut machine), [reconnecting(1)]);
        assert_eq!(machine.next_deadline(), Some(at(600)));
        machine.handle_timeout(at(599));
        assert_eq!(actions(&mut machine), []);
        machine.handle_timeout(at(600));
        assert_eq!(actions(&mut machine), [Action::Start(2)]);
        machine.handle_event(at(700), 2, lost());
        assert_eq!(actions(&mut machine), [reconnecting(2)]);
        assert_eq!(machine.next_deadline(), Some(at(1700)));
        machine.handle_timeout(at(1700));
        machine.handle_event(at(1800), 3, opened());
        machine.handle_event(at(1900), 3, lost());
        assert_eq!(machine.next_deadline(), Some(at(2400)));
    }

    #[test]
    fn events_of_an_earlier_start_change_nothing() {
        let mut machine = Reconnect::new(true);
        machine.handle_event(at(0), 1, lost());
        machine.handle_timeout(at(500));
        actions(&mut machine);
        machine.handle_event(at(501), 1, lost());
        machine.handle_event(at(501), 1, opened());
        assert_eq!(actions(&mut machine), []);
    }

    #[test]
    fn what_waiting_cannot_mend_fails_at_once() {
        let cases = [
            (false, lost()),
            (
                true,
                SourceEvent::Failed(SourceFailure::lasting(ErrorCode::AuthenticationFailed, "no")),
            ),
        ];
        for (persistent, event) in cases {
            let mut machine = Reconnect::new(persistent);
            actions(&mut machine);
            machine.handle_event(at(0), 1, event);
            let last = actions(&mut machine).pop();
            assert!(
                matches!(last, Some(Action::State(TransportState::Failed { .. }))),
                "{last:?}"
            );
            assert!(machine.is_over() && machine.next_deadline().is_none());
        }
    }

    #[test]
    fn a_source_that_goes_on_waiting_is_not_restarted() {
        let mut machine = Reconnect::new(true);
        actions(&mut machine);
        let waiting = SourceEvent::Waiting {
            reason: "silence".to_owned(),
        };
        machine.handle_event(at(0), 1, waiting);
        assert!(matches!(
            actions(&mut machine)[..],
            [Action::State(TransportState::Reconnecting { attempt: 1, .. })]
        ));
        assert_eq!(machine.next_deadline(), None);
        machine.handle_event(at(1), 1, opened());
        assert_eq!(actions(&mut machine), [Action::State(TransportState::Connected)]);
    }

    #[test]
    fn a_source_played_once_ends() {
        let mut machine = Reconnect::new(false);
        actions(&mut machine);
        machine.handle_event(at(0), 1, SourceEvent::Ended);
        assert!(matches!(
            actions(&mut machine)[..],
            [Action::State(TransportState::Ended { .. })]
        ));
    }
}
