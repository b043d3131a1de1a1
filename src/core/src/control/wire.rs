//! Control messages as the public protocol writes them: one JSON object each, told apart by a number.
//!
//! A guest writes [`guest_texts`] and reads [`HostMessage`]; a host writes [`host_info`] and reads [`GuestMessage`].
//! Three messages are ours. A host announces in its host information which of them it takes, a guest answers with those
//! it takes itself, and neither sends one that was not announced; the public protocol ignores extra fields.

use serde_json::{Value, json};

use super::{ControlMessage, Key, MouseButton, Point, TypedText, WheelAxis, keys};

/// Longest message that is read, in bytes; text and clipboard need the most.
pub const MAX_CONTROL_BYTES: usize = 256 * 1024;
/// Longest text typed by one message, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Keys one guest can hold (public protocol).
pub const MAX_PRESSED_KEYS: usize = 32;
/// Displays that are read from host information.
const MAX_DISPLAYS: usize = 64;
/// Wheel steps of one message that are passed on: a page of a browser sends hundreds of pixels.
const MAX_NOTCHES: i64 = 20;
/// At and above this a wheel's number is pixels, a hundred of them one notch (measured with browsers).
const WHEEL_PIXELS: i64 = 20;
const PIXELS_PER_NOTCH: i64 = 100;

/// Extension: a host types text in one message, whatever its keyboard layout.
pub const TEXT_INPUT: &str = "text_input";
/// Extension: a guest is told whether its input is taken.
pub const CONTROL_STATUS: &str = "control_status";

const MOUSE: i64 = 0;
const KEYBOARD: i64 = 1;
const AUDIO: i64 = 2;
const HOST_INFO: i64 = 3;
const DISPLAY: i64 = 4;
const KEYBOARD_STATE: i64 = 7;
/// Ours begin far above the public ones.
const TEXT: i64 = 1000;
const STATUS: i64 = 1001;
const EXTENSIONS: i64 = 1002;

/// What a guest says to a host.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestMessage {
    /// Input to be injected.
    Input(ControlMessage),
    /// All keys it holds; `seq` grows, 0 is always taken.
    KeyboardState {
        /// Counts these messages.
        seq: u32,
        /// Held keys.
        keys: Vec<Key>,
    },
    /// Show this display.
    SelectDisplay(u8),
    /// Start or stop sending sound.
    AudioCapture(bool),
    /// Extensions it takes.
    Extensions(Extensions),
}

/// What a host says to a guest.
#[derive(Clone, Debug, PartialEq)]
pub enum HostMessage {
    /// Who it is.
    Info(HostInfo),
    /// Whether input is taken.
    ControlStatus {
        /// True when it is.
        allowed: bool,
    },
}

/// Which extensions an end takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// [`TEXT_INPUT`].
    pub text_input: bool,
    /// [`CONTROL_STATUS`].
    pub control_status: bool,
}

impl Extensions {
    fn names(self) -> Vec<&'static str> {
        let all = [
            (self.text_input, TEXT_INPUT),
            (self.control_status, CONTROL_STATUS),
        ];
        all.into_iter()
            .filter(|(taken, _)| *taken)
            .map(|(_, name)| name)
            .collect()
    }

    fn parse(list: &Value) -> Self {
        let has = |name: &str| {
            list.as_array()
                .is_some_and(|list| list.iter().any(|entry| entry == name))
        };
        Self {
            text_input: has(TEXT_INPUT),
            control_status: has(CONTROL_STATUS),
        }
    }
}

/// Where a display lies on the host's desktop, in pixels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisplayBounds {
    /// As the system calls it.
    pub name: String,
    /// Left edge.
    pub left: i32,
    /// Upper edge.
    pub top: i32,
    /// One past the right edge.
    pub right: i32,
    /// One past the lower edge.
    pub bottom: i32,
}

/// What a host tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostInfo {
    /// Name of the machine.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// `windows`, `macos`, `linux`, or what it says; empty when it does not.
    pub platform: String,
    /// In the order of its video tracks.
    pub displays: Vec<DisplayBounds>,
    /// Ours.
    pub extensions: Extensions,
}

