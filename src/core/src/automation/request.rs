//! What a request can ask, after parsing: every value here is within the range the protocol allows.

use crate::control::{Key, MouseButton, TypedText};
use crate::units::PixelRect;

/// One request of the automation protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number for it; repeated in the reply.
    pub id: u64,
    /// What is asked.
    pub method: Method,
}

/// The methods and their arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// Names the protocol and asks for limits and abilities.
    Hello,
    /// Starts the process's one connection attempt.
    Connect(Connect),
    /// Asks for the whole state.
    Status,
    /// Asks for an image that actions can refer to.
    Screenshot(Screenshot),
    /// Asks for permission and an address for one viewer of live video.
    VideoOpen(VideoOpen),
    /// Withdraws one view's grants and sockets, or all.
    VideoRevoke {
        /// The view to withdraw; `None` withdraws every one.
        view: Option<Token>,
    },
    /// Asks for a small image nobody can act on; `region` is always `None`.
    Preview(Screenshot),
    /// Sends input.
    Action {
        /// The caller's name for this attempt; the same name never acts twice.
        operation_id: String,
        /// The screenshot whose pixels the action's coordinates mean.
        observation_id: String,
        /// What to do.
        action: Action,
    },
    /// Switches input by the agent on or off.
    Control {
        /// True to switch on.
        enabled: bool,
    },
    /// A person's decision, taken in a trusted panel.
    ViewerControl(ViewerOperation),
    /// Selects another display.
    Display {
        /// 0..=63.
        index: u8,
    },
    /// Ends a request that is still in flight.
    Cancel {
        /// The id of that request.
        request_id: u64,
    },
    /// Ends the connection.
    Disconnect,
    /// Ends the connection and the process.
    Exit,
}

/// What the agent may do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Look only.
    Observe,
    /// Look and send input.
    Control,
}

impl Mode {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Control => "control",
        }
    }
}

/// Who decodes live video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DecodePath {
    /// The browser: viewers receive compressed H.264.
    #[default]
    Browser,
    /// This program: viewers receive NV12 pictures.
    Minirtc,
}

impl DecodePath {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Minirtc => "minirtc",
        }
    }

    /// The video protocol viewers are served with.
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Browser => "h264-annexb/1",
            Self::Minirtc => "nv12/1",
        }
    }
}

/// Which decoders may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DecoderPreference {
    /// Hardware first, software when there is none.
    #[default]
    Auto,
    /// Software only.
    Software,
}

impl DecoderPreference {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Software => "software",
        }
    }
}

/// Arguments of `connect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Nine ASCII digits.
    pub device: String,
    /// What the agent may do.
    pub mode: Mode,
    /// Display to show first, 0..=63.
    pub display: u8,
    /// Who decodes live video.
    pub decode_path: DecodePath,
    /// Which decoders may be used.
    pub decoder: DecoderPreference,
}

/// Arguments of `screenshot` and `preview`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screenshot {
    /// Part of the picture in source pixels; both edges at least 1.
    pub region: Option<PixelRect>,
    /// Longest edge of the image: 64..=2048, for previews 64..=960.
    pub max_edge: Option<u32>,
    /// Only a picture with a greater number will do.
    pub after_frame_id: Option<u64>,
    /// The generation `after_frame_id` belongs to.
    pub generation: Option<u32>,
    /// How long to wait for a usable picture, 0..=5000 ms.
    pub timeout_ms: Option<u32>,
}

/// A 32-character base64url name or secret (24 bytes); never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(String);

impl Token {
    /// Characters in a token: 24 bytes in base64url.
    pub const LENGTH: usize = 32;

    /// The token written as `text`, when it is 32 characters of base64url.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == Self::LENGTH
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        fits.then(|| Self(text.to_owned()))
    }

    /// Its characters; callers keep them out of logs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Arguments of `video_open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoOpen {
    /// The one-time secret the browser will present.
    pub ticket: Token,
    /// The view it is for.
    pub view: Token,
    /// The view's own generation, at least 1.
    pub view_generation: u64,
    /// The caller's session.
    pub session: Token,
    /// `http://127.0.0.1:PORT`, the panel's origin.
    pub origin: String,
    /// True when an opaque (`null`) or HTTPS origin is welcome too.
    pub apps: bool,
}

/// What a person decided in the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewerOperation {
    /// Stop all input by the agent.
    Pause,
    /// Let the agent go on.
    Resume,
    /// End the connection.
    Disconnect,
}

/// Which way to scroll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScrollDirection {
    /// Away from the user.
    Up,
    /// Towards the user.
    Down,
    /// To the left.
    Left,
    /// To the right.
    Right,
}

/// A pixel of an observation's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImagePoint {
    /// Column, from 0.
    pub x: u32,
    /// Row, from 0.
    pub y: u32,
}

/// One input to perform.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Moves the pointer.
    Move {
        /// Where to.
        at: ImagePoint,
    },
    /// Clicks once or twice.
    Click {
        /// Where.
        at: ImagePoint,
        /// With which button.
        button: MouseButton,
        /// True for a double click.
        double: bool,
    },
    /// Turns the wheel.
    Scroll {
        /// Where the pointer is moved first.
        at: ImagePoint,
        /// Which way.
        direction: ScrollDirection,
        /// Notches, 1..=10.
        ticks: u32,
    },
    /// Presses the left button, moves along a path, releases.
    Drag {
        /// 2..=128 points.
        path: Vec<ImagePoint>,
        /// How long the movement takes, 100..=2000 ms.
        duration_ms: u32,
    },
    /// Presses keys in order and releases them in reverse; one key, or 2..=6 different ones.
    Keys(Vec<Key>),
    /// Types text: 1..=16384 bytes of UTF-8 without NUL.
    TypeText(TypedText),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_32_base64url_characters_and_stay_secret() {
        let text = "abcdefghijklmnopqrstuvwxyzAB-_09";
        let token = Token::parse(text).expect("32 characters");
        assert_eq!(token.expose(), text);
        assert!(!format!("{token:?}").contains("abc"));
        for bad in [
            "",
            "abc",
            "abcdefghijklmnopqrstuvwxyzAB+/09",
            "abcdefghijklmnopqrstuvwxyzAB-_09=",
        ] {
            assert!(Token::parse(bad).is_none(), "{bad}");
        }
    }
}
