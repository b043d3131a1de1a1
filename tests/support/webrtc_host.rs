//! A WebRTC host for the browser tests: `webrtc-host FILE` offers the Annex B file as video, over and over, 30 pictures
//! a second, and sends every message of a data channel back.
//!
//! Speaks JSON lines: `{"offer":…}` and `{"event":…}` out, `{"answer":…}` and `{"candidate":…}` in. Ends with its
//! standard input.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use crossdesk::transport::webrtc::{
    Certificate, ChannelConfig, ChannelEvent, Config, Connection, Direction, Event, Network, OutgoingUnit,
    PeerOutput, VideoConfig,
};
use crossdesk_core::h264::AccessUnits;
use serde_json::{Value, json};

const FRAME: Duration = Duration::from_nanos(33_333_333);
/// 90 kHz.
const FRAME_TICKS: u32 = 3000;

enum Input {
    Event(Event),
    Line(String),
    End,
}

struct Output(SyncSender<Input>);

impl PeerOutput for Output {
    fn event(&self, event: Event) {
        // The receiver goes with the process.
        let _ = self.0.send(Input::Event(event));
    }

    fn candidate(&self, _mid: &str, _candidate: &str) {}

    fn description(&self, _sdp: &str) {}
}

struct Host {
    connection: Connection,
    units: Vec<Bytes>,
    next: usize,
    sent: u32,
    connected: bool,
}

fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).context("webrtc-host FILE")?;
    let stream = Bytes::from(std::fs::read(&file).with_context(|| file.clone())?);
    let units = AccessUnits::new(&stream)
        .map(|unit| stream.slice_ref(unit))
        .collect();
    let mut config = Config::new(Certificate::generate()?)?;
    config.video = Some(VideoConfig {
        direction: Direction::Send,
        tracks: vec!["Display1".to_owned()],
        profile_level_id: [0x42, 0xe0, 0x1f],
    });
    config.audio = Some(Direction::Send);
    config.data = true;
    let network = Network {
        loopback: true,
        ..Network::default()
    };
    let (sender, inputs) = sync_channel(256);
    let (connection, offer) = Connection::offer(config, &network, Arc::new(Output(sender.clone())))?;
    connection.open_channel(ChannelConfig::reliable("ping-pong"));
    say(&json!({ "offer": offer }))?;
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(Input::Line(line)).is_err() {
                return;
            }
        }
        let _ = sender.send(Input::End);
    });
    let host = Host {
        connection,
        units,
        next: 0,
        sent: 0,
        connected: false,
    };
    host.run(&inputs)
}

impl Host {
    fn run(mut self, inputs: &Receiver<Input>) -> anyhow::Result<()> {
        let mut due = Instant::now();
        loop {
            match inputs.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Input::Event(event)) => self.obey(event)?,
                Ok(Input::Line(line)) => self.read(&line)?,
                Ok(Input::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    due += FRAME;
                    self.send();
                }
            }
        }
    }

    fn read(&self, line: &str) -> anyhow::Result<()> {
        let message: Value = serde_json::from_str(line)?;
        if let Some(answer) = message["answer"].as_str() {
            self.connection.handle_answer(answer);
        }
        if let Some(candidate) = message["candidate"].as_str() {
            self.connection.add_remote_candidate(candidate);
        }
        Ok(())
    }

    fn obey(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Connected(path) => {
                self.connected = true;
                say(&json!({ "event": "connected", "remote": format!("{:?}", path.remote_kind) }))?;
            }
            Event::KeyframeRequested { .. } => {
                self.next = 0;
                say(&json!({ "event": "keyframe requested" }))?;
            }
            Event::Channel(ChannelEvent::Message { id, binary, data }) => {
                self.connection.send_message(id, binary, data)?;
            }
            Event::Failed(failure) => say(&json!({ "event": "failed", "reason": failure.to_string() }))?,
            Event::Closed => say(&json!({ "event": "closed" }))?,
            _ => {}
        }
        Ok(())
    }

    /// The clip begins with its only IDR, and anew when one is asked for.
    fn send(&mut self) {
        if !self.connected {
            return;
        }
        let timestamp = self.sent.wrapping_mul(FRAME_TICKS);
        let unit = OutgoingUnit {
            data: self.units[self.next].clone(),
            timestamp,
        };
        self.sent += 1;
        self.next = (self.next + 1) % self.units.len();
        // What is refused is followed by a request.
        let _ = self.connection.send_unit(0, unit);
    }
}

fn say(message: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}")?;
    out.flush()?;
    Ok(())
}
