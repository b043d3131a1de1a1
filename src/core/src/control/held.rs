//! What one guest keeps pressed on a host, so that nothing stays down when it goes.

use std::time::Duration;

use super::wire::MAX_PRESSED_KEYS;
use super::{ControlMessage, Key, MouseButton, Point};
use crate::time::Monotonic;

/// A guest that holds something and says nothing for this long has lost its grip.
const SILENCE: Duration = Duration::from_secs(15);
/// The same for keys of a guest that has begun to list them (public protocol, which has it list them every 500 ms).
const LIST_SILENCE: Duration = Duration::from_millis(2500);

/// Keys and buttons one guest holds.
#[derive(Debug, Default)]
pub struct Held {
    keys: Vec<Key>,
    buttons: Vec<MouseButton>,
    at: Option<Point>,
    heard: Option<Monotonic>,
    /// When the last keyboard message came, once the guest has sent a list.
    listed: Option<Monotonic>,
    last_seq: u32,
}

impl Held {
    /// Notes `message`; false when it must not be injected: a release of what is not held, or one key too many.
    pub fn handle_input(&mut self, now: Monotonic, message: &ControlMessage) -> bool {
        self.heard = Some(now);
        match message {
            ControlMessage::Key { key, down } => {
                self.listed = self.listed.map(|_| now);
                self.key(*key, *down)
            }
            ControlMessage::MouseButton { button, down, at } => {
                self.at = Some(*at);
                self.button(*button, *down)
            }
            ControlMessage::MouseMove { at } | ControlMessage::Wheel { at, .. } => {
                self.at = Some(*at);
                true
            }
            ControlMessage::Text(_) => true,
        }
    }

    /// Compares the guest's list with what it holds here; the result is to be injected.
    pub fn handle_list(&mut self, now: Monotonic, seq: u32, list: &[Key]) -> Vec<ControlMessage> {
        let newer = seq == 0 || self.listed.is_none() || seq.wrapping_sub(self.last_seq) as i32 > 0;
        if !newer {
            return Vec::new();
        }
        self.heard = Some(now);
        self.listed = Some(now);
        self.last_seq = if seq == 0 { self.last_seq } else { seq };
        let gone: Vec<Key> = self
            .keys
            .iter()
            .filter(|key| !list.contains(key))
            .copied()
            .collect();
        let new: Vec<Key> = list
            .iter()
            .filter(|key| !self.keys.contains(key))
            .copied()
            .collect();
        let changes = gone.into_iter().map(|key| (key, false));
        let changes: Vec<(Key, bool)> = changes.chain(new.into_iter().map(|key| (key, true))).collect();
        changes
            .into_iter()
            .filter(|(key, down)| self.key(*key, *down))
            .map(|(key, down)| ControlMessage::Key { key, down })
            .collect()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let held = !self.keys.is_empty() || !self.buttons.is_empty();
        let silence = self.heard.filter(|_| held).map(|heard| heard + SILENCE);
        let list = self
            .listed
            .filter(|_| !self.keys.is_empty())
            .map(|listed| listed + LIST_SILENCE);
        [silence, list].into_iter().flatten().min()
    }

    /// Time has passed; the result is to be injected.
    pub fn handle_timeout(&mut self, now: Monotonic) -> Vec<ControlMessage> {
        if self.next_deadline().is_some_and(|due| now >= due) {
            self.release_all()
        } else {
            Vec::new()
        }
    }

    /// Lets everything go; the result is to be injected. Buttons are let go where the pointer was last.
    pub fn release_all(&mut self) -> Vec<ControlMessage> {
        let at = self.at.unwrap_or(Point { x: 0.0, y: 0.0 });
        let buttons =
            std::mem::take(&mut self.buttons)
                .into_iter()
                .map(|button| ControlMessage::MouseButton {
                    button,
                    down: false,
                    at,
                });
        // Last pressed, first released: a modifier outlives the keys it modifies.
        let keys = std::mem::take(&mut self.keys)
            .into_iter()
            .rev()
            .map(|key| ControlMessage::Key { key, down: false });
        buttons.chain(keys).collect()
    }

