//! A sender and a receiver over a bad link, on virtual time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::packet::Packet;
use super::receive::{Feedback, ReceivedUnit, Receiver};
use super::rtcp::{self, Statement};
use super::send::Sender;
use crate::testing::Seeded;
use crate::testing::link::{Link, LinkKind};
use crate::time::Monotonic;

const SSRC: u32 = 0x1234;
const FRAME: Duration = Duration::from_micros(16_667);

/// What is sent: pictures of this many bytes, key frames larger.
#[derive(Clone, Copy)]
struct Stream {
    picture: usize,
    keyframe: usize,
}

/// 40 Mbit/s at 60 pictures a second: about 70 packets a picture.
const UHD: Stream = Stream {
    picture: 83_000,
    keyframe: 215_000,
};
const HD: Stream = Stream {
    picture: 20_800,
    keyframe: 54_000,
};

struct Session {
    now: Monotonic,
    stream: Stream,
    sender: Sender,
    receiver: Receiver,
    forward: Link<Bytes>,
    back: Link<Bytes>,
    random: Seeded,
    sent: Vec<(Monotonic, Bytes)>,
    seen: Vec<(Monotonic, ReceivedUnit)>,
    keyframe_due: bool,
    wishes: usize,
}

impl Session {
    fn new(stream: Stream, kind: LinkKind, seed: u64) -> Self {
        Self {
            now: Monotonic::from_micros(1_000_000),
            stream,
            sender: Sender::new(SSRC, 96, 1200, 65_000),
            receiver: Receiver::new(),
            forward: Link::new(kind, seed),
            back: Link::new(kind, seed ^ 0xffff),
            random: Seeded::new(seed),
            sent: Vec::new(),
            seen: Vec::new(),
            keyframe_due: true,
            wishes: 0,
        }
    }

    /// Sends pictures for `span` of virtual time, then for another second only what is asked for.
    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        let mut frame = self.now;
        let done = end + Duration::from_secs(1);
        while self.now < done {
            if self.now >= frame && (self.now < end || self.keyframe_due) {
                self.send_picture();
                frame = self.now + FRAME;
            }
            self.exchange();
            let next = [
                Some(frame).filter(|frame| *frame < end),
                self.forward.next_arrival(),
                self.back.next_arrival(),
                self.receiver.next_deadline(),
                self.sender.next_deadline(),
                Some(done),
            ];
            let next = next.into_iter().flatten().min().unwrap_or(done);
            self.now = next.max(self.now + Duration::from_micros(1));
        }
    }

    fn send_picture(&mut self) {
        let idr = std::mem::take(&mut self.keyframe_due);
        let mut unit = Vec::new();
        let (kind, bytes) = if idr {
            unit.extend([0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4, 5]);
            (0x65, self.stream.keyframe)
        } else {
            (0x41, self.stream.picture)
        };
        unit.extend([0, 0, 0, 1, kind]);
        unit.extend((0..bytes / 8).flat_map(|_| (self.random.bits() | 0x0101_0101_0101_0101).to_be_bytes()));
        let unit = Bytes::from(unit);
        let timestamp = self.sent.len() as u32;
        self.sender.push(self.now, &unit, timestamp);
        self.sent.push((self.now, unit));
    }

    fn exchange(&mut self) {
        while let Some(wire) = self.back.receive(self.now) {
            for statement in rtcp::parse(&wire) {
                match statement {
                    Statement::Nack { sequences, .. } => self.sender.handle_nack(self.now, &sequences),
                    Statement::PictureLoss { .. } => self.keyframe_due = true,
                    _ => {}
                }
            }
        }
        self.sender.handle_timeout(self.now);
        while let Some(packet) = self.sender.poll_packet() {
            let wire = packet.to_bytes().freeze();
            self.forward.send(self.now, wire.len(), wire);
        }
        while let Some(wire) = self.forward.receive(self.now) {
            self.receiver
                .handle_packet(self.now, Packet::parse(&wire).unwrap());
        }
        self.receiver.handle_timeout(self.now);
        while let Some(feedback) = self.receiver.poll_feedback(self.now) {
            let mut out = BytesMut::new();
            match feedback {
                Feedback::Nack(sequences) => rtcp::write_nack(1, SSRC, &sequences, &mut out),
                Feedback::KeyframeWanted => {
                    self.wishes += 1;
                    rtcp::write_picture_loss(1, SSRC, &mut out);
                }
            }
            self.back.send(self.now, out.len(), out.freeze());
        }
        while let Some(unit) = self.receiver.poll_unit() {
            self.seen.push((self.now, unit));
        }
    }

    /// Everything that was shown is what was sent, in order, and begins anew with an IDR wherever something is left out.
    fn check(&self) {
        let mut before: Option<u32> = None;
        for (_, unit) in &self.seen {
            let whole = unit.data == self.sent[unit.timestamp as usize].1;
            assert!(whole, "unit {} is not what was sent", unit.timestamp);
            let follows = before.is_some_and(|before| unit.timestamp == before + 1);
            assert!(
                follows || unit.idr,
                "unit {} depends on one that is lost",
                unit.timestamp
            );
            assert_eq!(
                unit.after_loss,
                before.is_some() && !follows,
                "unit {}",
                unit.timestamp
            );
            assert!(before.is_none_or(|before| unit.timestamp > before));
            before = Some(unit.timestamp);
        }
    }

    fn usable(&self) -> f64 {
        self.seen.len() as f64 / self.sent.len() as f64
    }

    /// Sending to whole access unit, in milliseconds: the middle and the longest.
    fn delays(&self) -> (f64, f64) {
        let mut delays: Vec<f64> = self
            .seen
            .iter()
            .map(|(at, unit)| at.since(self.sent[unit.timestamp as usize].0).as_secs_f64() * 1e3)
            .collect();
        delays.sort_by(f64::total_cmp);
        (
            delays[delays.len() / 2],
            delays.last().copied().unwrap_or_default(),
        )
    }

    /// The longest time without a new picture, in milliseconds.
    fn longest_freeze(&self) -> f64 {
        let times: Vec<Monotonic> = self.seen.iter().map(|(at, _)| *at).collect();
        times
            .windows(2)
            .map(|pair| pair[1].since(pair[0]).as_secs_f64() * 1e3)
            .fold(0.0, f64::max)
    }
}

