//! Pictures of a screen.

use std::time::Duration;

use crossdesk_core::control::{ControlMessage, Point};
use crossdesk_core::screen::{Screen, ScreenError};
use crossdesk_core::time::Monotonic;
use crossdesk_core::units::{PixelRect, PixelSize};
use crossdesk_platform::desktop::DesktopError;
use crossdesk_platform::input::Input;
use crossdesk_platform::linux::x11::{X11Screen, XTestInput};
use x11rb::connection::Connection;
use x11rb::protocol::randr::{ConnectionExt as _, MonitorInfo};
use x11rb::protocol::xproto::{
    ChangeGCAux, ConnectionExt as _, CreateGCAux, Gcontext, Rectangle, SubwindowMode,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::xvfb::Xvfb;

/// Nothing takes this long; a test that waits for it fails.
const LONG: Duration = Duration::from_secs(30);

/// Draws on the root window.
struct Painter {
    connection: RustConnection,
    root: u32,
    context: Gcontext,
}

impl Painter {
    fn new(display: &str) -> Self {
        let (connection, screen) = x11rb::connect(Some(display)).unwrap();
        let root = connection.setup().roots[screen].root;
        let context = connection.generate_id().unwrap();
        let aux = CreateGCAux::new().subwindow_mode(SubwindowMode::INCLUDE_INFERIORS);
        connection.create_gc(context, root, &aux).unwrap();
        Self {
            connection,
            root,
            context,
        }
    }

    fn fill(&self, color: u32, (x, y): (i16, i16), (width, height): (u16, u16)) {
        let aux = ChangeGCAux::new().foreground(color);
        self.connection.change_gc(self.context, &aux).unwrap();
        let area = Rectangle { x, y, width, height };
        self.connection
            .poly_fill_rectangle(self.root, self.context, &[area])
            .unwrap();
        self.connection.sync().unwrap();
    }

    fn monitor(&self, name: &str, (x, y): (i16, i16), (width, height): (u16, u16)) {
        let monitor = MonitorInfo {
            name: self.atom(name),
            x,
            y,
            width,
            height,
            width_in_millimeters: 100,
            height_in_millimeters: 100,
            ..MonitorInfo::default()
        };
        let set = self.connection.randr_set_monitor(self.root, monitor);
        set.unwrap().check().unwrap();
    }

    fn remove_monitor(&self, name: &str) {
        let removed = self.connection.randr_delete_monitor(self.root, self.atom(name));
        removed.unwrap().check().unwrap();
    }

    fn atom(&self, name: &str) -> u32 {
        let atom = self.connection.intern_atom(false, name.as_bytes()).unwrap();
        atom.reply().unwrap().atom
    }
}

/// Takes a picture: the colour at `x`, `y`, what changed, and the size.
fn look(screen: &mut X11Screen, x: usize, y: usize) -> (u32, Vec<PixelRect>, PixelSize) {
    let mut seen = None;
    screen
        .grab(&mut |pixels, changed| {
            let at = y * pixels.stride + x * 4;
            let pixel: [u8; 4] = pixels.data[at..at + 4].try_into().unwrap();
            let color = u32::from_le_bytes(pixel) & 0xff_ffff;
            seen = Some((color, changed.to_vec(), pixels.size));
        })
        .unwrap();
    seen.unwrap()
}

fn rect(x: u32, y: u32, width: u32, height: u32) -> PixelRect {
    PixelRect { x, y, width, height }
}

#[test]
fn a_picture_has_the_colours_on_screen_and_says_what_changed() {
    let server = Xvfb::start(320, 240);
    let painter = Painter::new(server.display());
    painter.fill(0x102030, (0, 0), (320, 240));
    let mut screen = X11Screen::open(Some(server.display()), "screen", false).unwrap();
    assert!(screen.wait(LONG).unwrap(), "the first picture is new");
    let size = PixelSize::new(320, 240);
    assert_eq!(
        look(&mut screen, 319, 239),
        (0x102030, vec![PixelRect::whole(size)], size)
    );
    painter.fill(0xff8001, (10, 20), (30, 40));
    assert!(screen.wait(LONG).unwrap());
    assert_eq!(
        look(&mut screen, 39, 59),
        (0xff8001, vec![rect(10, 20, 30, 40)], size)
    );
    assert_eq!(look(&mut screen, 40, 60), (0x102030, vec![], size));
}

#[test]
fn a_still_screen_has_no_news_and_a_waker_ends_the_wait() {
    let server = Xvfb::start(320, 240);
    let mut screen = X11Screen::open(Some(server.display()), "screen", true).unwrap();
    look(&mut screen, 0, 0);
    while screen.wait(Duration::ZERO).unwrap() {
        look(&mut screen, 0, 0);
    }
    screen.waker().wake();
    assert!(!screen.wait(LONG).unwrap());
}

#[test]
fn the_pointer_is_painted_where_it_is_and_leaves_nothing_behind() {
    let server = Xvfb::start(320, 240);
    let painter = Painter::new(server.display());
    painter.fill(0x00ff00, (0, 0), (320, 240));
    let mut input = XTestInput::open(Some(server.display())).unwrap();
    let mut point = |x: f64, y: f64| {
        let at = Point { x, y };
        input
            .handle(Monotonic::ZERO, ControlMessage::MouseMove { at })
            .unwrap();
    };
    point(0.25, 0.5);
    let mut screen = X11Screen::open(Some(server.display()), "screen", true).unwrap();
    // Without a desktop the pointer is an X with its hot spot in the middle.
    let covered = |screen: &mut X11Screen, x: usize| look(screen, x, 120).0 != 0x00ff00;
    while !covered(&mut screen, 80) {
        screen.wait(LONG).unwrap();
    }
    point(0.75, 0.5);
    while !covered(&mut screen, 240) {
        assert!(screen.wait(LONG).unwrap(), "moving the pointer is news");
    }
    assert!(!covered(&mut screen, 80));
    let mut without = X11Screen::open(Some(server.display()), "screen", false).unwrap();
    assert!(!covered(&mut without, 240));
}

#[test]
fn a_display_is_followed_when_it_moves_and_missed_when_it_goes() {
    let server = Xvfb::start(400, 240);
    let painter = Painter::new(server.display());
    painter.fill(0x0000ff, (0, 0), (200, 240));
    painter.fill(0xff0000, (200, 0), (200, 240));
    painter.monitor("DESK", (0, 0), (200, 240));
    let mut screen = X11Screen::open(Some(server.display()), "DESK", false).unwrap();
    assert_eq!(look(&mut screen, 5, 5).0, 0x0000ff);
    // A server has no request that changes a monitor; between these two nobody else may look.
    painter.connection.grab_server().unwrap();
    painter.remove_monitor("DESK");
    painter.monitor("DESK", (190, 10), (100, 50));
    painter.connection.ungrab_server().unwrap();
    painter.connection.sync().unwrap();
    while screen.size() != PixelSize::new(100, 50) {
        assert!(screen.wait(LONG).unwrap());
        look(&mut screen, 5, 5);
    }
    assert_eq!(look(&mut screen, 9, 5).0, 0x0000ff);
    assert_eq!(look(&mut screen, 10, 5).0, 0xff0000);
    painter.remove_monitor("DESK");
    assert!(screen.wait(LONG).unwrap());
    let gone = screen.grab(&mut |_, _| panic!("there is nothing to see"));
    assert_eq!(gone, Err(ScreenError::DisplayGone("DESK".to_owned())));
}

#[test]
fn a_screen_that_is_not_there_or_ends_is_a_typed_error() {
    let mut server = Xvfb::start(320, 240);
    let missing = X11Screen::open(Some(server.display()), "DVI-7", false).unwrap_err();
    assert_eq!(missing, DesktopError::DisplayGone("DVI-7".to_owned()));
    let mut screen = X11Screen::open(Some(server.display()), "screen", false).unwrap();
    look(&mut screen, 0, 0);
    server.end();
    let mut waits = std::iter::repeat_with(|| screen.wait(LONG));
    let gone = waits.find_map(Result::err).unwrap();
    assert!(matches!(gone, ScreenError::ServerGone(_)), "{gone}");
    let shallow = Xvfb::start_with(320, 240, &["-extension", "MIT-SHM"]);
    let lacking = X11Screen::open(Some(shallow.display()), "screen", false).unwrap_err();
    assert_eq!(lacking, DesktopError::NoExtension("MIT-SHM"));
}
