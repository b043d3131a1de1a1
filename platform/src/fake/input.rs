//! Input that goes nowhere and can be looked at.

use std::sync::{Arc, Mutex, PoisonError};

use crossdesk_core::control::ControlMessage;
use crossdesk_core::time::Monotonic;

use crate::desktop::{DesktopError, DisplayArea};
use crate::input::Input;

/// What a [`FakeInput`] was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Points refer to this area from here on.
    Selected(DisplayArea),
    /// A message.
    Handled(ControlMessage),
    /// Everything held was released.
    ReleasedAll,
}

/// An input for tests of everything above this crate; a clone kept by the test looks at the same record.
#[derive(Clone, Debug, Default)]
pub struct FakeInput {
    told: Arc<Mutex<Vec<Told>>>,
    failure: Arc<Mutex<Option<DesktopError>>>,
}

impl FakeInput {
    /// An input that takes everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every later call fail with `failure`, or succeed again with `None`.
    pub fn fail(&self, failure: Option<DesktopError>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Takes what it was told since the last call.
    pub fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn record(&self, told: Told) -> Result<(), DesktopError> {
        if let Some(failure) = &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure.clone());
        }
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(told);
        Ok(())
    }
}

impl Input for FakeInput {
    fn select(&mut self, area: DisplayArea) {
        // Selecting never fails; a failing desktop is noticed by the next message.
        let _ = self.record(Told::Selected(area));
    }

    fn handle(&mut self, _now: Monotonic, message: ControlMessage) -> Result<(), DesktopError> {
        self.record(Told::Handled(message))
    }

    fn handle_timeout(&mut self, _now: Monotonic) -> Result<(), DesktopError> {
        Ok(())
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        None
    }

    fn release_all(&mut self) -> Result<(), DesktopError> {
        self.record(Told::ReleasedAll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossdesk_core::control::Key;

    #[test]
    fn it_records_what_it_is_told_until_it_fails() {
        let mut input = FakeInput::new();
        let looker = input.clone();
        let key = Key::named("A").expect("A is a key");
        let press = ControlMessage::Key { key, down: true };
        input.handle(Monotonic::ZERO, press.clone()).unwrap();
        looker.fail(Some(DesktopError::Busy));
        assert_eq!(input.release_all(), Err(DesktopError::Busy));
        assert_eq!(looker.take(), [Told::Handled(press)]);
    }
}
