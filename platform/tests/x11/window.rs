//! A window of the test's own that tells what reaches it.

use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{ConnectionExt, CreateWindowAux, EventMask, InputFocus, WindowClass};
use x11rb::rust_connection::RustConnection;

/// A window that covers the upper left of the screen and has the keyboard.
pub struct Window {
    pub connection: RustConnection,
    pub root: u32,
    mapping: Vec<u32>,
    width: usize,
}

impl Window {
    pub fn open(display: &str, width: u16, height: u16) -> Self {
        let (connection, screen) = x11rb::connect(Some(display)).unwrap();
        let root = connection.setup().roots[screen].root;
        let id = connection.generate_id().unwrap();
        let events = EventMask::KEY_PRESS
            | EventMask::KEY_RELEASE
            | EventMask::BUTTON_PRESS
            | EventMask::BUTTON_RELEASE
            | EventMask::POINTER_MOTION
            | EventMask::STRUCTURE_NOTIFY
            | EventMask::FOCUS_CHANGE;
        let aux = CreateWindowAux::new().event_mask(events).override_redirect(1);
        let class = WindowClass::INPUT_OUTPUT;
        connection
            .create_window(0, id, root, 0, 0, width, height, 0, class, 0, &aux)
            .unwrap();
        connection.map_window(id).unwrap();
        connection.flush().unwrap();
        let mut window = Self {
            connection,
            root,
            mapping: Vec::new(),
            width: 1,
        };
        window.wait(|event| matches!(event, Event::MapNotify(_)).then_some(()));
        window
            .connection
            .set_input_focus(InputFocus::PARENT, id, 0u32)
            .unwrap();
        window.wait(|event| matches!(event, Event::FocusIn(_)).then_some(()));
        window.read_mapping();
        window
    }

    /// The first event that `wanted` makes something of; keeps the keyboard mapping current on the way.
    pub fn wait<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        self.connection.flush().unwrap();
        loop {
            let event = self.connection.wait_for_event().unwrap();
            if let Event::MappingNotify(_) = event {
                self.read_mapping();
            }
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    }

    /// Keysyms of the next `count` key presses, read when the press is handled, as programs do.
    pub fn typed(&mut self, count: usize) -> Vec<u32> {
        let mut typed = Vec::new();
        while typed.len() < count {
            let keycode = self.wait(|event| match event {
                Event::KeyPress(press) => Some(press.detail),
                _ => None,
            });
            typed.push(self.mapping[usize::from(keycode) * self.width]);
        }
        typed
    }

    /// How many keys have no symbol.
    pub fn spare_keys(&self) -> usize {
        let first = usize::from(self.connection.setup().min_keycode);
        let keys = self.mapping.chunks(self.width).skip(first);
        keys.filter(|symbols| symbols.iter().all(|symbol| *symbol == 0))
            .count()
    }

    /// Keycodes that the server holds pressed.
    pub fn pressed(&self) -> Vec<usize> {
        let keys = self.connection.query_keymap().unwrap().reply().unwrap().keys;
        (0..256)
            .filter(|code| keys[code / 8] >> (code % 8) & 1 == 1)
            .collect()
    }

    fn read_mapping(&mut self) {
        let setup = self.connection.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let reply = self.connection.get_keyboard_mapping(first, last - first + 1);
        let reply = reply.unwrap().reply().unwrap();
        self.width = reply.keysyms_per_keycode.into();
        self.mapping = vec![0; usize::from(first) * self.width];
        self.mapping.extend(reply.keysyms);
    }
}
