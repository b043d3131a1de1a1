//! Input for a remote host, as data: what the transport turns into control messages on the wire.
//!
//! [`ControlMessage`] knows neither JSON nor a data channel; [`wire`] is the public protocol's form of it, and [`Held`]
//! knows on the host's side what a guest keeps pressed.

mod held;
pub mod keys;
pub mod wire;

pub use held::Held;
pub use keys::Key;

/// A place on the visible picture of the selected display; both axes run from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// 0 at the left edge, 1 at the right edge.
    pub x: f64,
    /// 0 at the upper edge, 1 at the lower edge.
    pub y: f64,
}

/// A mouse button that every host understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MouseButton {
    /// The primary button.
    Left,
    /// The secondary button.
    Right,
    /// The wheel pressed down.
    Middle,
}

/// The direction in which a wheel turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WheelAxis {
    /// Positive notches scroll up, away from the user.
    Vertical,
    /// Positive notches scroll right.
    Horizontal,
}

/// Text to be typed; never shown by `Debug`, because it may be a password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TypedText(String);

impl TypedText {
    /// Wraps `text`.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself; callers keep it out of logs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for TypedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TypedText({} bytes)", self.0.len())
    }
}

/// One input message.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlMessage {
    /// Moves the pointer.
    MouseMove {
        /// Where to.
        at: Point,
    },
    /// Presses or releases a mouse button.
    MouseButton {
        /// Which one.
        button: MouseButton,
        /// True for press.
        down: bool,
        /// Where the pointer is; hosts may move it there.
        at: Point,
    },
    /// Turns the wheel.
    Wheel {
        /// Which way the wheel lies.
        axis: WheelAxis,
        /// Signed notches, see [`WheelAxis`].
        notches: i32,
        /// Where the pointer is.
        at: Point,
    },
    /// Presses or releases a key.
    Key {
        /// Which one.
        key: Key,
        /// True for press.
        down: bool,
    },
    /// Types text in one go, through the host's negotiated text input.
    Text(TypedText),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_text_does_not_show_in_debug_output() {
        let message = ControlMessage::Text(TypedText::new("hunter2".into()));
        assert_eq!(format!("{message:?}"), "Text(TypedText(7 bytes))");
    }
}
