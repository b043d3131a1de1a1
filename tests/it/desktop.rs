//! A real X desktop, shared by `host` and used by `agent`: what is on the screen is seen, what is sent arrives.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{ChangeGCAux, ConnectionExt as _, CreateGCAux, Rectangle, SubwindowMode};
use x11rb::wrapper::ConnectionExt as _;

use crate::signal::process::Server;
use crate::support::agent::{Agent, Launch};
use crate::support::host::Host;
use crate::window::Window;
use crate::xvfb::Xvfb;

const WIDTH: u16 = 640;
const HEIGHT: u16 = 400;
/// What an encoder at a desktop's bit rate leaves of a plain colour.
const TOLERANCE: i32 = 6;

/// A desktop, its host, and an agent in control of it.
struct Scene {
    agent: Agent,
    host: Host,
    window: Window,
    desktop: Xvfb,
    _server: Server,
    operations: u32,
}

impl Scene {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let desktop = Xvfb::start(WIDTH.into(), HEIGHT.into());
        let window = Window::open(desktop.display(), WIDTH, HEIGHT);
        let server = Server::plain(&format!("{name}-server"));
        let arguments = [&["--display", desktop.display()], arguments].concat();
        let host = Host::start(&format!("{name}-host"), server.address(), &arguments);
        let mut agent = Launch::remote(&format!("{name}-agent"), server.address())
            .password(Some(&format!("{}\n", host.password())))
            .spawn();
        agent.ok(
            "connect",
            &json!({ "device": host.id(), "mode": "control", "display": 0 }),
        );
        agent.status_when("ready", |status| status["state"] == "ready");
        Self {
            agent,
            host,
            window,
            desktop,
            _server: server,
            operations: 0,
        }
    }

    fn fill(&self, color: u32, x: i16, width: u16) {
        let Window { connection, root, .. } = &self.window;
        let context = x11rb::connection::Connection::generate_id(connection).expect("an id");
        let aux = CreateGCAux::new().subwindow_mode(SubwindowMode::INCLUDE_INFERIORS);
        connection.create_gc(context, *root, &aux).expect("a connection");
        let aux = ChangeGCAux::new().foreground(color);
        connection.change_gc(context, &aux).expect("a connection");
        let area = Rectangle {
            x,
            y: 0,
            width,
            height: HEIGHT,
        };
        connection
            .poly_fill_rectangle(*root, context, &[area])
            .expect("a connection");
        connection.sync().expect("a connection");
    }

    fn screenshot(&mut self) -> Value {
        self.agent.ok("screenshot", &json!({ "timeout_ms": 5000 }))
    }

    fn act(&mut self, action: &Value) {
        let observation = self.screenshot()["metadata"]["observation_id"].clone();
        self.operations += 1;
        let operation = format!("op-{}", self.operations);
        let request = json!({ "operation_id": operation, "observation_id": observation, "action": action });
        assert_eq!(self.agent.ok("action", &request)["status"], "submitted");
    }
}

/// The colour of a screenshot at a place.
fn color(result: &Value, x: usize, y: usize) -> [i32; 3] {
    let data = STANDARD
        .decode(result["data"].as_str().expect("base64"))
        .expect("base64");
    let mut reader = png::Decoder::new(std::io::Cursor::new(data))
        .read_info()
        .expect("a PNG");
    let mut rgb = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut rgb).expect("a whole PNG");
    let at = (y * info.width as usize + x) * 3;
    [rgb[at].into(), rgb[at + 1].into(), rgb[at + 2].into()]
}

fn is_near(found: [i32; 3], wanted: [i32; 3]) -> bool {
    found
        .iter()
        .zip(wanted)
        .all(|(found, wanted)| (found - wanted).abs() <= TOLERANCE)
}

#[test]
fn an_agent_sees_what_is_on_the_screen_soon_after_it_changed() {
    let mut scene = Scene::start("desktop-seen", &[]);
    let status = scene.agent.ok("status", &json!({}));
    assert_eq!(status["source_size"], json!({ "width": WIDTH, "height": HEIGHT }));
    let left = [200, 60, 40];
    for right in [[40, 160, 90], [60, 80, 200]] {
        let packed = |[red, green, blue]: [i32; 3]| (red << 16 | green << 8 | blue) as u32;
        scene.fill(packed(left), 0, WIDTH / 2);
        scene.fill(packed(right), WIDTH as i16 / 2, WIDTH / 2);
        let mut seen = false;
        for _ in 0..100 {
            let shot = scene.screenshot();
            seen = is_near(color(&shot, 100, 200), left) && is_near(color(&shot, 500, 200), right);
            if seen {
                break;
            }
        }
        assert!(seen, "the screen shows {left:?} and {right:?}");
    }
}

#[test]
fn clicks_wheels_keys_and_text_arrive_and_nothing_stays_down() {
    let mut scene = Scene::start("desktop-used", &[]);
    scene.agent.status_when("told that input is taken", |status| {
        status["control_allowed"] == true
    });
    scene.act(&json!({ "type": "click", "x": 320, "y": 100, "button": "right" }));
    let click = scene.window.wait(|event| match event {
        Event::ButtonPress(press) => Some((press.detail, press.root_x, press.root_y)),
        _ => None,
    });
    assert_eq!(click, (3, 320, 100));
    scene.act(&json!({ "type": "scroll", "x": 10, "y": 20, "direction": "down", "ticks": 2 }));
    for _ in 0..2 {
        let notch = scene.window.wait(|event| match event {
            Event::ButtonPress(press) => Some(press.detail),
            _ => None,
        });
        assert_eq!(notch, 5);
    }
    // The host says what it can type once the guest asks; both are quick.
    scene.act(&json!({ "type": "key_press", "key": "F5" }));
    assert_eq!(scene.window.typed(1), [0xffc2]);
    scene.act(&json!({ "type": "type_text", "text": "終Ж" }));
    assert_eq!(scene.window.typed(2), [0x0100_7d42, 0x0100_0416]);
    scene.agent.ok("exit", &json!({}));
    scene.host.note("has left");
    assert_eq!(scene.window.pressed(), Vec::<usize>::new());
}

#[test]
fn a_view_only_host_shows_and_takes_nothing() {
    let mut scene = Scene::start("desktop-view-only", &["--view-only"]);
    let denied = scene.agent.status_when("told that input is not taken", |status| {
        status["control_allowed"] == false
    });
    assert_eq!(denied["state"], "ready");
    let observation = scene.screenshot()["metadata"]["observation_id"].clone();
    let request = json!({
        "operation_id": "op-1", "observation_id": observation, "action": { "type": "key_press", "key": "F5" },
    });
    assert_eq!(scene.agent.error("action", &request), "CONTROL_DENIED");
}

#[test]
fn a_host_whose_desktop_ends_says_so_and_ends() {
    let mut scene = Scene::start("desktop-gone", &[]);
    scene.desktop.end();
    assert_eq!(scene.host.wait().code(), Some(1));
    assert!(scene.host.note("error").contains("desktop"));
    let status = scene
        .agent
        .status_when("told of the end", |status| status["transport_state"] == "ended");
    assert_eq!(status["error"]["code"], "SOURCE_ENDED");
}