fn lossy(permille: u32) -> LinkKind {
    LinkKind {
        loss_permille: permille,
        ..LinkKind::clean(Duration::from_millis(20))
    }
}

#[test]
fn a_clean_link_adds_nothing() {
    let mut session = Session::new(UHD, LinkKind::clean(Duration::from_millis(3)), 1);
    session.run(Duration::from_secs(2));
    session.check();
    assert_eq!(session.seen.len(), session.sent.len());
    assert_eq!(session.delays(), (3.0, 3.0));
    assert_eq!(session.wishes, 1, "one key frame is asked for, at the start");
    let stats = session.receiver.stats();
    assert_eq!((stats.requested, stats.breaks), (0, 0));
}

/// The gate: 4K at 40 Mbit/s, 40 ms round trip, losses in both directions.
#[test]
fn nearly_every_picture_survives_two_and_five_per_cent_loss() {
    for (permille, seeds) in [(20, 0..8), (50, 8..16)] {
        for seed in seeds {
            let mut session = Session::new(UHD, lossy(permille), seed);
            session.run(Duration::from_secs(4));
            session.check();
            let (usable, (middle, longest), freeze) =
                (session.usable(), session.delays(), session.longest_freeze());
            let story = format!(
                "{permille} permille, seed {seed}: {usable:.4} usable, delay {middle:.0} to {longest:.0} ms, \
                 freeze {freeze:.0} ms, {:?}",
                session.receiver.stats()
            );
            assert!(usable >= 0.99, "{story}");
            assert!(freeze < 300.0, "{story}");
        }
    }
}

#[test]
fn a_report_tells_what_was_lost_since_the_one_before() {
    let mut receiver = Receiver::new();
    let packet = |sequence: u16| Packet {
        payload_type: 96,
        marker: false,
        sequence,
        timestamp: u32::from(sequence) * 90,
        ssrc: SSRC,
        payload: vec![0x41].into(),
    };
    let at = |sequence: u16| Monotonic::from_micros(u64::from(sequence) * 1000);
    for sequence in (1..=8).filter(|sequence| sequence % 4 != 0) {
        receiver.handle_packet(at(sequence), packet(sequence));
    }
    // Seven are expected, because nothing tells yet of the eighth.
    let first = receiver.report(SSRC);
    assert_eq!((first.lost, first.fraction_lost), (1, (256 / 7) as u8));
    assert_eq!((first.highest as u16, first.jitter, first.ssrc), (7, 0, SSRC));
    receiver.handle_packet(at(9), packet(9));
    let second = receiver.report(SSRC);
    assert_eq!((second.lost, second.fraction_lost), (2, 128));
}

