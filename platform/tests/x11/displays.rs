//! Displays and their changes.

use crossdesk_core::units::PixelSize;
use crossdesk_platform::desktop::{DesktopError, Display};
use crossdesk_platform::linux::x11::Displays;
use rustix::event::{PollFd, PollFlags, poll};
use x11rb::connection::Connection;
use x11rb::protocol::randr::{ConnectionExt as _, MonitorInfo};
use x11rb::protocol::xproto::ConnectionExt as _;
use x11rb::wrapper::ConnectionExt as _;

use crate::xvfb::Xvfb;

/// One line for each display.
fn shown(displays: &[Display]) -> Vec<String> {
    let line = |display: &Display| {
        let PixelSize { width, height } = display.area.size;
        let (left, top) = (display.area.left, display.area.top);
        let primary = if display.primary { " primary" } else { "" };
        format!("{} {width}x{height}+{left}+{top}{primary}", display.name)
    };
    displays.iter().map(line).collect()
}

fn wait_for_change(displays: &mut Displays) -> Result<Vec<String>, DesktopError> {
    loop {
        if let Some(found) = displays.poll_change()? {
            return Ok(shown(found));
        }
        let mut news = [PollFd::new(displays, PollFlags::IN)];
        poll(&mut news, None).unwrap();
    }
}

#[test]
fn a_plain_server_has_one_display_that_covers_it() {
    let server = Xvfb::start(800, 600);
    let displays = Displays::open(Some(server.display())).unwrap();
    assert_eq!(shown(displays.list()), ["screen 800x600+0+0"]);
}

#[test]
fn monitors_come_and_go_by_name() {
    let server = Xvfb::start(1600, 600);
    let mut displays = Displays::open(Some(server.display())).unwrap();
    let (connection, screen) = x11rb::connect(Some(server.display())).unwrap();
    let root = connection.setup().roots[screen].root;
    let set = |name: &str, x: i16, primary| {
        let atom = connection.intern_atom(false, name.as_bytes()).unwrap();
        let monitor = MonitorInfo {
            name: atom.reply().unwrap().atom,
            primary,
            x,
            width: 800,
            height: 600,
            width_in_millimeters: 200,
            height_in_millimeters: 150,
            ..MonitorInfo::default()
        };
        connection.randr_set_monitor(root, monitor.clone()).unwrap();
        connection.sync().unwrap();
        monitor.name
    };
    set("LEFT", 0, false);
    let right = set("RIGHT", 800, true);
    // The monitor that the server made itself stays, because nothing else covers its whole area.
    let both = [
        "RIGHT 800x600+800+0 primary",
        "LEFT 800x600+0+0",
        "screen 1600x600+0+0",
    ];
    while wait_for_change(&mut displays).unwrap() != both {}
    connection.randr_delete_monitor(root, right).unwrap();
    connection.sync().unwrap();
    let left = ["LEFT 800x600+0+0", "screen 1600x600+0+0"];
    assert_eq!(wait_for_change(&mut displays).unwrap(), left);
}

#[test]
fn a_server_that_is_not_there_or_ends_is_a_typed_error() {
    let missing = Displays::open(Some(":987654")).unwrap_err();
    assert!(matches!(missing, DesktopError::NoServer { .. }), "{missing}");
    let mut server = Xvfb::start(320, 240);
    let mut displays = Displays::open(Some(server.display())).unwrap();
    server.end();
    let gone = wait_for_change(&mut displays).unwrap_err();
    assert!(matches!(gone, DesktopError::ServerGone(_)), "{gone}");
    let bare = Xvfb::start_with(320, 240, &["-extension", "RANDR"]);
    let lacking = Displays::open(Some(bare.display())).unwrap_err();
    assert_eq!(lacking, DesktopError::NoExtension("RANDR"));
}
