//! The agent as its parent sees it: a process, its pipes, and real H.264.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::agent::{Agent, Launch};
use crate::support::repository;

const HELLO: &[u8] = b"{\"id\":1,\"method\":\"hello\",\"protocol\":\"crossdesk-automation/1\"}\n";

fn desktop() -> String {
    format!(
        "file:{}",
        repository("tests/data/desktop/desktop-1080p30.h264").display()
    )
}

/// Pixels of a reply's image: width, height, RGB.
fn pixels(result: &Value) -> (u32, u32, Vec<u8>) {
    let data = STANDARD
        .decode(result["data"].as_str().expect("base64"))
        .expect("base64");
    let mut reader = png::Decoder::new(std::io::Cursor::new(data))
        .read_info()
        .expect("a PNG header");
    let mut rgb = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut rgb).expect("a whole PNG");
    assert_eq!(info.color_type, png::ColorType::Rgb);
    rgb.truncate(info.buffer_size());
    (info.width, info.height, rgb)
}

fn screenshot(agent: &mut Agent) -> Value {
    agent.ok("screenshot", &json!({"timeout_ms": 5000}))
}

#[test]
fn hello_is_answered_to_the_byte() {
    let mut agent = Launch::new("hello", &desktop()).spawn();
    agent.write(HELLO);
    assert!(agent.line().starts_with(
        "{\"id\":1,\"ok\":true,\"result\":{\"protocol\":\"crossdesk-automation/1\",\
         \"image_formats\":[\"image/png\"],\"action_completion\":\"submitted\",\"human_pause\":true,\
         \"max_request_bytes\":65536,\"max_response_bytes\":4194304,\"operation_cache_entries\":128,\
         \"operation_cache_ms\":300000"
    ));
}

#[test]
fn a_recording_becomes_ready_and_gives_a_true_screenshot() {
    let mut agent = Launch::new("screenshot", &desktop()).spawn();
    let status = agent.ready();
    for field in [
        "state",
        "transport_state",
        "mode",
        "generation",
        "geometry_epoch",
        "frame_id",
        "frame_age_ms",
        "source_size",
        "display_index",
        "displays",
        "control_allowed",
        "control_enabled",
        "human_paused",
        "host_platform",
        "video",
        "native_video_decoder",
        "decoder",
        "video_output",
        "transport",
        "latency",
        "error",
    ] {
        assert!(status.get(field).is_some(), "status lacks {field}: {status}");
    }
    assert_eq!(status["source_size"], json!({"width": 1920, "height": 1080}));
    assert_eq!(status["error"], Value::Null);
    assert_eq!(status["control_allowed"], false);

    let result = screenshot(&mut agent);
    let (width, height, rgb) = pixels(&result);
    assert_eq!(result["mime_type"], "image/png");
    assert_eq!(
        result["metadata"]["image_size"],
        json!({"width": width, "height": height})
    );
    assert_eq!((width, height), (1280, 720));
    assert_eq!(
        result["metadata"]["source_rect"],
        json!({"x": 0, "y": 0, "width": 1920, "height": 1080})
    );
    assert!(
        result["metadata"]["observation_id"]
            .as_str()
            .is_some_and(|id| id.starts_with("obs_"))
    );
    let distinct: std::collections::HashSet<&[u8]> = rgb.chunks_exact(3).collect();
    assert!(
        distinct.len() > 200,
        "a desktop has many colours, not {}",
        distinct.len()
    );

    let preview = agent.ok("preview", &json!({"max_edge": 320}));
    assert_eq!(pixels(&preview).0, 320);
    assert!(preview["metadata"].get("observation_id").is_none());
}

