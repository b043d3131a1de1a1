//! Pictures of one display: changed rows come through shared memory, and a screen that is still costs nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crossdesk_core::screen::{Screen, ScreenError, ScreenPixels, Waker};
use crossdesk_core::units::{PixelRect, PixelSize};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::damage::{ConnectionExt as _, Damage, ReportLevel};
use x11rb::protocol::shm::ConnectionExt as _;
use x11rb::protocol::xfixes::{ConnectionExt as _, CursorNotifyMask, Region};
use x11rb::protocol::xinput::{ConnectionExt as _, Device, EventMask, XIEventMask};
use x11rb::protocol::xproto::{ImageFormat, ImageOrder, Rectangle};

use super::pointer::{PIXEL, Painted, clip, paint};
use super::shm::Shared;
use super::{Server, displays};
use crate::desktop::{DesktopError, DisplayArea};

/// Changed rows with fewer unchanged ones than this between them are fetched together: a request costs more.
const GAP: u32 = 32;

/// A display of an X server as pictures.
pub struct X11Screen {
    server: Server,
    /// Name of the display.
    name: String,
    area: DisplayArea,
    memory: Shared,
    damage: Damage,
    region: Region,
    pointer: bool,
    /// Where the pointer was painted last.
    painted: Option<PixelRect>,
    /// True when something changed that nobody was told about.
    changed: bool,
    /// True when every pixel has to be fetched.
    stale: bool,
    /// True when monitors changed.
    moved: bool,
    wake: Arc<Wake>,
}

/// Ends a wait by making a descriptor readable.
struct Wake(OwnedFd);

impl Waker for Wake {
    fn wake(&self) {
        // Fails only when it is full of earlier wake-ups.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl std::fmt::Debug for X11Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("X11Screen")
            .field("name", &self.name)
            .field("area", &self.area)
            .finish_non_exhaustive()
    }
}

