//! Video and audio of one peer: RTP and RTCP in the clear, between the tracks and SRTP.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use crossdesk_core::h264::{NalKind, nals};
use crossdesk_core::rtp::packet::Packet;
use crossdesk_core::rtp::receive::{Feedback, ReceivedUnit, Receiver};
use crossdesk_core::rtp::rtcp::{self, ReportBlock, Statement};
use crossdesk_core::rtp::send::Sender;
use crossdesk_core::time::Monotonic;

use super::DATAGRAM_BYTES;
use super::feedback::{ask, fixed, round_trip, sender_report};
use super::negotiate::{Kind, Plan, Slot};
use super::random::Random;
use super::stats::{PeerStats, ReceivedTrack, SentTrack, jitter, loss};

/// Payload of a packet: the datagram without RTP header and the longest SRTP tag.
const MAX_PAYLOAD: usize = DATAGRAM_BYTES - 12 - 16;
/// Time between reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// Audio packets that were received and not polled.
const MAX_AUDIO: usize = 256;

/// One access unit to send.
#[derive(Clone, Debug)]
pub struct OutgoingUnit {
    /// Annex B bytes of one coded picture; an IDR carries its SPS and PPS.
    pub data: Bytes,
    /// Its media time, 90 kHz, modulo 2^32.
    pub timestamp: u32,
}

/// One Opus packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioPacket {
    /// The packet, which is a whole RTP payload.
    pub data: Bytes,
    /// Its media time, 48 kHz, modulo 2^32.
    pub timestamp: u32,
    /// Counts packets, modulo 2^16; a gap means loss, and packets may overtake each other.
    pub sequence: u16,
    /// When it arrived.
    pub received: Monotonic,
}

/// Why a unit is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitRefused {
    /// No such track, or it is not sent.
    NoTrack,
    /// There is no connection yet, or not any more.
    NotConnected,
    /// Units before it are missing at the other side: the next one must be an IDR.
    NeedsKeyframe,
    /// So much waits for the sockets that it is dropped; an IDR is needed next.
    Full,
}

impl fmt::Display for UnitRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTrack => "there is no such track to send on",
            Self::NotConnected => "there is no connection",
            Self::NeedsKeyframe => "the next unit has to be an IDR",
            Self::Full => "too much waits for being sent",
        })
    }
}

impl std::error::Error for UnitRefused {}

/// What media have to say.
pub(super) enum MediaEvent {
    Unit(usize, ReceivedUnit),
    Audio(AudioPacket),
    KeyframeRequested(usize),
}

struct Outgoing {
    ssrc: u32,
    sender: Sender,
    /// Media time of the last unit, and when it came.
    clock: Option<(Monotonic, u32)>,
    needs_keyframe: bool,
    /// A key frame was asked for and nobody was told.
    wanted: bool,
    /// The last command of its kind; it is repeated until obeyed.
    command: Option<u8>,
    refused: u64,
    report: ReportBlock,
}

struct Incoming {
    payload_type: u8,
    announced: Vec<u32>,
    ssrc: Option<u32>,
    receiver: Receiver,
    /// Middle of the NTP time in the last sender report, and when it came.
    sender_report: Option<(u32, Monotonic)>,
    report: ReportBlock,
}

enum Track {
    Out(Box<Outgoing>),
    In(Box<Incoming>),
    Idle,
}

/// Audio of one direction.
struct Audio {
    payload_type: u8,
    ssrc: u32,
    sends: bool,
    sequence: u16,
    packets: u32,
    octets: u32,
    clock: Option<(Monotonic, u32)>,
}

/// All tracks.
pub(super) struct Media {
    tracks: Vec<Track>,
    audio: Option<Audio>,
    heard: VecDeque<AudioPacket>,
    spoken: VecDeque<Packet>,
    /// Who reports, when nothing is sent.
    reporter: u32,
    feedback: VecDeque<BytesMut>,
    reports_due: Option<Monotonic>,
    round_trip: Option<Duration>,
    estimate: Option<u64>,
}

