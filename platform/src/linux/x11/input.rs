//! Input by XTEST: the server handles it as if a device had sent it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crossdesk_core::control::{ControlMessage, MouseButton, Point, TypedText, WheelAxis};
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::PixelSize;
use x11rb::connection::Connection;
use x11rb::protocol::xkb::{ConnectionExt as _, ID};
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, KEY_PRESS_EVENT, KEY_RELEASE_EVENT,
    MOTION_NOTIFY_EVENT, ModMask,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use super::text::{Stroke, TypingKeys, keysym};
use super::{Server, keycodes};
use crate::desktop::{DesktopError, DisplayArea};
use crate::input::Input;

/// How long a key keeps its symbol after typing: time for a slow program to read it. Too short, and the program
/// reads the next character instead; too long, and long texts in large alphabets are slow.
const SETTLE: Duration = Duration::from_millis(150);

/// Messages that may wait behind a text.
const WAITING: usize = 256;

/// Characters that may wait: one text of the automation protocol.
const WAITING_TEXT: usize = 16 * 1024;

/// Most notches of one message; a hand turns a wheel by less.
const NOTCHES: u32 = 32;

/// Keycode and keysym by which keys numbered as in Linux are recognised: 111 is Up there, and Print elsewhere.
const UP: (u8, u32) = (111, 0xff52);

/// Modifiers by their keycodes: both sides of Control, Shift, Alt and Meta.
const MODIFIERS: [u8; 8] = [37, 105, 50, 62, 64, 108, 133, 134];

/// The left Shift key.
const SHIFT: u8 = 50;

/// Locks that do not change what the keys of letters and digits type: Num Lock, and Caps Lock, which is opened.
const HARMLESS: u16 = 0b1_0010;

/// What the keyboard's own state does to typing.
struct KeyboardState {
    caps_lock: bool,
    /// True when the first layout is in use, and no lock or latch changes it.
    plain: bool,
}

/// What waits for its turn.
enum Waiting {
    Message(ControlMessage),
    /// Characters in reverse order, the next one last.
    Text(Vec<char>),
}

/// Input into an X server by XTEST; dropping it releases what it holds.
pub struct XTestInput {
    server: Server,
    area: DisplayArea,
    keys: BTreeSet<u8>,
    buttons: BTreeSet<u8>,
    typing: TypingKeys,
    waiting: VecDeque<Waiting>,
    /// When programs have had time to read what was typed last.
    settled: Option<Monotonic>,
}

impl std::fmt::Debug for XTestInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What is held or waits may be part of a password.
        f.debug_struct("XTestInput")
            .field("area", &self.area)
            .finish_non_exhaustive()
    }
}

impl XTestInput {
    /// Connects to `display` (`:0`), or to the one in `DISPLAY`; points refer to its whole desktop at first.
    ///
    /// # Errors
    /// `NoServer`, `NoExtension` without XTEST or XKEYBOARD, `Unsupported` when keys are numbered in another way.
    pub fn open(display: Option<&str>) -> Result<Self, DesktopError> {
        let server = Server::connect(display)?;
        server.need("XTEST")?;
        server.need("XKEYBOARD")?;
        let connection = &server.connection;
        connection.xkb_use_extension(1, 0)?.reply()?;
        let up = connection.get_keyboard_mapping(UP.0, 1)?.reply()?;
        if up.keysyms.first() != Some(&UP.1) {
            return Err(DesktopError::Unsupported(
                "it does not number keys as Linux does (rules `evdev`)",
            ));
        }
        let typing = TypingKeys::find(connection)?;
        let screen = server.screen();
        let size = (screen.width_in_pixels.into(), screen.height_in_pixels.into());
        let area = DisplayArea {
            left: 0,
            top: 0,
            size: PixelSize::new(size.0, size.1),
        };
        Ok(Self {
            server,
            area,
            keys: BTreeSet::new(),
            buttons: BTreeSet::new(),
            typing,
            waiting: VecDeque::new(),
            settled: None,
        })
    }

    fn fake(&self, kind: u8, detail: u8, at: (i32, i32)) -> Result<(), DesktopError> {
        // Coordinates of the protocol are 16 bits wide; a desktop cannot be larger.
        let at = [at.0, at.1].map(|n| n.clamp(i16::MIN.into(), i16::MAX.into()) as i16);
        self.server
            .connection
            .xtest_fake_input(kind, detail, 0, self.server.root(), at[0], at[1], 0)?;
        Ok(())
    }