/// `message` as texts for the host, in order. Buttons and wheels are preceded by a move, because some hosts move the
/// pointer on nothing else.
pub fn guest_texts(message: &ControlMessage) -> Vec<String> {
    match message {
        ControlMessage::MouseMove { at } => vec![mouse(*at, 0, 0)],
        ControlMessage::MouseButton { button, down, at } => {
            let flag = match button {
                MouseButton::Left => 1,
                MouseButton::Right => 3,
                MouseButton::Middle => 5,
            };
            vec![mouse(*at, 0, 0), mouse(*at, flag + i64::from(!down), 0)]
        }
        ControlMessage::Wheel { axis, notches, at } => {
            let flag = match axis {
                WheelAxis::Vertical => 7,
                WheelAxis::Horizontal => 8,
            };
            vec![mouse(*at, 0, 0), mouse(*at, flag, *notches)]
        }
        ControlMessage::Key { key, down } => vec![keyboard(*key, *down)],
        ControlMessage::Text(text) => {
            vec![json!({ "type": TEXT, "text_input": { "text": text.expose() } }).to_string()]
        }
    }
}

/// A guest wants to see display `index`.
pub fn select_display(index: u8) -> String {
    json!({ "type": DISPLAY, "display_id": index }).to_string()
}

/// A guest's answer to a host that announced extensions.
pub fn guest_extensions(extensions: Extensions) -> String {
    json!({ "type": EXTENSIONS, "extensions": extensions.names() }).to_string()
}

/// A host tells who it is.
pub fn host_info(info: &HostInfo) -> String {
    let display = |display: &DisplayBounds| {
        let DisplayBounds {
            name,
            left,
            top,
            right,
            bottom,
        } = display;
        json!({ "name": name, "left": left, "top": top, "right": right, "bottom": bottom })
    };
    let displays: Vec<Value> = info.displays.iter().map(display).collect();
    json!({
        "type": HOST_INFO,
        "host_info": {
            "host_name": info.name, "app_version": info.version, "display_num": displays.len(),
            "displays": displays, "platform": info.platform, "extensions": info.extensions.names(),
        },
    })
    .to_string()
}

/// A host tells a guest that announced [`CONTROL_STATUS`] whether its input is taken.
pub fn control_status(allowed: bool) -> String {
    json!({ "type": STATUS, "control_status": { "allowed": allowed } }).to_string()
}

fn mouse(at: Point, flag: i64, steps: i32) -> String {
    let (x, y) = (at.x.clamp(0.0, 1.0), at.y.clamp(0.0, 1.0));
    json!({ "type": MOUSE, "mouse": { "x": x, "y": y, "s": steps, "flag": flag } }).to_string()
}

fn keyboard(key: Key, down: bool) -> String {
    json!({
        "type": KEYBOARD,
        "keyboard": {
            "key_value": key.vk, "scan_code": key.scan_code, "extended": key.extended, "flag": u8::from(!down),
        },
    })
    .to_string()
}

impl HostMessage {
    /// Reads what a host sent; `None` for what is not of use, which the protocol ignores.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, message) = envelope(bytes)?;
        match kind {
            HOST_INFO => info(message.get("host_info")?).map(Self::Info),
            STATUS => {
                let allowed = message.get("control_status")?.get("allowed")?.as_bool()?;
                Some(Self::ControlStatus { allowed })
            }
            _ => None,
        }
    }
}

impl GuestMessage {
    /// Reads what a guest sent; `None` for what is malformed or unknown, which the protocol ignores.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, message) = envelope(bytes)?;
        match kind {
            MOUSE => mouse_input(message.get("mouse")?).map(Self::Input),
            KEYBOARD => {
                let key = message.get("keyboard")?;
                let down = down_flag(key.get("flag")?)?;
                let key = key_of(key)?;
                Some(Self::Input(ControlMessage::Key { key, down }))
            }
            AUDIO => message.get("audio_capture")?.as_bool().map(Self::AudioCapture),
            DISPLAY => {
                let index = message.get("display_id")?.as_u64()?;
                u8::try_from(index).ok().map(Self::SelectDisplay)
            }
            KEYBOARD_STATE => keyboard_state(message.get("keyboard_state")?),
            TEXT => {
                let text = message.get("text_input")?.get("text")?.as_str()?;
                let fits = text.len() <= MAX_TEXT_BYTES;
                fits.then(|| Self::Input(ControlMessage::Text(TypedText::new(text.to_owned()))))
            }
            EXTENSIONS => Some(Self::Extensions(Extensions::parse(message.get("extensions")?))),
            _ => None,
        }
    }
}