#[test]
fn a_region_is_exactly_what_was_asked_for() {
    let mut agent = Launch::new("region", &desktop()).spawn();
    agent.ready();
    let region = json!({"x": 101, "y": 33, "width": 321, "height": 241});
    let result = agent.ok("screenshot", &json!({"region": region, "timeout_ms": 5000}));
    assert_eq!(result["metadata"]["source_rect"], region);
    let (width, height, _) = pixels(&result);
    assert_eq!((width, height), (321, 241));
    let outside = json!({"region": {"x": 1920, "y": 0, "width": 10, "height": 10}});
    assert_eq!(agent.error("screenshot", &outside), "REGION_OUT_OF_BOUNDS");
}

#[test]
fn input_on_a_direct_source_is_refused_with_a_code() {
    let mut agent = Launch::new("control", &desktop()).spawn();
    let args = json!({"device": "123456789", "mode": "control", "display": 0});
    assert_eq!(agent.error("connect", &args), "CONTROL_UNSUPPORTED");
}

#[test]
fn every_way_out_ends_with_status_zero_soon() {
    for way in ["exit", "eof", "TERM", "INT"] {
        let mut agent = Launch::new(&format!("end-{way}"), &desktop())
            .arg("--video-ws")
            .spawn();
        agent.ready();
        match way {
            "exit" => assert_eq!(agent.call("exit", &json!({}))["ok"], true),
            "eof" => agent.close_stdin(),
            signal => {
                let pid = agent.pid().to_string();
                let kill = std::process::Command::new("kill")
                    .args(["-s", signal, &pid])
                    .status();
                assert!(kill.expect("kill runs").success());
            }
        }
        let (status, took) = agent.wait();
        assert_eq!(status.code(), Some(0), "{way}: {}", agent.take_errors());
        assert!(took < Duration::from_secs(2), "{way} took {took:?}");
    }
}

