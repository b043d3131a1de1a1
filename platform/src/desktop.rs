//! The desktop as a host offers it, as plain data: its displays, and why something about it cannot be done.

use crossdesk_core::control::Point;
use crossdesk_core::units::PixelSize;

/// One display: a rectangle of the desktop with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Display {
    /// The system's name for it, for example `HDMI-1`.
    pub name: String,
    /// Where it lies on the desktop.
    pub area: DisplayArea,
    /// True for the one that the person at the desk chose as the main one.
    pub primary: bool,
}

/// A rectangle in pixels of the desktop; its corner may lie left of or above the desktop's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DisplayArea {
    /// Column of the left edge.
    pub left: i32,
    /// Row of the upper edge.
    pub top: i32,
    /// Its size.
    pub size: PixelSize,
}

impl DisplayArea {
    /// The pixel of the desktop that `at` points to, always one of this area.
    pub fn pixel(&self, at: Point) -> (i32, i32) {
        (
            along(self.left, self.size.width, at.x),
            along(self.top, self.size.height, at.y),
        )
    }
}

fn along(start: i32, length: u32, share: f64) -> i32 {
    // A float becomes the nearest integer that exists, and NaN becomes 0.
    let offset = (share * f64::from(length)) as i64;
    let last = i64::from(length).saturating_sub(1).max(0);
    let pixel = i64::from(start) + offset.clamp(0, last);
    i32::try_from(pixel).unwrap_or(i32::MAX)
}

/// Why the desktop cannot be seen or used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesktopError {
    /// There is no X server under this name, or it does not let us in.
    NoServer {
        /// The name that was tried, empty for the one in `DISPLAY`.
        display: String,
        /// What went wrong.
        reason: String,
    },
    /// The server lacks an extension; every X.Org server has it unless it was switched off.
    NoExtension(&'static str),
    /// The server does something in a way that is not supported.
    Unsupported(&'static str),
    /// The server is gone: it ended, or the person logged out.
    ServerGone(String),
    /// The display that was asked for is not there, or not any more.
    DisplayGone(String),
    /// The server refused a request.
    Refused(String),
    /// More input waits than is kept; nothing of this message was done.
    Busy,
}

impl std::fmt::Display for DesktopError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoServer { display, reason } if display.is_empty() => {
                write!(f, "no X server ({reason})")
            }
            Self::NoServer { display, reason } => write!(f, "no X server at {display}: {reason}"),
            Self::NoExtension(name) => write!(f, "the X server lacks the extension {name}"),
            Self::Unsupported(what) => write!(f, "the X server is not supported: {what}"),
            Self::ServerGone(reason) => write!(f, "the X server is gone: {reason}"),
            Self::DisplayGone(name) => write!(f, "there is no display {name}"),
            Self::Refused(reason) => write!(f, "the X server refused a request: {reason}"),
            Self::Busy => write!(f, "too much input waits to be typed"),
        }
    }
}

impl std::error::Error for DesktopError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_lands_inside_its_display() {
        let area = DisplayArea {
            left: -1920,
            top: 40,
            size: PixelSize::new(1920, 1080),
        };
        let pixel = |x, y| area.pixel(Point { x, y });
        assert_eq!(pixel(0.0, 0.0), (-1920, 40));
        assert_eq!(pixel(0.5, 0.25), (-960, 310));
        assert_eq!(pixel(1.0, 1.0), (-1, 1119));
        assert_eq!(pixel(7.0, -3.0), (-1, 40));
        assert_eq!(pixel(f64::NAN, f64::INFINITY), (-1920, 1119));
    }
}