fn envelope(bytes: &[u8]) -> Option<(i64, Value)> {
    if bytes.len() > MAX_CONTROL_BYTES {
        return None;
    }
    let message: Value = serde_json::from_slice(bytes).ok()?;
    Some((message.get("type")?.as_i64()?, message))
}

fn mouse_input(mouse: &Value) -> Option<ControlMessage> {
    let axis = |name: &str| mouse.get(name)?.as_f64().filter(|value| value.is_finite());
    let at = Point {
        x: axis("x")?.clamp(0.0, 1.0),
        y: axis("y")?.clamp(0.0, 1.0),
    };
    let steps = mouse.get("s")?.as_i64()?;
    let flag = mouse.get("flag")?.as_u64()?;
    let button = |button| ControlMessage::MouseButton {
        button,
        down: flag % 2 == 1,
        at,
    };
    let wheel = |axis| ControlMessage::Wheel {
        axis,
        notches: notches(steps),
        at,
    };
    Some(match flag {
        0 => ControlMessage::MouseMove { at },
        1 | 2 => button(MouseButton::Left),
        3 | 4 => button(MouseButton::Right),
        5 | 6 => button(MouseButton::Middle),
        7 => wheel(WheelAxis::Vertical),
        8 => wheel(WheelAxis::Horizontal),
        _ => return None,
    })
}

/// Native guests send notches, browsers pixels.
fn notches(steps: i64) -> i32 {
    let notches = if steps.saturating_abs() >= WHEEL_PIXELS {
        let whole = steps / PIXELS_PER_NOTCH;
        if whole == 0 { steps.signum() } else { whole }
    } else {
        steps
    };
    i32::try_from(notches.clamp(-MAX_NOTCHES, MAX_NOTCHES)).unwrap_or_default()
}

fn down_flag(flag: &Value) -> Option<bool> {
    match flag.as_u64()? {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    }
}

/// A key as a guest names it: older ones and browsers send no scan code, browsers the generic modifiers.
fn key_of(key: &Value) -> Option<Key> {
    let vk = match u8::try_from(key.get("key_value")?.as_u64()?).ok()? {
        0x10 => 0xa0,
        0x11 => 0xa2,
        0x12 => 0xa4,
        vk => vk,
    };
    let given = key
        .get("scan_code")
        .and_then(Value::as_u64)
        .map_or(0, |code| code & 0xff);
    let extended = key.get("extended").and_then(Value::as_bool);
    let scan_code = u8::try_from(given).unwrap_or_default();
    if scan_code != 0 {
        let extended = extended.unwrap_or_default();
        return Some(Key {
            vk,
            scan_code,
            extended,
        });
    }
    let known = keys::KEYS
        .iter()
        .map(|(_, key)| *key)
        .find(|key| key.vk == vk && extended.is_none_or(|extended| extended == key.extended));
    Some(known.unwrap_or(Key {
        vk,
        scan_code: 0,
        extended: extended.unwrap_or_default(),
    }))
}

fn keyboard_state(state: &Value) -> Option<GuestMessage> {
    let seq = u32::try_from(state.get("seq")?.as_u64()?).ok()?;
    let keys = state.get("pressed_keys")?.as_array()?;
    if keys.len() > MAX_PRESSED_KEYS {
        return None;
    }
    let keys = keys.iter().map(key_of).collect::<Option<Vec<Key>>>()?;
    Some(GuestMessage::KeyboardState { seq, keys })
}

