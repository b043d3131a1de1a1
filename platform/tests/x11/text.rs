//! Typed text, as programs read it.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use crossdesk_core::control::{ControlMessage, Key, TypedText};
use crossdesk_core::time::Monotonic;
use crossdesk_platform::desktop::DesktopError;
use crossdesk_platform::input::Input;
use crossdesk_platform::linux::x11::XTestInput;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt as _, EventMask, InputFocus};

use crate::window::Window;
use crate::xvfb::Xvfb;

const NOW: Monotonic = Monotonic::from_micros(1);

fn text(text: &str) -> ControlMessage {
    ControlMessage::Text(TypedText::new(text.to_owned()))
}

fn key(name: &str, down: bool) -> ControlMessage {
    let key = Key::named(name).expect(name);
    ControlMessage::Key { key, down }
}

/// `xev`, an ordinary program that reads its keyboard through Xlib, with the keyboard's focus.
struct Xev {
    program: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Xev {
    fn start(display: &str) -> Self {
        let (connection, screen) = x11rb::connect(Some(display)).unwrap();
        let root = connection.setup().roots[screen].root;
        let news = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        connection.change_window_attributes(root, &news).unwrap();
        connection.flush().unwrap();
        let mut program = Command::new("stdbuf")
            // Without this, xev keeps what it writes to a pipe until it has 4 KiB.
            .args(["-oL", "xev", "-display", display, "-event", "keyboard"])
            .env("LC_ALL", "C.UTF-8")
            .stdout(Stdio::piped())
            .spawn()
            .expect("xev is installed (Debian package x11-utils)");
        let window = loop {
            if let Event::MapNotify(map) = connection.wait_for_event().unwrap() {
                break map.window;
            }
        };
        connection
            .set_input_focus(InputFocus::PARENT, window, 0u32)
            .unwrap();
        connection.get_input_focus().unwrap().reply().unwrap();
        let output = program.stdout.take().unwrap();
        Self {
            program,
            output: BufReader::new(output).lines(),
        }
    }

    /// The rest of the next line after `start`.
    fn wait(&mut self, start: &str) -> String {
        loop {
            let line = self.output.next().expect("xev goes on").unwrap();
            if let Some((_, rest)) = line.split_once(start) {
                return rest.to_owned();
            }
        }
    }

    /// What Xlib makes of the next presses, up to and including the next Return.
    fn read_line(&mut self) -> String {
        let mut read = String::new();
        while !read.ends_with('\r') {
            let rest = self.wait("XmbLookupString gives ");
            if let Some((bytes, _)) = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')')) {
                let bytes = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap());
                read.push_str(&String::from_utf8(bytes.collect()).unwrap());
            }
        }
        read
    }
}

impl Drop for Xev {
    fn drop(&mut self) {
        // Both fail only when it ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn a_program_reads_any_script_whatever_is_locked_or_held() {
    let server = Xvfb::start(640, 480);
    let mut xev = Xev::start(server.display());
    let mut input = XTestInput::open(Some(server.display())).unwrap();
    input.handle(NOW, key("CAPS_LOCK", true)).unwrap();
    input.handle(NOW, key("CAPS_LOCK", false)).unwrap();
    input.handle(NOW, key("SHIFT", true)).unwrap();
    // Xlib asks for news about symbols when a program waits for the first time after its first key.
    xev.wait("Shift_L");
    input.handle(NOW, key("CTRL", true)).unwrap();
    xev.wait("Control_L");
    for typed in ["Grüße, Ωμέγα!\n", "жук שלום 日本 €😀\t a@B{}~\n"] {
        input.handle(NOW, text(typed)).unwrap();
        assert_eq!(xev.read_line().replace('\r', "\n"), typed);
        input.handle_timeout(input.next_deadline().unwrap()).unwrap();
    }
}

#[test]
fn more_characters_than_spare_keys_are_typed_in_several_runs() {
    let server = Xvfb::start(320, 240);
    let mut window = Window::open(server.display(), 320, 240);
    let mut input = XTestInput::open(Some(server.display())).unwrap();
    let spare = window.spare_keys();
    let many: Vec<char> = (0x4e00..)
        .filter_map(char::from_u32)
        .take(spare * 2 + 1)
        .collect();
    input.handle(NOW, text(&String::from_iter(&many))).unwrap();
    // What comes after waits its turn.
    input.handle(NOW, key("ENTER", true)).unwrap();
    let mut typed = window.typed(spare);
    let settled = input.next_deadline().unwrap();
    let early = Monotonic::from_micros(settled.as_micros() - 1);
    input.handle_timeout(early).unwrap();
    assert_eq!(input.next_deadline(), Some(settled));
    input.handle_timeout(settled).unwrap();
    typed.extend(window.typed(spare));
    input.handle_timeout(input.next_deadline().unwrap()).unwrap();
    typed.extend(window.typed(2));
    let expected: Vec<u32> = many
        .into_iter()
        .map(|c| 0x0100_0000 | u32::from(c))
        .chain([0xff0d])
        .collect();
    assert_eq!(typed, expected);
}

#[test]
fn releasing_all_forgets_what_was_not_typed_yet() {
    let server = Xvfb::start(320, 240);
    let mut window = Window::open(server.display(), 320, 240);
    let mut input = XTestInput::open(Some(server.display())).unwrap();
    let many: String = (0x4e00..0x4e00 + 400).filter_map(char::from_u32).collect();
    input.handle(NOW, text(&many)).unwrap();
    input.release_all().unwrap();
    let settled = input.next_deadline().unwrap();
    input.handle_timeout(settled).unwrap();
    assert_eq!(input.next_deadline(), None);
    input.handle(settled, key("ENTER", true)).unwrap();
    let mut typed = 0;
    while window.typed(1) != [0xff0d] {
        typed += 1;
    }
    assert!(typed > 0 && typed < 400, "{typed}");
}

#[test]
fn too_much_text_at_once_is_refused_whole() {
    let server = Xvfb::start(320, 240);
    let mut input = XTestInput::open(Some(server.display())).unwrap();
    let refused = input.handle(NOW, text(&"x".repeat(16 * 1024 + 1)));
    assert_eq!(refused, Err(DesktopError::Busy));
    assert_eq!(input.next_deadline(), None);
}
