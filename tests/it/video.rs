//! The loopback listener over real sockets: admission, authorisation, flow control, cancellation.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail the test like the tests themselves"
)]

mod client;
mod rules;
mod serving;

use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use crossdesk::video::{VideoConfig, VideoService, VideoStats};
use crossdesk_core::media::TapUnit;
use crossdesk_core::video::{Grant, OriginRule, PanelOrigin, Protocol, SessionId, Ticket, ViewId};
use crossdesk_pipelines::clock;

use self::client::Client;

const ORIGIN: &str = "http://127.0.0.1:9000";
const GENERATION: u32 = 3;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn token(n: u32) -> String {
    let mut bytes = [0; 24];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn ticket_message(n: u32) -> String {
    format!(r#"{{"ticket":"{}"}}"#, token(n))
}

fn grant_of(n: u32) -> Grant {
    Grant {
        ticket: Ticket::parse(&token(n)).unwrap(),
        view: view_of(n),
        view_generation: NonZeroU64::MIN,
        session: SessionId::parse(&token(0)).unwrap(),
        origin: OriginRule {
            panel: PanelOrigin::parse(ORIGIN).unwrap(),
            apps: false,
        },
        generation: GENERATION,
    }
}

fn view_of(n: u32) -> ViewId {
    ViewId::parse(&token(n)).unwrap()
}

/// A service in session, and what it asked of the source.
struct Server {
    service: VideoService,
    keyframes: Receiver<()>,
    sequence: u32,
}

impl Server {
    fn start(protocol: Protocol) -> Self {
        let (wanted, keyframes) = sync_channel(64);
        let config = VideoConfig {
            keyframe_wanted: Box::new(move || {
                let _ = wanted.try_send(());
            }),
        };
        let service = VideoService::start(config).unwrap();
        service.begin(GENERATION, protocol).unwrap();
        Self {
            service,
            keyframes,
            sequence: 0,
        }
    }

    fn h264() -> Self {
        Self::start(Protocol::H264AnnexB)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.service.port())
    }

    /// A socket of `ORIGIN` after its handshake. Some ticket must have been granted.
    fn upgraded(&self) -> Client {
        let mut client = Client::connect(self.service.port());
        let status = client.handshake(&self.host(), ORIGIN);
        assert_eq!(status, "HTTP/1.1 101 Switching Protocols");
        client
    }

    /// A viewer that was granted ticket and view `n`.
    fn viewer(&self, n: u32) -> Client {
        let viewers = self.stats().output.viewers;
        self.service.grant(grant_of(n)).unwrap();
        let mut client = self.upgraded();
        client.text(&ticket_message(n));
        self.until(|stats| stats.output.viewers > viewers);
        client
    }

    fn publish(&mut self, idr: bool, data: impl Into<Bytes>) {
        self.sequence += 1;
        self.service.publisher().publish_unit(TapUnit {
            data: data.into(),
            idr,
            sequence: self.sequence,
            received: clock::now(),
        });
    }

    fn stats(&self) -> VideoStats {
        self.service.stats().unwrap()
    }

    /// Asks until `holds`; each question goes to the video thread and back.
    fn until(&self, holds: impl Fn(&VideoStats) -> bool) -> VideoStats {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let stats = self.stats();
            if holds(&stats) {
                return stats;
            }
            assert!(Instant::now() < deadline, "still {stats:?}");
            std::thread::yield_now();
        }
    }
}
