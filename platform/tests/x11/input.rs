//! Mouse, wheel and keys, as a window receives them.

use crossdesk_core::control::{ControlMessage, Key, MouseButton, Point, WheelAxis};
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::PixelSize;
use crossdesk_platform::desktop::{DesktopError, DisplayArea};
use crossdesk_platform::input::Input;
use crossdesk_platform::linux::x11::XTestInput;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::ConnectionExt as _;

use crate::window::Window;
use crate::xvfb::Xvfb;

const NOW: Monotonic = Monotonic::from_micros(1);

fn desk() -> (Xvfb, Window, XTestInput) {
    let server = Xvfb::start(1000, 500);
    let window = Window::open(server.display(), 1000, 500);
    let input = XTestInput::open(Some(server.display())).unwrap();
    (server, window, input)
}

/// The second display of two.
const RIGHT: DisplayArea = DisplayArea {
    left: 500,
    top: 100,
    size: PixelSize::new(500, 400),
};

fn key(name: &str, down: bool) -> ControlMessage {
    let key = Key::named(name).expect(name);
    ControlMessage::Key { key, down }
}

#[test]
fn the_pointer_goes_to_its_place_on_the_selected_display() {
    let (_server, mut window, mut input) = desk();
    input.select(RIGHT);
    let at = Point { x: 0.5, y: 0.25 };
    input.handle(NOW, ControlMessage::MouseMove { at }).unwrap();
    let place = window.wait(|event| match event {
        Event::MotionNotify(motion) => Some((motion.root_x, motion.root_y)),
        _ => None,
    });
    assert_eq!(place, (750, 200));
}

#[test]
fn buttons_and_both_wheels_arrive_where_they_were_meant() {
    let (_server, mut window, mut input) = desk();
    let at = Point { x: 0.1, y: 0.2 };
    for (button, down) in [
        (MouseButton::Left, true),
        (MouseButton::Left, false),
        (MouseButton::Right, true),
        (MouseButton::Right, false),
        (MouseButton::Middle, true),
        (MouseButton::Middle, false),
    ] {
        let message = ControlMessage::MouseButton { button, down, at };
        input.handle(NOW, message).unwrap();
    }
    for (axis, notches) in [
        (WheelAxis::Vertical, 2),
        (WheelAxis::Vertical, -1),
        (WheelAxis::Horizontal, 1),
        (WheelAxis::Horizontal, -2),
    ] {
        let message = ControlMessage::Wheel { axis, notches, at };
        input.handle(NOW, message).unwrap();
    }
    let mut pressed = Vec::new();
    while pressed.len() < 9 {
        pressed.push(window.wait(|event| match event {
            Event::ButtonPress(press) => Some((press.detail, press.root_x, press.root_y)),
            _ => None,
        }));
    }
    let buttons = [1, 3, 2, 4, 4, 5, 7, 6, 6];
    assert_eq!(pressed, buttons.map(|button| (button, 100, 100)));
}

#[test]
fn keys_arrive_with_their_modifiers() {
    let (_server, mut window, mut input) = desk();
    for (name, down) in [
        ("CTRL", true),
        ("SHIFT_RIGHT", true),
        ("LEFT", true),
        ("LEFT", false),
        ("SHIFT_RIGHT", false),
        ("CTRL", false),
    ] {
        input.handle(NOW, key(name, down)).unwrap();
    }
    let state = window.wait(|event| match event {
        Event::KeyPress(press) if press.detail == 113 => Some(u16::from(press.state)),
        _ => None,
    });
    assert_eq!(state, 0b101, "Shift and Control");
    // Control_L, Shift_R, Left: the mapping has the keysyms a person would expect.
    input.handle(NOW, key("ENTER", true)).unwrap();
    assert_eq!(window.typed(1), [0xff0d]);
    assert_eq!(window.pressed(), [36]);
}

#[test]
fn releasing_all_leaves_nothing_pressed() {
    let (_server, mut window, mut input) = desk();
    let at = Point { x: 0.0, y: 0.0 };
    for name in ["CTRL_RIGHT", "ALT", "META", "W", "NUMPAD_ENTER", "F13"] {
        input.handle(NOW, key(name, true)).unwrap();
    }
    let button = MouseButton::Left;
    let press = ControlMessage::MouseButton {
        button,
        down: true,
        at,
    };
    input.handle(NOW, press).unwrap();
    window.wait(|event| matches!(event, Event::ButtonPress(_)).then_some(()));
    assert_eq!(window.pressed().len(), 6);
    input.release_all().unwrap();
    window.wait(|event| matches!(event, Event::ButtonRelease(_)).then_some(()));
    assert_eq!(window.pressed(), [0usize; 0]);
    let pointer = window.connection.query_pointer(window.root).unwrap();
    assert_eq!(u16::from(pointer.reply().unwrap().mask) & 0x1f00, 0);
}

#[test]
fn an_input_that_is_dropped_holds_nothing() {
    let (_server, mut window, mut input) = desk();
    input.handle(NOW, key("W", true)).unwrap();
    window.typed(1);
    drop(input);
    window.wait(|event| matches!(event, Event::KeyRelease(_)).then_some(()));
    assert_eq!(window.pressed(), [0usize; 0]);
}

#[test]
fn a_server_without_xtest_or_without_life_is_a_typed_error() {
    let bare = Xvfb::start_with(320, 240, &["-extension", "XTEST"]);
    let lacking = XTestInput::open(Some(bare.display())).unwrap_err();
    assert_eq!(lacking, DesktopError::NoExtension("XTEST"));
    let (mut server, _window, mut input) = desk();
    server.end();
    let mut results = std::iter::repeat_with(|| input.handle(NOW, key("A", true)));
    let gone = results.find_map(Result::err).unwrap();
    assert!(matches!(gone, DesktopError::ServerGone(_)), "{gone}");
}
