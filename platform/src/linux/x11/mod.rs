//! The X11 desktop: its displays, its pictures and its input, over connections of our own.
//!
//! Xlib ends the whole process when its server goes away, so nothing here uses it; `x11rb` speaks the protocol
//! itself and returns errors.

mod displays;
mod input;
mod keycodes;
mod pointer;
mod screen;
#[expect(unsafe_code, reason = "memory that is shared with the server")]
mod shm;
mod text;

pub use displays::Displays;
pub use input::XTestInput;
pub use screen::X11Screen;

use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::{ConnectError, ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::xproto::Screen;
use x11rb::rust_connection::RustConnection;

use crate::desktop::DesktopError;

/// A connection and the number of its screen.
struct Server {
    connection: RustConnection,
    screen: usize,
}

impl Server {
    /// Connects to `display` (`:0`), or to the one in `DISPLAY`.
    fn connect(display: Option<&str>) -> Result<Self, DesktopError> {
        let (connection, screen) = x11rb::connect(display).map_err(|error| DesktopError::NoServer {
            display: display.unwrap_or_default().to_owned(),
            reason: reason(&error),
        })?;
        Ok(Self { connection, screen })
    }

    fn screen(&self) -> &Screen {
        &self.connection.setup().roots[self.screen]
    }

    fn root(&self) -> u32 {
        self.screen().root
    }

    /// Fails when the server lacks `extension`, given by its name on the wire.
    fn need(&self, extension: &'static str) -> Result<(), DesktopError> {
        match self.connection.extension_information(extension)? {
            Some(_) => Ok(()),
            None => Err(DesktopError::NoExtension(extension)),
        }
    }
}

/// What a person can do something about, without the setup data of the server.
fn reason(error: &ConnectError) -> String {
    match error {
        ConnectError::SetupAuthenticate(_) | ConnectError::SetupFailed(_) => {
            "it does not let this program in; see XAUTHORITY".to_owned()
        }
        other => other.to_string(),
    }
}

impl From<ConnectionError> for DesktopError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::UnsupportedExtension => Self::Unsupported("an extension is missing"),
            other => Self::ServerGone(other.to_string()),
        }
    }
}

impl From<ReplyError> for DesktopError {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => refused(&error),
        }
    }
}

impl From<ReplyOrIdError> for DesktopError {
    fn from(error: ReplyOrIdError) -> Self {
        match error {
            ReplyOrIdError::IdsExhausted => Self::Refused("no more ids".to_owned()),
            ReplyOrIdError::ConnectionError(error) => error.into(),
            ReplyOrIdError::X11Error(error) => refused(&error),
        }
    }
}

fn refused(error: &x11rb::x11_utils::X11Error) -> DesktopError {
    let request = error.request_name.unwrap_or("a request");
    DesktopError::Refused(format!("{request}: {:?}", error.error_kind))
}