impl X11Screen {
    /// Looks at the display called `name` of the server `display` (`:0`) or the one in `DISPLAY`; with the pointer
    /// painted onto it when `pointer`.
    ///
    /// # Errors
    /// `NoServer`, `NoExtension` without DAMAGE, MIT-SHM, XFIXES or XInput, `DisplayGone` when there is no such
    /// display, `Unsupported` when pixels do not have 32 bits, `Refused` by a server on another machine.
    pub fn open(display: Option<&str>, name: &str, pointer: bool) -> Result<Self, DesktopError> {
        let server = Server::connect(display)?;
        for extension in ["DAMAGE", "MIT-SHM", "XFIXES", "RANDR", "XInputExtension"] {
            server.need(extension)?;
        }
        check_pixels(&server)?;
        let connection = &server.connection;
        connection.damage_query_version(1, 1)?.reply()?;
        connection.xfixes_query_version(5, 0)?.reply()?;
        connection.shm_query_version()?.reply()?;
        displays::watch(&server)?;
        let area = find(&server, name)?;
        let memory = Shared::new(&server, bytes(area.size))?;
        let (damage, region) = (connection.generate_id()?, connection.generate_id()?);
        connection.damage_create(damage, server.root(), ReportLevel::NON_EMPTY)?;
        connection.xfixes_create_region(region, &[])?;
        if pointer {
            watch_pointer(&server)?;
        }
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| DesktopError::Refused(format!("no descriptor: {error}")))?;
        Ok(Self {
            server,
            name: name.to_owned(),
            area,
            memory,
            damage,
            region,
            pointer,
            painted: None,
            changed: true,
            stale: true,
            moved: false,
            wake: Arc::new(Wake(wake)),
        })
    }

    /// Where the display lies, as of the newest grab.
    pub fn area(&self) -> DisplayArea {
        self.area
    }

    /// Reads every event that is here.
    fn read_events(&mut self) -> Result<(), DesktopError> {
        while let Some(event) = self.server.connection.poll_for_event()? {
            self.moved |= displays::is_news(&event);
            self.changed |= self.moved
                || matches!(
                    event,
                    Event::DamageNotify(_) | Event::XfixesCursorNotify(_) | Event::XinputRawMotion(_)
                );
        }
        Ok(())
    }

    fn wait_for_news(&mut self, timeout: Duration) -> Result<bool, DesktopError> {
        self.server.connection.flush()?;
        self.read_events()?;
        if std::mem::take(&mut self.changed) {
            return Ok(true);
        }
        let timeout = Timespec::try_from(timeout).ok();
        let stream = self.server.connection.stream().as_fd();
        let mut ready = [
            PollFd::from_borrowed_fd(stream, PollFlags::IN),
            PollFd::new(&self.wake.0, PollFlags::IN),
        ];
        // A signal ends the wait early, which callers expect anyway.
        let _ = poll(&mut ready, timeout.as_ref());
        let _ = rustix::io::read(&self.wake.0, &mut [0; 8]);
        self.read_events()?;
        Ok(std::mem::take(&mut self.changed))
    }

    /// Follows the display to where it is now.
    fn follow(&mut self) -> Result<(), DesktopError> {
        let area = find(&self.server, &self.name)?;
        self.moved = false;
        if area == self.area {
            return Ok(());
        }
        if area.size != self.area.size {
            self.server.connection.shm_detach(self.memory.seg())?;
            self.memory = Shared::new(&self.server, bytes(area.size))?;
        }
        self.area = area;
        self.painted = None;
        self.stale = true;
        Ok(())
    }

    /// Brings memory up to date; what changed in it.
    fn fetch(&mut self) -> Result<Vec<PixelRect>, DesktopError> {
        let connection = &self.server.connection;
        // Emptied first: what is drawn while the rows are fetched counts as a change after this.
        connection.damage_subtract(self.damage, x11rb::NONE, self.region)?;
        let damaged = connection.xfixes_fetch_region(self.region)?.reply()?.rectangles;
        let mut changed: Vec<PixelRect> = if std::mem::take(&mut self.stale) {
            vec![PixelRect::whole(self.area.size)]
        } else {
            damaged.iter().filter_map(|rect| self.inside(rect)).collect()
        };
        changed.sort_by_key(|rect| rect.y);
        for (first, rows) in bands(&changed) {
            self.fetch_rows(first, rows)?;
        }
        Ok(changed)
    }

    fn inside(&self, rect: &Rectangle) -> Option<PixelRect> {
        let left = i32::from(rect.x) - self.area.left;
        let top = i32::from(rect.y) - self.area.top;
        clip(left, top, (rect.width, rect.height), self.area.size)
    }

    fn fetch_rows(&self, first: u32, rows: u32) -> Result<(), DesktopError> {
        let DisplayArea { left, top, size } = self.area;
        let coordinate = |n: i32| i16::try_from(n).unwrap_or(i16::MAX);
        let length = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
        let y = top + i32::try_from(first).unwrap_or_default();
        let offset = first * size.width * PIXEL as u32;
        let image = self.server.connection.shm_get_image(
            self.server.root(),
            coordinate(left),
            coordinate(y),
            length(size.width),
            length(rows),
            u32::MAX,
            ImageFormat::Z_PIXMAP.into(),
            self.memory.seg(),
            offset,
        )?;
        image.reply()?;
        Ok(())
    }

    fn paint(&mut self) -> Result<Option<Painted>, DesktopError> {
        if !self.pointer {
            return Ok(None);
        }
        let cursor = self.server.connection.xfixes_get_cursor_image()?.reply()?;
        Ok(paint(self.memory.bytes(), self.area, &cursor))
    }

    fn grab_all(&mut self, read: &mut dyn FnMut(ScreenPixels<'_>, &[PixelRect])) -> Result<(), DesktopError> {
        self.read_events()?;
        if self.moved {
            self.follow()?;
        }
        self.changed = false;
        let mut changed = self.fetch()?;
        let painted = self.paint()?;
        // Both where the pointer was and where it is now.
        changed.extend(self.painted);
        self.painted = painted.as_ref().map(|painted| painted.rect);
        changed.extend(self.painted);
        let size = self.area.size;
        let pixels = ScreenPixels {
            data: self.memory.bytes(),
            stride: size.width as usize * PIXEL,
            size,
        };
        read(pixels, &changed);
        if let Some(painted) = painted {
            painted.remove(self.memory.bytes(), size);
        }
        Ok(())
    }

    fn error(&self, error: DesktopError) -> ScreenError {
        match error {
            DesktopError::DisplayGone(name) => ScreenError::DisplayGone(name),
            other => ScreenError::ServerGone(other.to_string()),
        }
    }
}