#[test]
fn reordering_is_told_from_loss() {
    let kind = LinkKind {
        jitter: Duration::from_millis(8),
        ..LinkKind::clean(Duration::from_millis(20))
    };
    let mut session = Session::new(HD, kind, 3);
    session.run(Duration::from_secs(5));
    session.check();
    assert_eq!(session.seen.len(), session.sent.len());
    let stats = session.receiver.stats();
    assert!(
        stats.requested < stats.packets / 20,
        "{} of {} asked for in vain",
        stats.requested,
        stats.packets
    );
}

#[test]
fn bursts_and_a_blackout_are_survived() {
    let kind = LinkKind {
        burst_permille: 800,
        ..lossy(10)
    };
    let mut session = Session::new(HD, kind, 5);
    session.run(Duration::from_secs(4));
    session.check();
    assert!(session.usable() > 0.97, "{}", session.usable());

    let before = session.seen.len();
    for link in [&mut session.forward, &mut session.back] {
        link.kind.loss_permille = 1000;
        link.kind.burst_permille = 1000;
    }
    session.run(Duration::from_secs(30));
    for link in [&mut session.forward, &mut session.back] {
        link.kind = LinkKind::clean(Duration::from_millis(20));
    }
    let restored = session.now;
    session.run(Duration::from_secs(1));
    session.check();
    let (first, unit) = &session.seen[before..]
        .iter()
        .find(|(at, _)| *at > restored)
        .expect("pictures come again");
    assert!(unit.idr);
    let waited = first.since(restored);
    assert!(waited < Duration::from_millis(250), "{waited:?}");
}

#[test]
fn the_last_packet_of_a_still_screen_is_not_lost_for_ever() {
    for seed in 0..40 {
        let mut session = Session::new(HD, lossy(100), seed);
        session.run(FRAME);
        session.check();
        let last = session.seen.last().map(|(_, unit)| unit.timestamp as usize + 1);
        assert_eq!(last, Some(session.sent.len()), "seed {seed}");
    }
}

#[test]
fn a_flood_of_holes_is_bounded() {
    let mut receiver = Receiver::new();
    let mut random = Seeded::new(9);
    let mut now = Monotonic::ZERO;
    for _ in 0..50_000 {
        now = now + Duration::from_micros(50);
        receiver.handle_packet(
            now,
            Packet {
                payload_type: 96,
                marker: random.flip(),
                sequence: random.bits() as u16,
                timestamp: random.below(4),
                ssrc: SSRC,
                payload: vec![0x41; 1 + random.index(1200)].into(),
            },
        );
        receiver.handle_timeout(now);
        while receiver.poll_feedback(now).is_some() {}
        assert!(receiver.poll_unit().is_none(), "nothing here can be shown");
        assert!(receiver.held() <= (8192, 12 * 1024 * 1024, 2048));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever a link does, nothing wrong or dependent on something lost is shown, and pictures come again.
    #[test]
    fn any_link(
        seed: u64, loss in 0_u32..300, burst in 0_u32..900, delay in 0_u64..120, jitter in 0_u64..40,
        rate in prop_oneof![Just(0_u64), 4_000_000_u64..30_000_000],
    ) {
        let kind = LinkKind {
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            loss_permille: loss,
            burst_permille: burst,
            rate,
            queue: Duration::from_millis(300),
        };
        let small = Stream { picture: 6_000, keyframe: 20_000 };
        let mut session = Session::new(small, kind, seed);
        session.run(Duration::from_secs(3));
        session.check();
        let clean = LinkKind::clean(Duration::from_millis(delay));
        (session.forward.kind, session.back.kind) = (clean, clean);
        session.run(Duration::from_secs(1));
        session.check();
        let last = session.seen.last().map(|(_, unit)| unit.timestamp as usize + 1);
        prop_assert_eq!(last, Some(session.sent.len()));
    }
}
