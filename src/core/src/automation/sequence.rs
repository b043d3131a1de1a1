//! An action as timed input messages, and what it holds down on the way.

use std::collections::VecDeque;
use std::time::Duration;

use crate::control::{ControlMessage, Key, MouseButton, Point, WheelAxis};
use crate::error::ErrorCode;
use crate::time::Monotonic;

use super::observation::View;
use super::request::{Action, ImagePoint, ScrollDirection};

/// From moving the pointer to pressing: hosts sample the pointer about once a picture at 60 Hz.
const SETTLE: Duration = Duration::from_millis(16);
/// From press to release: shorter presses are lost by programs that poll input once a picture.
const PRESS: Duration = Duration::from_millis(40);
/// Between the clicks of a double click: well under the 500 ms (often 400) hosts allow.
const BETWEEN_CLICKS: Duration = Duration::from_millis(60);
/// Between keys of a hotkey, so that modifiers arrive first even where channels batch.
const BETWEEN_KEYS: Duration = Duration::from_millis(16);
/// Between wheel notches: a host that coalesces wheel messages sees them apart.
const BETWEEN_NOTCHES: Duration = Duration::from_millis(24);
/// Between pointer positions of a drag, about one a picture at 60 Hz.
const DRAG_STEP: Duration = Duration::from_millis(16);

/// One message, sent `wait` after the one before it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) wait: Duration,
    pub(super) message: ControlMessage,
}

/// The messages of `action` on what `view` showed.
pub(super) fn plan(action: &Action, view: &View) -> Result<Vec<Step>, ErrorCode> {
    let mut steps = Steps::default();
    match action {
        Action::Move { at } => steps.move_to(view.locate(*at)?),
        Action::Click { at, button, double } => steps.click(view.locate(*at)?, *button, *double),
        Action::Scroll { at, direction, ticks } => steps.scroll(view.locate(*at)?, *direction, *ticks),
        Action::Drag { path, duration_ms } => {
            steps.drag(
                &locate_all(path, view)?,
                Duration::from_millis(u64::from(*duration_ms)),
            );
        }
        Action::Keys(keys) => steps.keys(keys),
        Action::TypeText(text) => steps.after(Duration::ZERO, ControlMessage::Text(text.clone())),
    }
    Ok(steps.0)
}

fn locate_all(path: &[ImagePoint], view: &View) -> Result<Vec<Point>, ErrorCode> {
    path.iter().map(|at| view.locate(*at)).collect()
}

/// True when the action's meaning depends on what the picture showed where.
pub(super) fn uses_pointer(action: &Action) -> bool {
    !matches!(action, Action::Keys(_) | Action::TypeText(_))
}

#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn after(&mut self, wait: Duration, message: ControlMessage) {
        self.0.push(Step { wait, message });
    }

    fn move_to(&mut self, at: Point) {
        self.after(Duration::ZERO, ControlMessage::MouseMove { at });
    }

    fn button(&mut self, wait: Duration, button: MouseButton, down: bool, at: Point) {
        self.after(wait, ControlMessage::MouseButton { button, down, at });
    }

    fn click(&mut self, at: Point, button: MouseButton, double: bool) {
        self.move_to(at);
        self.button(SETTLE, button, true, at);
        self.button(PRESS, button, false, at);
        if double {
            self.button(BETWEEN_CLICKS, button, true, at);
            self.button(PRESS, button, false, at);
        }
    }

    fn scroll(&mut self, at: Point, direction: ScrollDirection, ticks: u32) {
        let (axis, notches) = match direction {
            ScrollDirection::Up => (WheelAxis::Vertical, 1),
            ScrollDirection::Down => (WheelAxis::Vertical, -1),
            ScrollDirection::Left => (WheelAxis::Horizontal, -1),
            ScrollDirection::Right => (WheelAxis::Horizontal, 1),
        };
        self.move_to(at);
        for tick in 0..ticks {
            let wait = if tick == 0 { SETTLE } else { BETWEEN_NOTCHES };
            self.after(wait, ControlMessage::Wheel { axis, notches, at });
        }
    }

    /// Equal time for each stretch of the path; positions in between, because a jump is not a drag to most programs.
    fn drag(&mut self, path: &[Point], duration: Duration) {
        let stretches = u32::try_from(path.len().saturating_sub(1)).unwrap_or(1).max(1);
        let per_stretch = duration / stretches;
        let parts = (per_stretch.as_micros() / DRAG_STEP.as_micros()).max(1) as u32;
        let wait = per_stretch / parts;
        self.move_to(path[0]);
        self.button(SETTLE, MouseButton::Left, true, path[0]);
        for pair in path.windows(2) {
            for part in 1..=parts {
                let at = between(pair[0], pair[1], part, parts);
                self.after(wait, ControlMessage::MouseMove { at });
            }
        }
        self.button(SETTLE, MouseButton::Left, false, path[path.len() - 1]);
    }

    fn keys(&mut self, keys: &[Key]) {
        for (n, key) in keys.iter().enumerate() {
            let wait = if n == 0 { Duration::ZERO } else { BETWEEN_KEYS };
            self.after(
                wait,
                ControlMessage::Key {
                    key: *key,
                    down: true,
                },
            );
        }
        for (n, key) in keys.iter().rev().enumerate() {
            let wait = if n == 0 { PRESS } else { BETWEEN_KEYS };
            self.after(
                wait,
                ControlMessage::Key {
                    key: *key,
                    down: false,
                },
            );
        }
    }
}