impl Media {
    pub(super) fn new(plan: &Plan, random: &mut Random) -> Self {
        let video = plan.slots.iter().filter(|slot| slot.kind == Kind::Video);
        let audio = plan.slots.iter().find(|slot| slot.kind == Kind::Audio);
        Self {
            tracks: video.map(|slot| Track::new(slot, random)).collect(),
            audio: audio.map(|slot| Audio {
                payload_type: slot.payload_type,
                ssrc: slot.ssrc,
                sends: slot.flow.sends(),
                sequence: first_sequence(random),
                packets: 0,
                octets: 0,
                clock: None,
            }),
            heard: VecDeque::new(),
            spoken: VecDeque::new(),
            reporter: random.u32(),
            feedback: VecDeque::new(),
            reports_due: None,
            round_trip: None,
            estimate: None,
        }
    }

    /// The connection is up: reports begin, and every track that is sent starts with an IDR.
    pub(super) fn start(&mut self, now: Monotonic) {
        self.reports_due = Some(now + REPORT_INTERVAL);
        for track in &mut self.tracks {
            if let Track::Out(track) = track {
                track.wanted = true;
            }
        }
    }

    /// Units did not get here: everything up to the next IDR is of no use.
    pub(super) fn lose_units(&mut self) {
        for track in &mut self.tracks {
            if let Track::Out(track) = track {
                track.needs_keyframe = true;
                track.wanted = true;
            }
        }
    }

    /// Takes a unit for `track`; `full` says that the sockets are behind.
    pub(super) fn send(
        &mut self,
        now: Monotonic,
        track: usize,
        unit: &OutgoingUnit,
        full: bool,
    ) -> Result<(), UnitRefused> {
        let Some(Track::Out(track)) = self.tracks.get_mut(track) else {
            return Err(UnitRefused::NoTrack);
        };
        let refusal = if full {
            track.needs_keyframe = true;
            Some(UnitRefused::Full)
        } else if track.needs_keyframe && !is_idr(&unit.data) {
            Some(UnitRefused::NeedsKeyframe)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            track.refused += 1;
            track.wanted = true;
            return Err(refusal);
        }
        track.needs_keyframe = false;
        track.clock = Some((now, unit.timestamp));
        track.sender.push(now, &unit.data, unit.timestamp);
        Ok(())
    }

    /// Takes an Opus packet; refused when audio is not sent.
    pub(super) fn send_audio(
        &mut self,
        now: Monotonic,
        data: Bytes,
        timestamp: u32,
    ) -> Result<(), UnitRefused> {
        let audio = self
            .audio
            .as_mut()
            .filter(|audio| audio.sends)
            .ok_or(UnitRefused::NoTrack)?;
        audio.clock = Some((now, timestamp));
        audio.packets = audio.packets.wrapping_add(1);
        audio.octets = audio.octets.wrapping_add(data.len() as u32);
        self.spoken.push_back(Packet {
            payload_type: audio.payload_type,
            marker: audio.packets == 1,
            sequence: audio.sequence,
            timestamp,
            ssrc: audio.ssrc,
            payload: data,
        });
        audio.sequence = audio.sequence.wrapping_add(1);
        Ok(())
    }

    /// Takes a packet that SRTP proved.
    pub(super) fn handle_packet(&mut self, now: Monotonic, packet: Packet) {
        if let Some(audio) = &self.audio
            && !audio.sends
            && packet.payload_type == audio.payload_type
        {
            if self.heard.len() < MAX_AUDIO {
                self.heard.push_back(AudioPacket {
                    data: packet.payload,
                    timestamp: packet.timestamp,
                    sequence: packet.sequence,
                    received: now,
                });
            }
            return;
        }
        if let Some(track) = self.track_of(&packet) {
            track.ssrc = Some(packet.ssrc);
            track.receiver.handle_packet(now, packet);
        }
    }