    fn point(&self, at: Point) -> Result<(), DesktopError> {
        self.fake(MOTION_NOTIFY_EVENT, 0, self.area.pixel(at))
    }

    fn key(&mut self, keycode: u8, down: bool) -> Result<(), DesktopError> {
        // A repeated press is the guest's own repetition; the server makes its own.
        if down && self.keys.insert(keycode) {
            self.fake(KEY_PRESS_EVENT, keycode, (0, 0))?;
        } else if !down && self.keys.remove(&keycode) {
            self.fake(KEY_RELEASE_EVENT, keycode, (0, 0))?;
        }
        Ok(())
    }

    fn button(&mut self, button: u8, down: bool) -> Result<(), DesktopError> {
        if down && self.buttons.insert(button) {
            self.fake(BUTTON_PRESS_EVENT, button, (0, 0))?;
        } else if !down && self.buttons.remove(&button) {
            self.fake(BUTTON_RELEASE_EVENT, button, (0, 0))?;
        }
        Ok(())
    }

    fn wheel(&self, axis: WheelAxis, notches: i32) -> Result<(), DesktopError> {
        let button = match (axis, notches > 0) {
            (WheelAxis::Vertical, true) => 4,
            (WheelAxis::Vertical, false) => 5,
            (WheelAxis::Horizontal, false) => 6,
            (WheelAxis::Horizontal, true) => 7,
        };
        for _ in 0..notches.unsigned_abs().min(NOTCHES) {
            self.fake(BUTTON_PRESS_EVENT, button, (0, 0))?;
            self.fake(BUTTON_RELEASE_EVENT, button, (0, 0))?;
        }
        Ok(())
    }

    /// Does one message other than text.
    fn act(&mut self, message: &ControlMessage) -> Result<(), DesktopError> {
        match *message {
            ControlMessage::MouseMove { at } => self.point(at),
            ControlMessage::MouseButton { button, down, at } => {
                self.point(at)?;
                let button = match button {
                    MouseButton::Left => 1,
                    MouseButton::Middle => 2,
                    MouseButton::Right => 3,
                };
                self.button(button, down)
            }
            ControlMessage::Wheel { axis, notches, at } => {
                self.point(at)?;
                self.wheel(axis, notches)
            }
            ControlMessage::Key { key, down } => {
                keycodes::keycode(key).map_or(Ok(()), |keycode| self.key(keycode, down))
            }
            ControlMessage::Text(_) => Ok(()),
        }
    }

    /// Types from the end of `text` what can be typed now; true when nothing is left.
    fn type_run(&mut self, text: &mut Vec<char>) -> Result<bool, DesktopError> {
        let aside: Vec<u8> = MODIFIERS
            .into_iter()
            .filter(|key| self.keys.contains(key))
            .collect();
        for keycode in &aside {
            self.fake(KEY_RELEASE_EVENT, *keycode, (0, 0))?;
        }
        let state = self.keyboard_state()?;
        self.typing.look(&self.server.connection, state.plain)?;
        if state.caps_lock {
            self.lock_caps(false)?;
        }
        while let Some(character) = text.last() {
            if let Some(symbol) = keysym(*character) {
                let Some(stroke) = self.typing.stroke(&self.server.connection, symbol)? else {
                    break;
                };
                self.strike(stroke)?;
            }
            text.pop();
        }
        if state.caps_lock {
            self.lock_caps(true)?;
        }
        for keycode in &aside {
            self.fake(KEY_PRESS_EVENT, *keycode, (0, 0))?;
        }
        Ok(text.is_empty())
    }

    fn strike(&self, stroke: Stroke) -> Result<(), DesktopError> {
        let keys = [SHIFT, stroke.keycode];
        let keys = if stroke.shift { &keys[..] } else { &keys[1..] };
        for keycode in keys {
            self.fake(KEY_PRESS_EVENT, *keycode, (0, 0))?;
        }
        for keycode in keys.iter().rev() {
            self.fake(KEY_RELEASE_EVENT, *keycode, (0, 0))?;
        }
        Ok(())
    }