impl Screen for X11Screen {
    fn size(&self) -> PixelSize {
        self.area.size
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ScreenError> {
        self.wait_for_news(timeout).map_err(|error| self.error(error))
    }

    fn grab(&mut self, read: &mut dyn FnMut(ScreenPixels<'_>, &[PixelRect])) -> Result<(), ScreenError> {
        // A monitor that shrinks makes requests for its old area fail before the news about it is here.
        let first = self.grab_all(read);
        let result = match first {
            Err(DesktopError::Refused(_)) => {
                self.moved = true;
                self.stale = true;
                self.grab_all(read)
            }
            other => other,
        };
        result.map_err(|error| self.error(error))
    }

    fn waker(&self) -> Arc<dyn Waker> {
        Arc::clone(&self.wake) as Arc<dyn Waker>
    }
}

fn bytes(size: PixelSize) -> usize {
    (size.width as usize * size.height as usize * PIXEL).max(1)
}

fn find(server: &Server, name: &str) -> Result<DisplayArea, DesktopError> {
    let displays = displays::read(server)?;
    let found = displays.into_iter().find(|display| display.name == name);
    found
        .map(|display| display.area)
        .ok_or_else(|| DesktopError::DisplayGone(name.to_owned()))
}

fn check_pixels(server: &Server) -> Result<(), DesktopError> {
    let setup = server.connection.setup();
    let depth = server.screen().root_depth;
    let format = setup.pixmap_formats.iter().find(|format| format.depth == depth);
    let bits = format.map_or(0, |format| format.bits_per_pixel);
    if bits != 32 || !matches!(depth, 24 | 32) || setup.image_byte_order != ImageOrder::LSB_FIRST {
        return Err(DesktopError::Unsupported(
            "its pixels do not have 32 bits, blue first",
        ));
    }
    Ok(())
}

/// Asks for news about the pointer's shape and every motion of it.
fn watch_pointer(server: &Server) -> Result<(), DesktopError> {
    let connection = &server.connection;
    connection.xinput_xi_query_version(2, 2)?.reply()?;
    let motion = EventMask {
        deviceid: Device::ALL_MASTER.into(),
        mask: vec![XIEventMask::RAW_MOTION],
    };
    connection.xinput_xi_select_events(server.root(), &[motion])?;
    connection.xfixes_select_cursor_input(server.root(), CursorNotifyMask::DISPLAY_CURSOR)?;
    Ok(())
}

/// Runs of rows that hold every one of `changed`, which is sorted by its upper edges.
fn bands(changed: &[PixelRect]) -> Vec<(u32, u32)> {
    let mut bands: Vec<(u32, u32)> = Vec::new();
    for rect in changed {
        let end = rect.y + rect.height;
        match bands.last_mut() {
            Some((first, rows)) if rect.y <= *first + *rows + GAP => *rows = (*rows).max(end - *first),
            _ => bands.push((rect.y, rect.height)),
        }
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_close_to_each_other_are_fetched_together() {
        let rect = |y, height| PixelRect {
            x: 5,
            y,
            width: 10,
            height,
        };
        let changed = [rect(10, 100), rect(20, 10), rect(142, 8), rect(183, 1)];
        assert_eq!(bands(&changed), [(10, 140), (183, 1)]);
        assert!(bands(&[]).is_empty());
    }
}
