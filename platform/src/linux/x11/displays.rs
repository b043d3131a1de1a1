//! The monitors RandR knows, and the news about them.

use std::os::fd::{AsFd, BorrowedFd};

use crossdesk_core::units::PixelSize;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::randr::{ConnectionExt as _, MonitorInfo, NotifyMask};
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt as _, EventMask};

use super::Server;
use crate::desktop::{DesktopError, Display, DisplayArea};

/// The displays of an X server, watched for changes.
pub struct Displays {
    server: Server,
    known: Vec<Display>,
}

impl std::fmt::Debug for Displays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Displays")
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl Displays {
    /// Looks at the displays of `display` (`:0`), or of the server in `DISPLAY`.
    ///
    /// # Errors
    /// `NoServer`, or `NoExtension` without RandR 1.5.
    pub fn open(display: Option<&str>) -> Result<Self, DesktopError> {
        let server = Server::connect(display)?;
        watch(&server)?;
        let mut displays = Self {
            server,
            known: Vec::new(),
        };
        displays.known = read(&displays.server)?;
        Ok(displays)
    }

    /// The displays as last seen: the primary one first, then from left to right and from top to bottom.
    pub fn list(&self) -> &[Display] {
        &self.known
    }

    /// Reads the news that arrived; the new list when it differs. Never waits: [`AsFd`] says when there is news.
    ///
    /// # Errors
    /// `ServerGone`.
    pub fn poll_change(&mut self) -> Result<Option<&[Display]>, DesktopError> {
        let mut news = false;
        while let Some(event) = self.server.connection.poll_for_event()? {
            news |= is_news(&event);
        }
        if !news {
            return Ok(None);
        }
        let found = read(&self.server)?;
        if found == self.known {
            return Ok(None);
        }
        self.known = found;
        Ok(Some(&self.known))
    }
}

impl AsFd for Displays {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.server.connection.stream().as_fd()
    }
}

fn display(monitor: &MonitorInfo, name: &[u8]) -> Display {
    Display {
        name: String::from_utf8_lossy(name).into_owned(),
        area: DisplayArea {
            left: monitor.x.into(),
            top: monitor.y.into(),
            size: PixelSize::new(monitor.width.into(), monitor.height.into()),
        },
        primary: monitor.primary,
    }
}

/// Asks for news about monitors.
pub(super) fn watch(server: &Server) -> Result<(), DesktopError> {
    server.need("RANDR")?;
    let version = server.connection.randr_query_version(1, 5)?.reply()?;
    if (version.major_version, version.minor_version) < (1, 5) {
        return Err(DesktopError::NoExtension("RANDR 1.5"));
    }
    let news = NotifyMask::SCREEN_CHANGE | NotifyMask::CRTC_CHANGE | NotifyMask::OUTPUT_CHANGE;
    server.connection.randr_select_input(server.root(), news)?;
    // Monitors without an output of their own are announced as a change of the root window.
    let root = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
    server.connection.change_window_attributes(server.root(), &root)?;
    Ok(())
}

/// True when monitors may have changed.
pub(super) fn is_news(event: &Event) -> bool {
    matches!(
        event,
        Event::RandrScreenChangeNotify(_) | Event::RandrNotify(_) | Event::ConfigureNotify(_)
    )
}

/// The displays as they are now.
pub(super) fn read(server: &Server) -> Result<Vec<Display>, DesktopError> {
    let connection = &server.connection;
    let monitors = connection.randr_get_monitors(server.root(), true)?.reply()?;
    let mut displays = Vec::with_capacity(monitors.monitors.len());
    for monitor in &monitors.monitors {
        let name = connection.get_atom_name(monitor.name)?.reply()?.name;
        displays.push(display(monitor, &name));
    }
    if displays.is_empty() {
        displays.push(whole(server)?);
    }
    displays.sort_by_key(|display| (!display.primary, display.area.left, display.area.top));
    Ok(displays)
}

/// A server without monitors still has a desktop to show.
fn whole(server: &Server) -> Result<Display, DesktopError> {
    let root = server.connection.get_geometry(server.root())?.reply()?;
    Ok(Display {
        name: "screen".to_owned(),
        area: DisplayArea {
            left: 0,
            top: 0,
            size: PixelSize::new(root.width.into(), root.height.into()),
        },
        primary: true,
    })
}