    fn keyboard_state(&self) -> Result<KeyboardState, DesktopError> {
        let keyboard = ID::USE_CORE_KBD.into();
        let state = self.server.connection.xkb_get_state(keyboard)?.reply()?;
        let stays = state.locked_mods | state.latched_mods;
        Ok(KeyboardState {
            // Programs turn letters into capitals whatever the key says.
            caps_lock: state.locked_mods.contains(ModMask::LOCK),
            plain: u8::from(state.group) == 0 && u16::from(stays) & !HARMLESS == 0,
        })
    }

    fn lock_caps(&self, locked: bool) -> Result<(), DesktopError> {
        let locks = if locked { ModMask::LOCK } else { ModMask::default() };
        self.server.connection.xkb_latch_lock_state(
            ID::USE_CORE_KBD.into(),
            ModMask::LOCK,
            locks,
            false,
            0u8.into(),
            ModMask::default(),
            false,
            0,
        )?;
        Ok(())
    }

    /// Does what waits, as far as it goes now.
    fn advance(&mut self, now: Monotonic) -> Result<(), DesktopError> {
        while let Some(next) = self.waiting.pop_front() {
            match next {
                Waiting::Message(message) => self.act(&message)?,
                Waiting::Text(mut text) => {
                    let done = self.type_run(&mut text)?;
                    self.settled = Some(now + SETTLE);
                    if !done {
                        self.waiting.push_front(Waiting::Text(text));
                        break;
                    }
                }
            }
        }
        self.finish()
    }

    /// Sends everything, and learns whether the server is still there.
    fn finish(&self) -> Result<(), DesktopError> {
        self.server.connection.flush()?;
        while self.server.connection.poll_for_event()?.is_some() {}
        Ok(())
    }

    fn enqueue(&mut self, message: ControlMessage) -> Result<(), DesktopError> {
        let waiting = match message {
            ControlMessage::Text(text) => Waiting::Text(characters(&text)),
            other => Waiting::Message(other),
        };
        let held_back = |waiting: &Waiting| match waiting {
            Waiting::Text(text) => text.len(),
            Waiting::Message(_) => 0,
        };
        let text: usize = self.waiting.iter().chain([&waiting]).map(held_back).sum();
        if self.waiting.len() >= WAITING || text > WAITING_TEXT {
            return Err(DesktopError::Busy);
        }
        if let (Waiting::Text(_), true) = (&waiting, self.typing.is_empty()) {
            return Err(DesktopError::Unsupported(
                "it has no unused key to type text with",
            ));
        }
        self.waiting.push_back(waiting);
        Ok(())
    }
}

/// The characters to type, in reverse order; a line ends with one Return, however it was written.
fn characters(text: &TypedText) -> Vec<char> {
    let text = text.expose().replace("\r\n", "\n").replace('\r', "\n");
    text.chars().rev().collect()
}

impl Input for XTestInput {
    fn select(&mut self, area: DisplayArea) {
        self.area = area;
    }

    fn handle(&mut self, now: Monotonic, message: ControlMessage) -> Result<(), DesktopError> {
        let blocked = !self.waiting.is_empty();
        self.enqueue(message)?;
        if blocked { Ok(()) } else { self.advance(now) }
    }

    fn handle_timeout(&mut self, now: Monotonic) -> Result<(), DesktopError> {
        if self.settled.is_none_or(|settled| now < settled) {
            return Ok(());
        }
        self.settled = None;
        self.typing.pause();
        self.advance(now)
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        self.settled
    }

    fn release_all(&mut self) -> Result<(), DesktopError> {
        self.waiting.clear();
        for keycode in std::mem::take(&mut self.keys) {
            self.fake(KEY_RELEASE_EVENT, keycode, (0, 0))?;
        }
        for button in std::mem::take(&mut self.buttons) {
            self.fake(BUTTON_RELEASE_EVENT, button, (0, 0))?;
        }
        // A server may drop what a closed connection still held; an answer says that it has done all of it.
        self.server.connection.get_input_focus()?.reply()?;
        Ok(())
    }
}

impl Drop for XTestInput {
    fn drop(&mut self) {
        // A server that is gone holds nothing.
        let alive = self.release_all().is_ok();
        if alive && self.settled.is_some() {
            // Keys that lose their symbol now would type nothing in a program that has not looked yet.
            let settle = rustix::time::Timespec::try_from(SETTLE).ok();
            let _ = rustix::event::poll(&mut [], settle.as_ref());
        }
        let _ = self.typing.clear(&self.server.connection);
        let _ = self.finish();
    }
}