fn info(info: &Value) -> Option<HostInfo> {
    let text = |name: &str| {
        info.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let displays = info.get("displays")?.as_array()?;
    let edge = |display: &Value, name: &str| {
        let edge = display.get(name)?.as_i64()?;
        i32::try_from(edge).ok()
    };
    let display = |display: &Value| {
        let bounds = DisplayBounds {
            name: display
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            left: edge(display, "left")?,
            top: edge(display, "top")?,
            right: edge(display, "right")?,
            bottom: edge(display, "bottom")?,
        };
        (bounds.left < bounds.right && bounds.top < bounds.bottom).then_some(bounds)
    };
    Some(HostInfo {
        name: text("host_name"),
        version: text("app_version"),
        platform: text("platform"),
        displays: displays
            .iter()
            .take(MAX_DISPLAYS)
            .map(display)
            .collect::<Option<_>>()?,
        extensions: info.get("extensions").map(Extensions::parse).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Point = Point { x: 0.4375, y: 0.25 };

    fn read(message: &ControlMessage) -> Vec<ControlMessage> {
        let input = |text: &String| match GuestMessage::parse(text.as_bytes()) {
            Some(GuestMessage::Input(message)) => message,
            other => panic!("{text}: {other:?}"),
        };
        guest_texts(message).iter().map(input).collect()
    }

    fn parse(text: &str) -> Option<GuestMessage> {
        GuestMessage::parse(text.as_bytes())
    }

    #[test]
    fn what_a_guest_writes_a_host_reads() {
        let all_buttons = [MouseButton::Left, MouseButton::Right, MouseButton::Middle];
        let buttons = all_buttons.into_iter().flat_map(|button| {
            [true, false].map(|down| ControlMessage::MouseButton { button, down, at: AT })
        });
        let wheels = [(WheelAxis::Vertical, -3), (WheelAxis::Horizontal, 2)].map(|(axis, notches)| {
            ControlMessage::Wheel {
                axis,
                notches,
                at: AT,
            }
        });
        let keys = keys::KEYS
            .iter()
            .flat_map(|(_, key)| [true, false].map(|down| ControlMessage::Key { key: *key, down }));
        let text = ControlMessage::Text(TypedText::new("žluť 終 \u{1f600}\n".into()));
        let moved = ControlMessage::MouseMove { at: AT };
        for message in buttons.chain(wheels).chain(keys).chain([text, moved.clone()]) {
            let read = read(&message);
            assert_eq!(read.last(), Some(&message));
            if read.len() == 2 {
                assert_eq!(read[0], moved);
            }
        }
    }

    #[test]
    fn the_texts_are_the_public_ones() {
        let left = ControlMessage::MouseButton {
            button: MouseButton::Left,
            down: true,
            at: AT,
        };
        let texts = guest_texts(&left);
        let public: Value = serde_json::from_str(&texts[1]).expect("JSON");
        assert_eq!(
            public,
            json!({ "type": 0, "mouse": { "x": 0.4375, "y": 0.25, "s": 0, "flag": 1 } })
        );
        let key = ControlMessage::Key {
            key: Key::named("NUMPAD_ENTER").expect("a key"),
            down: false,
        };
        let public: Value = serde_json::from_str(&guest_texts(&key)[0]).expect("JSON");
        let keyboard = json!({ "key_value": 13, "scan_code": 28, "extended": true, "flag": 1 });
        assert_eq!(public, json!({ "type": 1, "keyboard": keyboard }));
        assert_eq!(parse(&select_display(1)), Some(GuestMessage::SelectDisplay(1)));
    }

    #[test]
    fn what_browsers_send_is_understood() {
        let key = |text: &str| match parse(text) {
            Some(GuestMessage::Input(ControlMessage::Key { key, .. })) => key,
            other => panic!("{text}: {other:?}"),
        };
        let shift = key(r#"{"type":1,"keyboard":{"key_value":16,"flag":0}}"#);
        assert_eq!(shift, Key::named("SHIFT").expect("a key"));
        let left = key(r#"{"type":1,"keyboard":{"key_value":37,"flag":0}}"#);
        assert_eq!(left, Key::named("LEFT").expect("a key"));
        for (sent, notches) in [
            (100, 1),
            (-100, -1),
            (-53, -1),
            (250, 2),
            (3, 3),
            (1_000_000, 20),
            (i64::MIN, -20),
        ] {
            let text = json!({ "type": 0, "mouse": { "x": 0, "y": 1, "s": sent, "flag": 7 } }).to_string();
            let wheel = ControlMessage::Wheel {
                axis: WheelAxis::Vertical,
                notches,
                at: Point { x: 0.0, y: 1.0 },
            };
            assert_eq!(parse(&text), Some(GuestMessage::Input(wheel)), "{sent}");
        }
        let outside = r#"{"type":0,"mouse":{"x":1.5,"y":-2,"s":0,"flag":0}}"#;
        let at = Point { x: 1.0, y: 0.0 };
        assert_eq!(
            parse(outside),
            Some(GuestMessage::Input(ControlMessage::MouseMove { at }))
        );
    }

    #[test]
    fn what_is_no_message_is_ignored() {
        let too_long = "x".repeat(MAX_TEXT_BYTES + 1);
        let keys = vec![json!({ "key_value": 1 }); MAX_PRESSED_KEYS + 1];
        let cases = [
            String::new(),
            "7".into(),
            "{}".into(),
            r#"{"type":"0"}"#.into(),
            r#"{"type":0,"mouse":{"x":0,"y":0,"flag":0}}"#.into(),
            r#"{"type":0,"mouse":{"x":0,"y":0,"s":0,"flag":9}}"#.into(),
            r#"{"type":1,"keyboard":{"key_value":300,"flag":0}}"#.into(),
            r#"{"type":1,"keyboard":{"key_value":65,"flag":2}}"#.into(),
            r#"{"type":4,"display_id":-1}"#.into(),
            r#"{"type":4,"display_id":256}"#.into(),
            r#"{"type":6,"service_command":{"flag":0}}"#.into(),
            json!({ "type": 1000, "text_input": { "text": too_long } }).to_string(),
            json!({ "type": 7, "keyboard_state": { "seq": 1, "pressed_keys": keys } }).to_string(),
        ];
        for text in cases {
            assert_eq!(parse(&text), None, "{text:.80}");
        }
        let huge = format!(
            r#"{{"type":4,"display_id":1,"x":"{}"}}"#,
            "x".repeat(MAX_CONTROL_BYTES)
        );
        assert_eq!(parse(&huge), None);
    }

    #[test]
    fn host_information_goes_there_and_back() {
        let info = HostInfo {
            name: "den-pc".into(),
            version: "0.1.0".into(),
            platform: "linux".into(),
            displays: vec![DisplayBounds {
                name: "DP-1".into(),
                left: -1920,
                top: 0,
                right: 0,
                bottom: 1080,
            }],
            extensions: Extensions {
                text_input: true,
                control_status: true,
            },
        };
        let read = HostMessage::parse(host_info(&info).as_bytes());
        assert_eq!(read, Some(HostMessage::Info(info)));
        let status = HostMessage::parse(control_status(false).as_bytes());
        assert_eq!(status, Some(HostMessage::ControlStatus { allowed: false }));
        let answer = Extensions {
            text_input: false,
            control_status: true,
        };
        assert_eq!(
            parse(&guest_extensions(answer)),
            Some(GuestMessage::Extensions(answer))
        );
    }

    #[test]
    fn a_public_host_of_2025_announces_nothing_of_ours() {
        let text = r#"{"type":3,"host_info":{"host_name":"den-pc","display_num":1,
            "displays":[{"name":"DISPLAY1","left":0,"top":0,"right":2560,"bottom":1440}]}}"#;
        let Some(HostMessage::Info(info)) = HostMessage::parse(text.as_bytes()) else {
            panic!("no information");
        };
        assert_eq!(
            (info.displays[0].right, info.extensions),
            (2560, Extensions::default())
        );
        let empty = r#"{"type":3,"host_info":{"displays":[{"left":5,"top":0,"right":5,"bottom":1}]}}"#;
        assert_eq!(HostMessage::parse(empty.as_bytes()), None);
    }
}
