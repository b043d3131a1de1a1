//! What became of earlier actions, so that asking again never acts again.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::error::ErrorCode;
use crate::time::Monotonic;

use super::request::Action;

/// Most operations remembered (`hello.operation_cache_entries`).
pub(super) const CAPACITY: usize = 128;
/// An operation older than this may be forgotten when a new action comes (`hello.operation_cache_ms`).
pub(super) const RETENTION: Duration = Duration::from_secs(300);

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionStatus {
    /// All of it was handed to the transport.
    Submitted,
    /// Certainly none of it was.
    FailedBeforeSubmit,
    /// Some of it was, or may have been.
    OutcomeUnknown,
}

impl ActionStatus {
    /// `status`, `retryable`, `side_effect_possible`.
    pub(super) const fn facts(self) -> (&'static str, bool, bool) {
        match self {
            Self::Submitted => ("submitted", false, true),
            Self::FailedBeforeSubmit => ("failed_before_submit", true, false),
            Self::OutcomeUnknown => ("outcome_unknown", false, true),
        }
    }
}

/// What is remembered of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActionResult {
    /// How it ended.
    pub(super) status: ActionStatus,
    /// The display generation it was sent to.
    pub(super) generation: u32,
    /// The newest picture when it ended; a later one may show its effect.
    pub(super) after_frame_id: u64,
    /// Why it was not submitted.
    pub(super) code: Option<ErrorCode>,
}

/// Stands for an action's arguments. The arguments themselves are not kept: they may hold a typed password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint([u64; 2]);

impl Fingerprint {
    /// Of an action on an observation.
    pub(super) fn of(observation_id: &str, action: &Action) -> Self {
        Self([0_u8, 1].map(|salt| {
            let mut hasher = DefaultHasher::new();
            (salt, observation_id, action).hash(&mut hasher);
            hasher.finish()
        }))
    }
}

/// What is known of an operation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: it may act.
    New,
    /// It was used with other arguments.
    Conflict,
    /// It is acting now.
    Running,
    /// It has ended.
    Done(ActionResult),
}

#[derive(Clone, Debug)]
struct Operation {
    id: String,
    fingerprint: Fingerprint,
    begun: Monotonic,
    result: Option<ActionResult>,
}

/// The newest operations, oldest first.
#[derive(Debug, Default)]
pub(super) struct Operations {
    kept: VecDeque<Operation>,
}

impl Operations {
    /// What is known of `id`.
    pub(super) fn look_up(&self, id: &str, fingerprint: Fingerprint) -> Known {
        match self.kept.iter().find(|operation| operation.id == id) {
            None => Known::New,
            Some(operation) if operation.fingerprint != fingerprint => Known::Conflict,
            Some(operation) => operation.result.map_or(Known::Running, Known::Done),
        }
    }

    /// Remembers that `id` acts from now on; makes room by age, then by order.
    pub(super) fn begin(&mut self, now: Monotonic, id: String, fingerprint: Fingerprint) {
        self.kept
            .retain(|operation| now.since(operation.begun) <= RETENTION);
        if self.kept.len() >= CAPACITY {
            self.kept.pop_front();
        }
        self.kept.push_back(Operation {
            id,
            fingerprint,
            begun: now,
            result: None,
        });
    }

    /// Remembers how `id` ended.
    pub(super) fn finish(&mut self, id: &str, result: ActionResult) {
        if let Some(operation) = self.kept.iter_mut().find(|operation| operation.id == id) {
            operation.result = Some(result);
        }
    }

    /// How many are kept.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automation::request::ImagePoint;
    use crate::control::TypedText;

    const SUBMITTED: ActionResult = ActionResult {
        status: ActionStatus::Submitted,
        generation: 1,
        after_frame_id: 9,
        code: None,
    };

    fn seconds(count: u64) -> Monotonic {
        Monotonic::from_micros(count * 1_000_000)
    }

    fn fingerprint(x: u32) -> Fingerprint {
        Fingerprint::of(
            "obs_1_1",
            &Action::Move {
                at: ImagePoint { x, y: 0 },
            },
        )
    }

    #[test]
    fn same_arguments_find_the_result_and_others_conflict() {
        let mut operations = Operations::default();
        operations.begin(seconds(0), "a".into(), fingerprint(1));
        assert_eq!(operations.look_up("a", fingerprint(1)), Known::Running);
        operations.finish("a", SUBMITTED);
        assert_eq!(operations.look_up("a", fingerprint(1)), Known::Done(SUBMITTED));
        assert_eq!(operations.look_up("a", fingerprint(2)), Known::Conflict);
        assert_eq!(operations.look_up("b", fingerprint(1)), Known::New);
    }

    #[test]
    fn the_observation_is_part_of_the_arguments() {
        let action = Action::TypeText(TypedText::new("x".into()));
        assert_ne!(
            Fingerprint::of("obs_1_1", &action),
            Fingerprint::of("obs_1_2", &action)
        );
    }

    #[test]
    fn old_entries_leave_on_a_new_action_and_not_before() {
        let mut operations = Operations::default();
        operations.begin(seconds(0), "a".into(), fingerprint(1));
        operations.finish("a", SUBMITTED);
        assert_eq!(operations.look_up("a", fingerprint(1)), Known::Done(SUBMITTED));
        operations.begin(seconds(300), "b".into(), fingerprint(1));
        assert_eq!(operations.look_up("a", fingerprint(1)), Known::Done(SUBMITTED));
        operations.begin(seconds(301), "c".into(), fingerprint(1));
        assert_eq!(operations.look_up("a", fingerprint(1)), Known::New);
    }

    #[test]
    fn the_oldest_of_128_makes_room() {
        let mut operations = Operations::default();
        for n in 0..=CAPACITY {
            operations.begin(seconds(0), n.to_string(), fingerprint(0));
            operations.finish(&n.to_string(), SUBMITTED);
        }
        assert_eq!(operations.len(), CAPACITY);
        assert_eq!(operations.look_up("0", fingerprint(0)), Known::New);
        assert_eq!(operations.look_up("1", fingerprint(0)), Known::Done(SUBMITTED));
    }
}