    fn key(&mut self, key: Key, down: bool) -> bool {
        let held = self.keys.contains(&key);
        if !down {
            self.keys.retain(|known| *known != key);
            return held;
        }
        // A second press is the guest's auto-repeat.
        if !held && self.keys.len() < MAX_PRESSED_KEYS {
            self.keys.push(key);
            return true;
        }
        held
    }

    fn button(&mut self, button: MouseButton, down: bool) -> bool {
        let held = self.buttons.contains(&button);
        if !down {
            self.buttons.retain(|known| *known != button);
            return held;
        }
        if !held {
            self.buttons.push(button);
        }
        !held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_micros(ms * 1000)
    }

    fn key(name: &str, down: bool) -> ControlMessage {
        let key = Key::named(name).expect("a key");
        ControlMessage::Key { key, down }
    }

    fn left(down: bool) -> ControlMessage {
        let at = Point { x: 0.5, y: 0.25 };
        ControlMessage::MouseButton {
            button: MouseButton::Left,
            down,
            at,
        }
    }

    #[test]
    fn what_is_down_is_let_go_in_reverse() {
        let mut held = Held::default();
        for message in [
            key("SHIFT", true),
            key("A", true),
            left(true),
            key("B", true),
            key("B", false),
        ] {
            assert!(held.handle_input(at(0), &message));
        }
        assert_eq!(
            held.release_all(),
            [left(false), key("A", false), key("SHIFT", false)]
        );
        assert_eq!(held.release_all(), []);
        assert_eq!(held.next_deadline(), None);
    }

    #[test]
    fn repeats_pass_and_stray_releases_do_not() {
        let mut held = Held::default();
        assert!(!held.handle_input(at(0), &key("A", false)));
        assert!(!held.handle_input(at(0), &left(false)));
        assert!(held.handle_input(at(0), &key("A", true)));
        assert!(held.handle_input(at(0), &key("A", true)));
        assert!(held.handle_input(at(0), &left(true)));
        assert!(!held.handle_input(at(0), &left(true)));
    }

    #[test]
    fn a_guest_that_falls_silent_holds_nothing() {
        let mut held = Held::default();
        held.handle_input(at(0), &key("A", true));
        held.handle_input(
            at(5_000),
            &ControlMessage::MouseMove {
                at: Point { x: 0.0, y: 0.0 },
            },
        );
        assert_eq!(held.next_deadline(), Some(at(20_000)));
        assert_eq!(held.handle_timeout(at(19_999)), []);
        assert_eq!(held.handle_timeout(at(20_000)), [key("A", false)]);
    }

    #[test]
    fn a_list_is_the_truth_and_its_absence_a_release() {
        let mut held = Held::default();
        let (a, b) = (Key::named("A").expect("a key"), Key::named("B").expect("a key"));
        held.handle_input(at(0), &key("A", true));
        assert_eq!(
            held.handle_list(at(10), 7, &[b]),
            [key("A", false), key("B", true)]
        );
        assert_eq!(held.handle_list(at(20), 6, &[a]), []);
        assert_eq!(held.handle_list(at(30), 0, &[b, a]), [key("A", true)]);
        assert_eq!(held.next_deadline(), Some(at(2530)));
        assert_eq!(held.handle_timeout(at(2530)), [key("A", false), key("B", false)]);
    }

    #[test]
    fn nobody_holds_more_keys_than_the_protocol_has() {
        let mut held = Held::default();
        for vk in 0..40 {
            let key = Key {
                vk,
                scan_code: vk,
                extended: false,
            };
            let taken = held.handle_input(at(0), &ControlMessage::Key { key, down: true });
            assert_eq!(taken, usize::from(vk) < MAX_PRESSED_KEYS);
        }
        assert_eq!(held.release_all().len(), MAX_PRESSED_KEYS);
    }
}
