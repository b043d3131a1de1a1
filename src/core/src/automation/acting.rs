//! Input sequences: who may act, one at a time, and everything released whichever way it ends.

use std::time::Duration;

use crate::control::ControlMessage;
use crate::error::ErrorCode;
use crate::time::Monotonic;

use super::effect::Effect;
use super::event::ControlOutcome;
use super::operation::{ActionResult, ActionStatus, Fingerprint, Known};
use super::reply::ActionReply;
use super::request::{Action, Mode};
use super::sequence::{self, Held, Player, Step};
use super::session::{Session, SessionState};

/// How long the transport may take to say what became of a message; it only queues, so this is generous.
const SEND_LIMIT: Duration = Duration::from_secs(5);

/// The sequence on its way.
#[derive(Debug)]
pub(super) struct Acting {
    /// The `action` request to answer.
    pub(super) request: u64,
    /// True when it uses positions on the picture.
    pub(super) pointer: bool,
    operation: String,
    player: Player,
    held: Held,
    /// The message whose fate is not known yet, and when to give up waiting.
    leaving: Option<(u64, Monotonic)>,
}

impl Acting {
    /// When something is due.
    pub(super) fn deadline(&self) -> Option<Monotonic> {
        self.leaving.map(|(_, limit)| limit).or_else(|| self.player.due())
    }
}

impl Session {
    pub(super) fn act(&mut self, now: Monotonic, id: u64, operation: String, arguments: (&str, &Action)) {
        let (observation, action) = arguments;
        let fingerprint = Fingerprint::of(observation, action);
        match self.operations.look_up(&operation, fingerprint) {
            Known::New => {}
            Known::Conflict => return self.refuse(id, ErrorCode::OperationConflict),
            Known::Running => return self.answer(id, &ActionReply::in_progress(&operation)),
            Known::Done(result) => return self.answer(id, &ActionReply::done(&operation, &result)),
        }
        let steps = match self.plan(now, observation, action) {
            Ok(steps) => steps,
            Err(code) => return self.refuse(id, code),
        };
        self.operations.begin(now, operation.clone(), fingerprint);
        self.acting = Some(Acting {
            request: id,
            pointer: sequence::uses_pointer(action),
            operation,
            player: Player::new(now, steps),
            held: Held::default(),
            leaving: None,
        });
        self.advance_acting(now);
    }

    /// Everything that can forbid an action, the most lasting reason first.
    fn plan(&self, now: Monotonic, observation: &str, action: &Action) -> Result<Vec<Step>, ErrorCode> {
        let connection = self.active().ok_or(ErrorCode::NotConnected)?;
        if connection.request.mode == Mode::Observe {
            return Err(ErrorCode::ControlDenied);
        }
        if self.human_paused {
            return Err(ErrorCode::HumanPaused);
        }
        if !self.control_enabled {
            return Err(ErrorCode::ControlDisabled);
        }
        if self.state != SessionState::Ready {
            return Err(ErrorCode::NotReady);
        }
        if !connection.accepts_input {
            return Err(ErrorCode::ControlDenied);
        }
        if self.fresh_picture(now).is_none() {
            return Err(ErrorCode::VideoStale);
        }
        let view = self.observations.find(now, observation)?;
        let steps = sequence::plan(action, &view)?;
        if matches!(action, Action::TypeText(_)) && !connection.accepts_text {
            return Err(ErrorCode::TextUnsupported);
        }
        if self.acting.is_some() {
            return Err(ErrorCode::Busy);
        }
        Ok(steps)
    }

    /// Sends what is due, one message at a time: the next one waits until this one has left.
    pub(super) fn advance_acting(&mut self, now: Monotonic) {
        let Some(acting) = self.acting.as_mut() else {
            return;
        };
        if let Some((_, limit)) = acting.leaving {
            if now >= limit {
                self.stop_acting(ErrorCode::SendFailed);
            }
            return;
        }
        if let Some(message) = acting.player.next(now) {
            acting.held.note(&message);
            let send = self.send(message);
            if let Some(acting) = self.acting.as_mut() {
                acting.leaving = Some((send, now + SEND_LIMIT));
            }
        } else if acting.player.due().is_none() {
            self.finish_acting(ActionStatus::Submitted, None);
        }
    }

    fn send(&mut self, message: ControlMessage) -> u64 {
        let send = self.number();
        self.push(Effect::SendControl { send, message });
        send
    }

    pub(super) fn control_sent(&mut self, now: Monotonic, send: u64, outcome: ControlOutcome) {
        let Some(acting) = self.acting.as_mut() else {
            return;
        };
        if acting.leaving.is_none_or(|(leaving, _)| leaving != send) {
            return;
        }
        match outcome {
            ControlOutcome::Sent => {
                acting.leaving = None;
                acting.player.left(now);
                self.advance_acting(now);
            }
            ControlOutcome::Refused if acting.player.sent() == 1 => {
                // The only message so far certainly stayed here, so there is nothing to release.
                acting.held = Held::default();
                self.finish_acting(ActionStatus::FailedBeforeSubmit, Some(ErrorCode::Busy));
            }
            ControlOutcome::Refused | ControlOutcome::Failed => self.stop_acting(ErrorCode::SendFailed),
        }
    }

    /// Ends the sequence before its time, if there is one.
    pub(super) fn stop_acting(&mut self, code: ErrorCode) {
        let Some(acting) = &self.acting else { return };
        let status = if acting.player.sent() == 0 {
            ActionStatus::FailedBeforeSubmit
        } else {
            ActionStatus::OutcomeUnknown
        };
        self.finish_acting(status, Some(code));
    }

    /// Releases what is still held, remembers the result and answers.
    fn finish_acting(&mut self, status: ActionStatus, code: Option<ErrorCode>) {
        let Some(mut acting) = self.acting.take() else {
            return;
        };
        for message in acting.held.release() {
            self.send(message);
        }
        let connection = self.connection.as_ref();
        let result = ActionResult {
            status,
            generation: connection.map_or(0, |connection| connection.generation),
            after_frame_id: connection
                .and_then(|connection| connection.picture)
                .map_or(0, |picture| picture.frame_id),
            code,
        };
        self.operations.finish(&acting.operation, result);
        self.answer(acting.request, &ActionReply::done(&acting.operation, &result));
    }
}