/// `part` of `parts` of the way from `from` to `to`; exactly `to` at the end.
fn between(from: Point, to: Point, part: u32, parts: u32) -> Point {
    if part == parts {
        return to;
    }
    let share = f64::from(part) / f64::from(parts);
    Point {
        x: from.x + (to.x - from.x) * share,
        y: from.y + (to.y - from.y) * share,
    }
}

/// Keys and buttons that were pressed and not released.
#[derive(Debug, Default)]
pub(super) struct Held {
    keys: Vec<Key>,
    buttons: Vec<MouseButton>,
    pointer: Option<Point>,
}

impl Held {
    /// Takes note of a message on its way out, before anybody knows whether it arrives: a press may have happened.
    pub(super) fn note(&mut self, message: &ControlMessage) {
        match *message {
            ControlMessage::MouseMove { at } | ControlMessage::Wheel { at, .. } => self.pointer = Some(at),
            ControlMessage::MouseButton { button, down, at } => {
                self.pointer = Some(at);
                set(&mut self.buttons, button, down);
            }
            ControlMessage::Key { key, down } => set(&mut self.keys, key, down),
            ControlMessage::Text(_) => {}
        }
    }

    /// The messages that release everything, latest press first; nothing is held afterwards.
    pub(super) fn release(&mut self) -> Vec<ControlMessage> {
        let at = self.pointer.unwrap_or(Point { x: 0.0, y: 0.0 });
        let buttons = self
            .buttons
            .drain(..)
            .rev()
            .map(|button| ControlMessage::MouseButton {
                button,
                down: false,
                at,
            });
        let mut messages: Vec<_> = buttons.collect();
        let keys = self.keys.drain(..).rev();
        messages.extend(keys.map(|key| ControlMessage::Key { key, down: false }));
        messages
    }

    /// True when nothing is held.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.buttons.is_empty()
    }
}

fn set<T: PartialEq>(held: &mut Vec<T>, item: T, down: bool) {
    held.retain(|other| *other != item);
    if down {
        held.push(item);
    }
}

/// A sequence on its way.
#[derive(Debug)]
pub(super) struct Player {
    steps: VecDeque<Step>,
    due: Monotonic,
    sent: u32,
}

impl Player {
    /// Starts now.
    pub(super) fn new(now: Monotonic, steps: Vec<Step>) -> Self {
        let steps = VecDeque::from(steps);
        let due = steps.front().map_or(now, |step| now + step.wait);
        Self { steps, due, sent: 0 }
    }

    /// The message that is due, if any.
    pub(super) fn next(&mut self, now: Monotonic) -> Option<ControlMessage> {
        if now < self.due {
            return None;
        }
        let step = self.steps.pop_front()?;
        self.sent += 1;
        Some(step.message)
    }

    /// The message before has left: the next one waits from now.
    pub(super) fn left(&mut self, now: Monotonic) {
        self.due = self.steps.front().map_or(now, |step| now + step.wait);
    }

    /// When the next message is due; `None` when none remains.
    pub(super) fn due(&self) -> Option<Monotonic> {
        (!self.steps.is_empty()).then_some(self.due)
    }

    /// Messages handed out so far.
    pub(super) fn sent(&self) -> u32 {
        self.sent
    }
}

#[cfg(test)]
mod tests;