#[test]
fn a_missing_password_is_explained() {
    for (name, password) in [("fd-closed", None), ("fd-empty", Some(""))] {
        let mut agent = Launch::new(name, &desktop()).password(password).spawn();
        agent.write(HELLO);
        assert!(agent.line().contains("\"ok\":true"));
        agent.send(
            "connect",
            &json!({"device": "123456789", "mode": "observe", "display": 0}),
        );
        let status = agent.status_when("failed", |status| status["state"] == "failed");
        assert_eq!(status["error"]["code"], "CREDENTIALS_MISSING");
        assert!(
            status["error"]["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains("password") || reason.contains("descriptor 3"))
        );
    }
}

#[test]
fn bad_lines_get_one_error_each_and_the_agent_goes_on() {
    let mut agent = Launch::new("bad-lines", &desktop()).spawn();
    let long = vec![b'x'; 65_536];
    let lines: [(&[u8], &str); 6] = [
        (
            b"{\"id\":7,\"method\":\"status\",\"extra\":1}",
            "INVALID_ARGUMENT",
        ),
        (b"not json", "INVALID_JSON"),
        (b"\xff\xfe", "INVALID_JSON"),
        (b"{\"id\":8,\"method\":\"dance\"}", "UNKNOWN_METHOD"),
        (&long, "REQUEST_TOO_LARGE"),
        (b"{\"id\":-1,\"method\":\"status\"}", "INVALID_REQUEST"),
    ];
    for (line, code) in lines {
        agent.write(line);
        agent.write(b"\n");
        let reply: Value = serde_json::from_str(&agent.line()).expect("JSON");
        assert_eq!(reply["error"]["code"], code, "{reply}");
    }
    assert_eq!(agent.ok("status", &json!({}))["state"], "idle");
}

#[test]
fn a_recording_played_once_ends_with_a_reason() {
    let clip = format!("file:{}?once", repository("tests/data/h264/Static.264").display());
    let mut agent = Launch::new("once", &clip).spawn();
    agent.connect();
    let status = agent.status_when("disconnected", |status| status["state"] == "disconnected");
    assert_eq!(status["error"]["code"], "SOURCE_ENDED", "{status}");
    // Short as it is, all of it was decoded before the end was told.
    assert_eq!(status["frame_id"], 10, "{status}");
}

#[test]
fn a_source_that_cannot_be_opened_fails_with_a_reason() {
    for (name, source) in [
        ("missing", "file:/nonexistent/clip.h264"),
        ("text", "file:Cargo.toml"),
    ] {
        let mut agent = Launch::new(name, source).spawn();
        agent.connect();
        let status = agent.status_when("failed", |status| status["state"] == "failed");
        assert!(
            status["error"]["reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty()),
            "{status}"
        );
        assert_eq!(agent.call("exit", &json!({}))["ok"], true);
    }
}

#[test]
fn without_plugins_or_decoders_the_reason_is_said() {
    let ranks =
        "avdec_h264:NONE,openh264dec:NONE,vah264dec:NONE,nvh264dec:NONE,v4l2h264dec:NONE,vulkanh264dec:NONE";
    let mut agent = Launch::new("no-decoder", &desktop())
        .env("GST_PLUGIN_FEATURE_RANK", ranks)
        .spawn();
    agent.connect();
    let status = agent.status_when("failed", |status| status["state"] == "failed");
    assert_eq!(status["error"]["code"], "DECODER_UNAVAILABLE", "{status}");

    let empty = crate::support::TempDir::new("no-plugins-registry");
    let registry = empty.path().join("registry.bin").display().to_string();
    let mut agent = Launch::new("no-plugins", &desktop())
        .env("GST_PLUGIN_SYSTEM_PATH", &empty.path().display().to_string())
        .env("GST_REGISTRY", &registry)
        .spawn();
    agent.connect();
    let status = agent.status_when("failed", |status| status["state"] == "failed");
    assert!(
        status["error"]["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty()),
        "{status}"
    );
}

#[test]
fn a_log_directory_that_cannot_be_used_costs_the_log_only() {
    let dir = crate::support::TempDir::new("full-disk");
    std::os::unix::fs::symlink("/dev/full", dir.path().join("agent.log")).expect("a link");
    for (name, path) in [
        ("log-missing", "/nonexistent/logs".into()),
        ("log-full", dir.path().display().to_string()),
    ] {
        let mut agent = Launch::new(name, &desktop()).arg("--log-dir").arg(path).spawn();
        agent.ready();
        agent.call("exit", &json!({}));
        assert_eq!(agent.wait().0.code(), Some(0));
    }
}

#[test]
fn logs_hold_neither_password_nor_ticket() {
    let dir = crate::support::TempDir::new("secret-logs");
    let mut agent = Launch::new("secrets", &desktop())
        .arg("--video-ws")
        .arg("--log-dir")
        .arg(dir.path().display().to_string())
        .env("CROSSDESK_LOG", "trace")
        .password(Some("swordfish-7\n"))
        .spawn();
    agent.ready();
    let ticket = "T".repeat(32);
    let open = json!({
        "ticket": ticket, "view": "V".repeat(32), "view_generation": 1, "session": "S".repeat(32),
        "origin": "http://127.0.0.1:8080", "apps": false
    });
    agent.ok("video_open", &open);
    agent.call("exit", &json!({}));
    agent.wait();
    let log = std::fs::read_to_string(dir.path().join("agent.log")).expect("a log");
    let all = log + &agent.take_errors();
    assert!(
        !all.contains("swordfish") && !all.contains(&ticket),
        "a secret was logged"
    );
}

#[test]
fn a_parent_that_stops_reading_ends_the_process() {
    let mut agent = Launch::new("blocked", &desktop()).spawn();
    agent.ready();
    let gate = agent.gate();
    let _nobody_reads = gate.lock().expect("not poisoned");
    // Far more than a pipe holds; the agent stops taking requests when its queue is half full.
    for _ in 0..12 {
        agent.send("screenshot", &json!({"max_edge": 2048, "timeout_ms": 5000}));
    }
    let (status, took) = agent.wait_unread();
    assert_eq!(status.code(), Some(1));
    assert!(
        took > Duration::from_secs(8) && took < Duration::from_secs(20),
        "{took:?}"
    );
}