    /// Takes a compound RTCP packet that SRTP proved.
    pub(super) fn handle_feedback(&mut self, now: Monotonic, compound: &[u8]) {
        for statement in rtcp::parse(compound) {
            self.handle_statement(now, &statement);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Monotonic) {
        for track in &mut self.tracks {
            match track {
                Track::Out(track) => track.sender.handle_timeout(now),
                Track::In(track) => track.receiver.handle_timeout(now),
                Track::Idle => {}
            }
        }
        if self.reports_due.is_some_and(|due| due <= now) {
            self.reports_due = Some(now + REPORT_INTERVAL);
            self.report(now);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Monotonic> {
        let tracks = self.tracks.iter().filter_map(|track| match track {
            Track::Out(track) => track.sender.next_deadline(),
            Track::In(track) if track.ssrc.is_some() => track.receiver.next_deadline(),
            _ => None,
        });
        tracks.chain(self.reports_due).min()
    }

    /// The next packet to protect and send.
    pub(super) fn poll_packet(&mut self) -> Option<Packet> {
        let video = self.tracks.iter_mut().find_map(|track| match track {
            Track::Out(track) => track.sender.poll_packet(),
            _ => None,
        });
        // Audio is small and must not wait for pictures.
        self.spoken.pop_front().or(video)
    }

    /// The next compound RTCP packet to protect and send.
    pub(super) fn poll_feedback(&mut self, now: Monotonic) -> Option<BytesMut> {
        for track in &mut self.tracks {
            if let Track::In(track) = track
                && let Some(ssrc) = track.ssrc
            {
                while let Some(wish) = track.receiver.poll_feedback(now) {
                    ask(self.reporter, ssrc, &wish, &mut self.feedback);
                }
            }
        }
        self.feedback.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<MediaEvent> {
        for (index, track) in self.tracks.iter_mut().enumerate() {
            match track {
                Track::Out(track) => {
                    if std::mem::take(&mut track.wanted) {
                        return Some(MediaEvent::KeyframeRequested(index));
                    }
                }
                Track::In(track) => {
                    if let Some(unit) = track.receiver.poll_unit() {
                        return Some(MediaEvent::Unit(index, unit));
                    }
                }
                Track::Idle => {}
            }
        }
        self.heard.pop_front().map(MediaEvent::Audio)
    }

    /// Asks the sender of `track` for a key frame.
    pub(super) fn request_keyframe(&mut self, track: usize) {
        if let Some(Track::In(track)) = self.tracks.get(track)
            && let Some(ssrc) = track.ssrc
        {
            ask(self.reporter, ssrc, &Feedback::KeyframeWanted, &mut self.feedback);
        }
    }

    pub(super) fn fill(&self, stats: &mut PeerStats) {
        stats.round_trip = self.round_trip;
        stats.estimate = self.estimate;
        for (index, track) in self.tracks.iter().enumerate() {
            match track {
                Track::Out(track) => stats.sent.push(SentTrack {
                    track: index,
                    packets: track.sender.stats(),
                    refused: track.refused,
                    loss: loss(&track.report),
                    lost: track.report.lost.into(),
                    jitter: jitter(&track.report),
                }),
                Track::In(track) => stats.received.push(ReceivedTrack {
                    track: index,
                    packets: track.receiver.stats(),
                    loss: loss(&track.report),
                    jitter: jitter(&track.report),
                }),
                Track::Idle => {}
            }
        }
    }

    fn track_of(&mut self, packet: &Packet) -> Option<&mut Incoming> {
        let incoming = |tracks: &[Track], found: &dyn Fn(&Incoming) -> bool| {
            tracks
                .iter()
                .position(|track| matches!(track, Track::In(track) if track.payload_type == packet.payload_type && found(track)))
        };
        let ssrc = packet.ssrc;
        let index = incoming(&self.tracks, &|track| track.ssrc == Some(ssrc))
            .or_else(|| {
                incoming(&self.tracks, &|track| {
                    track.ssrc.is_none() && track.announced.contains(&ssrc)
                })
            })
            .or_else(|| {
                incoming(&self.tracks, &|track| {
                    track.ssrc.is_none() && track.announced.is_empty()
                })
            })?;
        match &mut self.tracks[index] {
            Track::In(track) => Some(track),
            _ => None,
        }
    }

    fn outgoing(&mut self, ssrc: u32) -> Option<&mut Outgoing> {
        self.tracks.iter_mut().find_map(|track| match track {
            Track::Out(track) if track.ssrc == ssrc => Some(track.as_mut()),
            _ => None,
        })
    }

    fn handle_statement(&mut self, now: Monotonic, statement: &Statement) {
        match statement {
            Statement::Nack { ssrc, sequences } => {
                if let Some(track) = self.outgoing(*ssrc) {
                    track.sender.handle_nack(now, sequences);
                }
            }
            Statement::PictureLoss { ssrc } => {
                if let Some(track) = self.outgoing(*ssrc) {
                    track.wanted = true;
                }
            }
            Statement::FullIntra { ssrc, number } => {
                if let Some(track) = self.outgoing(*ssrc)
                    && track.command.replace(*number) != Some(*number)
                {
                    track.wanted = true;
                }
            }
            Statement::Block(report) => {
                if let Some(track) = self.outgoing(report.ssrc) {
                    track.report = *report;
                    self.round_trip = round_trip(now, report).or(self.round_trip);
                }
            }
            Statement::Sender { ssrc, ntp, .. } => {
                let from = self.tracks.iter_mut().find_map(|track| match track {
                    Track::In(track) if track.ssrc == Some(*ssrc) => Some(track),
                    _ => None,
                });
                if let Some(track) = from {
                    track.sender_report = Some(((ntp >> 16) as u32, now));
                }
            }
            Statement::Remb { bitrate } => self.estimate = Some(*bitrate),
        }
    }

    /// What was sent and received, to the other side.
    fn report(&mut self, now: Monotonic) {
        let mut blocks = Vec::new();
        for track in &mut self.tracks {
            match track {
                Track::Out(track) => {
                    let SentCounts { packets, octets } = SentCounts::of(&track.sender);
                    if let Some(clock) = track.clock {
                        let report = sender_report(now, track.ssrc, clock, 90, (packets, octets));
                        self.feedback.push_back(report);
                    }
                }
                Track::In(track) => blocks.extend(track.report(now)),
                Track::Idle => {}
            }
        }
        if let Some(audio) = &self.audio
            && let Some(clock) = audio.clock
        {
            let report = sender_report(now, audio.ssrc, clock, 48, (audio.packets, audio.octets));
            self.feedback.push_back(report);
        }
        if !blocks.is_empty() {
            let mut out = BytesMut::new();
            rtcp::write_receiver_report(self.reporter, &blocks, &mut out);
            self.feedback.push_back(out);
        }
    }
}

struct SentCounts {
    packets: u32,
    octets: u32,
}

impl SentCounts {
    /// Counters of a sender as reports carry them, modulo 2^32.
    fn of(sender: &Sender) -> Self {
        let stats = sender.stats();
        Self {
            packets: stats.packets as u32,
            octets: stats.bytes as u32,
        }
    }
}

impl Track {
    fn new(slot: &Slot, random: &mut Random) -> Self {
        if slot.flow.sends() {
            Self::Out(Box::new(Outgoing {
                ssrc: slot.ssrc,
                sender: Sender::new(slot.ssrc, slot.payload_type, MAX_PAYLOAD, first_sequence(random)),
                clock: None,
                needs_keyframe: true,
                wanted: false,
                command: None,
                refused: 0,
                report: ReportBlock::default(),
            }))
        } else if slot.flow.receives() {
            Self::In(Box::new(Incoming {
                payload_type: slot.payload_type,
                announced: slot.remote_ssrcs.clone(),
                ssrc: None,
                receiver: Receiver::new(),
                sender_report: None,
                report: ReportBlock::default(),
            }))
        } else {
            Self::Idle
        }
    }
}

impl Incoming {
    fn report(&mut self, now: Monotonic) -> Option<ReportBlock> {
        let mut report = self.receiver.report(self.ssrc?);
        if let Some((ntp, at)) = self.sender_report {
            report.last_report = ntp;
            report.delay = fixed(now.since(at)) as u32;
        }
        self.report = report;
        Some(report)
    }
}

/// Below half of the numbers: receivers guess the rollover of SRTP wrongly when early packets overtake near the end
/// (RFC 3711, section 3.3.1).
fn first_sequence(random: &mut Random) -> u16 {
    random.u32() as u16 & 0x7fff
}

fn is_idr(unit: &Bytes) -> bool {
    nals(unit).any(|nal| nal.kind() == NalKind::IdrSlice)
}
