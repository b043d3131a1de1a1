//! A thousand viewers come and go, and the agent is as large as before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::support::agent::{Agent, Launch};
use crate::support::repository;

const ORIGIN: &str = "http://127.0.0.1:9000";
/// Connections in the test; the first tenth warms pools and allocators up.
const CYCLES: u32 = 1000;

/// What a process holds.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    resident_kib: u64,
}

fn held(pid: u32) -> Held {
    let count = |what: &str| {
        std::fs::read_dir(format!("/proc/{pid}/{what}"))
            .expect("our child")
            .count()
    };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("our child");
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("a VmRSS line");
    let kib = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    Held {
        descriptors: count("fd"),
        threads: count("task"),
        resident_kib: kib,
    }
}

/// Opens one view, receives the keyframe it starts with, and vanishes without a goodbye.
fn watch_once(agent: &mut Agent, n: u32) {
    let token = |kind: char| format!("{kind}{n:031}");
    let ticket = token('T');
    let opened = agent.ok(
        "video_open",
        &json!({
            "ticket": ticket, "view": token('V'), "view_generation": 1, "session": token('S'),
            "origin": ORIGIN, "apps": false
        }),
    );
    let url = opened["url"].as_str().expect("an address");
    let host = url
        .strip_prefix("ws://")
        .and_then(|rest| rest.strip_suffix("/api/video"))
        .expect("the protocol's form");
    let mut socket = TcpStream::connect(host).expect("the listener listens");
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a socket");
    let request = format!(
        "GET /api/video HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Origin: {ORIGIN}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).expect("sent");
    let text = format!("{{\"ticket\":\"{ticket}\"}}");
    // A mask of zeros leaves the text as it is.
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).expect("short"), 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    socket.write_all(&frame).expect("sent");
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !answer.windows(4).any(|bytes| bytes == b"CDV1") {
        let n = socket.read(&mut buffer).expect("an answer within the time limit");
        assert!(n > 0, "closed: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&buffer[..n]);
    }
}

#[test]
fn a_thousand_viewers_leave_nothing_behind() {
    let clip = format!("file:{}", repository("tests/data/h264/Static.264").display());
    let mut agent = Launch::new("endurance", &clip).arg("--video-ws").spawn();
    agent.ready();
    (0..CYCLES / 10).for_each(|n| watch_once(&mut agent, n));
    let idle = |status: &serde_json::Value| status["video_output"]["viewers"] == 0;
    agent.status_when("without viewers", idle);
    let before = held(agent.pid());
    (CYCLES / 10..CYCLES).for_each(|n| watch_once(&mut agent, n));
    agent.status_when("without viewers", idle);
    let after = held(agent.pid());
    assert!(
        after.descriptors <= before.descriptors + 2,
        "{before:?} {after:?}"
    );
    assert!(after.threads <= before.threads + 1, "{before:?} {after:?}");
    assert!(
        after.resident_kib <= before.resident_kib + 16 * 1024,
        "{before:?} {after:?}"
    );
}
