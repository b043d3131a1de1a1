//! What two descriptions agree on: which sections carry what, and in which format.

use std::fmt;
use std::fmt::Write as _;

use super::certificate::colons;
use super::config::{Config, Direction, VideoConfig};
use super::random::Random;
use super::sdp::{Codec, Description, Flow, Password, SdpError, Section, Setup};

/// Payload types of offers, the ones that everybody else uses.
const VIDEO_TYPE: u8 = 96;
const AUDIO_TYPE: u8 = 111;
/// Longest message taken on a data channel, in bytes.
pub(super) const MAX_MESSAGE_BYTES: u32 = 256 * 1024;
/// What a description without the attribute means (RFC 8841, section 6.1).
const DEFAULT_MESSAGE_BYTES: u32 = 64 * 1024;
/// Longest credential of ICE (RFC 8839, section 5.4).
const MAX_CREDENTIAL_BYTES: usize = 256;

/// Why two descriptions do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NegotiationError {
    /// The text is no description.
    Sdp(SdpError),
    /// The other side has no video section with H.264 that goes with ours.
    NoH264,
    /// The sections are not all carried by one transport (`a=group:BUNDLE`).
    NotBundled,
    /// RTCP would need a port of its own.
    NoRtcpMux,
    /// No section has `a=ice-ufrag` and `a=ice-pwd`.
    NoIceCredentials,
    /// No certificate digest of SHA-256 is given.
    NoFingerprint,
    /// Both sides want the same part in the DTLS handshake, or none is named where one must be.
    SetupConflict,
    /// The answer has other sections than the offer.
    OtherSections,
    /// Nothing of the offer is usable.
    NothingInCommon,
    /// An answer came without an offer, or an offer to the side that offers.
    WrongState,
}

impl fmt::Display for NegotiationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sdp(error) => return error.fmt(f),
            Self::NoH264 => "the other side has no H.264 video that goes with this one's",
            Self::NotBundled => "the other side does not bundle its sections",
            Self::NoRtcpMux => "the other side does not multiplex RTCP",
            Self::NoIceCredentials => "the other side gave no ICE credentials",
            Self::NoFingerprint => "the other side gave no SHA-256 fingerprint of its certificate",
            Self::SetupConflict => "both sides want the same part in the DTLS handshake",
            Self::OtherSections => "the answer has other sections than the offer",
            Self::NothingInCommon => "nothing that was offered can be used",
            Self::WrongState => "this description is not expected now",
        })
    }
}

impl std::error::Error for NegotiationError {}

impl From<SdpError> for NegotiationError {
    fn from(error: SdpError) -> Self {
        Self::Sdp(error)
    }
}

/// What a section is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Video,
    Audio,
    Data,
    /// Not used; the words of its `m=` line are kept, because an answer repeats them.
    Refused(String),
}

/// One section as agreed, or as offered while no answer is there.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) mid: String,
    pub(super) flow: Flow,
    pub(super) payload_type: u8,
    parameters: String,
    /// The stream sent here; it is announced when the section sends.
    pub(super) ssrc: u32,
    /// Streams that the other side announced.
    pub(super) remote_ssrcs: Vec<u32>,
}

/// All sections, in order.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) slots: Vec<Slot>,
    offering: bool,
}

/// What a description says about the other side's transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) ufrag: String,
    pub(super) password: Password,
    pub(super) fingerprints: Vec<[u8; 32]>,
    pub(super) setup: Option<Setup>,
    pub(super) candidates: Vec<String>,
    pub(super) max_message_bytes: u32,
}

/// What our descriptions say about our transport.
pub(super) struct Local<'a> {
    pub(super) session: u64,
    pub(super) version: u64,
    pub(super) ufrag: &'a str,
    pub(super) password: &'a str,
    pub(super) fingerprint: &'a [u8; 32],
    pub(super) setup: Setup,
    pub(super) candidates: Vec<String>,
}

impl Plan {
    /// Everything that `config` has.
    pub(super) fn offer(config: &Config, random: &mut Random) -> Self {
        let flow = |direction| match direction {
            Direction::Send => Flow::SendOnly,
            Direction::Receive => Flow::RecvOnly,
        };
        let mut slots: Vec<Slot> = Vec::new();
        if let Some(video) = &config.video {
            for (index, name) in video.tracks.iter().enumerate() {
                let mid = token(name, index, &slots);
                let mut slot = Slot::new(Kind::Video, mid, flow(video.direction), random);
                slot.use_format(VIDEO_TYPE, h264_parameters(video.profile_level_id));
                slots.push(slot);
            }
        }
        if let Some(direction) = config.audio {
            let mid = token("audio-stream", slots.len(), &slots);
            let mut slot = Slot::new(Kind::Audio, mid, flow(direction), random);
            slot.use_format(AUDIO_TYPE, OPUS_PARAMETERS.to_owned());
            slots.push(slot);
        }
        if config.data {
            let mid = token("data", slots.len(), &slots);
            slots.push(Slot::new(Kind::Data, mid, Flow::SendRecv, random));
        }
        Self {
            slots,
            offering: true,
        }
    }

    /// What of the offer `config` goes along with.
    pub(super) fn answer(
        config: &Config,
        offer: &Description,
        random: &mut Random,
    ) -> Result<Self, NegotiationError> {
        let mut slots = Vec::with_capacity(offer.sections.len());
        for section in &offer.sections {
            let one_data = !slots.iter().any(|slot: &Slot| slot.kind == Kind::Data);
            let slot = match section.kind.as_str() {
                _ if section.rejected => None,
                "video" => config
                    .video
                    .as_ref()
                    .and_then(|video| Slot::video(video, section, random)),
                "audio" => config
                    .audio
                    .and_then(|direction| Slot::audio(direction, section, random)),
                "application" if config.data && one_data && section.protocol.contains("SCTP") => {
                    Some(Slot::new(Kind::Data, section.mid.clone(), Flow::SendRecv, random))
                }
                _ => None,
            };
            slots.push(slot.unwrap_or_else(|| Slot::refused(section)));
        }
        let plan = Self {
            slots,
            offering: false,
        };
        if config.video.is_some() && !plan.has(&Kind::Video) {
            return Err(NegotiationError::NoH264);
        }
        plan.check(offer)?;
        Ok(plan)
    }

    /// Narrows an offer to what the answer takes.
    pub(super) fn accept(&mut self, answer: &Description) -> Result<(), NegotiationError> {
        let wanted = self.has(&Kind::Video);
        if answer.sections.len() != self.slots.len() {
            return Err(NegotiationError::OtherSections);
        }
        for (slot, section) in self.slots.iter_mut().zip(&answer.sections) {
            slot.accept(section)?;
        }
        if wanted && !self.has(&Kind::Video) {
            return Err(NegotiationError::NoH264);
        }
        self.check(answer)
    }

    /// What the other side's description says about its transport.
    pub(super) fn remote(&self, description: &Description) -> Result<Remote, NegotiationError> {
        let used = || self.used(description);
        let (_, first) = used().next().ok_or(NegotiationError::NothingInCommon)?;
        let transport = &first.transport;
        let valid = |value: &str| !value.is_empty() && value.len() <= MAX_CREDENTIAL_BYTES;
        let ufrag = transport.ufrag.clone().filter(|ufrag| valid(ufrag));
        let password = transport.password.clone().filter(|password| valid(&password.0));
        let (Some(ufrag), Some(password)) = (ufrag, password) else {
            return Err(NegotiationError::NoIceCredentials);
        };
        if transport.fingerprints.is_empty() {
            return Err(NegotiationError::NoFingerprint);
        }
        let data = used().find(|(slot, _)| slot.kind == Kind::Data);
        let size = data.and_then(|(_, section)| section.max_message_size);
        Ok(Remote {
            ufrag,
            password,
            fingerprints: transport.fingerprints.clone(),
            setup: transport.setup,
            candidates: used()
                .flat_map(|(_, section)| section.transport.candidates.clone())
                .collect(),
            max_message_bytes: match size {
                // Zero means any length.
                Some(0) => MAX_MESSAGE_BYTES,
                Some(size) => size.min(MAX_MESSAGE_BYTES),
                None => DEFAULT_MESSAGE_BYTES,
            },
        })
    }

    pub(super) fn has(&self, kind: &Kind) -> bool {
        self.slots.iter().any(|slot| slot.kind == *kind)
    }

    /// The first section that is used; candidates are signaled with its name.
    pub(super) fn first_mid(&self) -> Option<&str> {
        let used = self.slots.iter().find(|slot| slot.is_used());
        used.map(|slot| slot.mid.as_str())
    }

    /// This side's description.
    pub(super) fn write(&self, local: &Local<'_>) -> String {
        let mut out = String::with_capacity(2048);
        let mids: Vec<&str> = self
            .slots
            .iter()
            .filter(|slot| slot.is_used())
            .map(|slot| slot.mid.as_str())
            .collect();
        out.push_str("v=0\r\n");
        line(
            &mut out,
            format_args!("o=- {} {} IN IP4 127.0.0.1", local.session >> 1, local.version),
        );
        out.push_str("s=-\r\nt=0 0\r\n");
        line(&mut out, format_args!("a=group:BUNDLE {}", mids.join(" ")));
        out.push_str("a=msid-semantic:WMS *\r\na=ice-options:trickle\r\n");
        line(
            &mut out,
            format_args!("a=fingerprint:sha-256 {}", colons(local.fingerprint)),
        );
        let mut candidates = Some(&local.candidates);
        for slot in &self.slots {
            slot.write(self.offering, &mut out);
            if slot.is_used() {
                line(&mut out, format_args!("a=ice-ufrag:{}", local.ufrag));
                line(&mut out, format_args!("a=ice-pwd:{}", local.password));
                line(&mut out, format_args!("a=setup:{}", local.setup.name()));
                for candidate in candidates.take().into_iter().flatten() {
                    line(&mut out, format_args!("a={candidate}"));
                }
            }
        }
        out
    }

    fn used<'a>(&'a self, description: &'a Description) -> impl Iterator<Item = (&'a Slot, &'a Section)> {
        let pairs = self.slots.iter().zip(&description.sections);
        pairs.filter(|(slot, section)| slot.is_used() && !section.rejected)
    }

    fn check(&self, description: &Description) -> Result<(), NegotiationError> {
        let several = self.used(description).count() > 1;
        for (slot, section) in self.used(description) {
            if several && !description.bundle.contains(&section.mid) {
                return Err(NegotiationError::NotBundled);
            }
            if slot.kind != Kind::Data && !section.rtcp_mux {
                return Err(NegotiationError::NoRtcpMux);
            }
        }
        Ok(())
    }
}

impl Slot {
    fn new(kind: Kind, mid: String, flow: Flow, random: &mut Random) -> Self {
        Self {
            kind,
            mid,
            flow,
            payload_type: 0,
            parameters: String::new(),
            ssrc: random.u32(),
            remote_ssrcs: Vec::new(),
        }
    }

    fn refused(section: &Section) -> Self {
        Self {
            kind: Kind::Refused(refusal(section)),
            mid: section.mid.clone(),
            flow: Flow::Inactive,
            payload_type: 0,
            parameters: String::new(),
            ssrc: 0,
            remote_ssrcs: Vec::new(),
        }
    }

    fn use_format(&mut self, payload_type: u8, parameters: String) {
        (self.payload_type, self.parameters) = (payload_type, parameters);
    }

    fn video(video: &VideoConfig, section: &Section, random: &mut Random) -> Option<Self> {
        let flow = answered(video.direction, section.flow);
        let codec = choose_h264(section, video)?;
        let mut chosen = profile(codec);
        chosen[2] = video.profile_level_id[2];
        let mut slot = Self::new(Kind::Video, section.mid.clone(), flow, random);
        slot.use_format(codec.payload_type, h264_parameters(chosen));
        slot.remote_ssrcs.clone_from(&section.ssrcs);
        Some(slot)
    }

    fn audio(direction: Direction, section: &Section, random: &mut Random) -> Option<Self> {
        let codec = listed(section).find(|codec| codec.name == "OPUS")?;
        let mut slot = Self::new(
            Kind::Audio,
            section.mid.clone(),
            answered(direction, section.flow),
            random,
        );
        slot.use_format(codec.payload_type, OPUS_PARAMETERS.to_owned());
        slot.remote_ssrcs.clone_from(&section.ssrcs);
        Some(slot)
    }

    pub(super) fn is_used(&self) -> bool {
        !matches!(self.kind, Kind::Refused(_))
    }

    /// Takes what the answer says about a section that was offered.
    fn accept(&mut self, section: &Section) -> Result<(), NegotiationError> {
        let (kind, name) = match self.kind {
            Kind::Video => ("video", "H264"),
            Kind::Audio => ("audio", "OPUS"),
            Kind::Data => ("application", ""),
            Kind::Refused(_) => return Ok(()),
        };
        if section.kind != kind {
            return Err(NegotiationError::OtherSections);
        }
        let codec = listed(section).find(|codec| codec.name == name);
        // Packets are sent in the mode that is offered; another one is no H.264 that this side speaks.
        let speaks = |codec: &&Codec| name != "H264" || !self.flow.sends() || mode(codec) == "1";
        let codec = codec.filter(speaks);
        let refused = section.rejected || self.kind != Kind::Data && codec.is_none();
        if refused {
            (self.kind, self.flow) = (Kind::Refused(refusal(section)), Flow::Inactive);
            return Ok(());
        }
        self.payload_type = codec.map_or(0, |codec| codec.payload_type);
        self.remote_ssrcs.clone_from(&section.ssrcs);
        self.flow = match (self.flow.sends(), self.flow.receives()) {
            (true, false) => answered(Direction::Send, section.flow),
            (false, true) => answered(Direction::Receive, section.flow),
            _ => self.flow,
        };
        Ok(())
    }

    fn write(&self, offering: bool, out: &mut String) {
        let (format, name) = match &self.kind {
            Kind::Video => (self.payload_type, "H264/90000"),
            Kind::Audio => (self.payload_type, "opus/48000/2"),
            Kind::Data => {
                out.push_str("m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n");
                line(out, format_args!("a=mid:{}", self.mid));
                line(out, format_args!("a=sctp-port:5000"));
                return line(out, format_args!("a=max-message-size:{MAX_MESSAGE_BYTES}"));
            }
            Kind::Refused(words) => {
                line(out, format_args!("m={words}"));
                out.push_str("c=IN IP4 0.0.0.0\r\n");
                line(out, format_args!("a=mid:{}", self.mid));
                return line(out, format_args!("a=inactive"));
            }
        };
        let video = self.kind == Kind::Video;
        let kind = if video { "video" } else { "audio" };
        line(out, format_args!("m={kind} 9 UDP/TLS/RTP/SAVPF {format}"));
        out.push_str("c=IN IP4 0.0.0.0\r\n");
        line(out, format_args!("a=mid:{}", self.mid));
        line(out, format_args!("a={}", self.flow.name()));
        if self.flow.sends() {
            line(out, format_args!("a=msid:{} {}", self.mid, self.mid));
        }
        out.push_str("a=rtcp-mux\r\n");
        line(out, format_args!("a=rtpmap:{format} {name}"));
        if video {
            // Estimates of the path are read when they come, but none are made here.
            let estimates = offering && self.flow.sends();
            for feedback in ["nack", "nack pli", "ccm fir"]
                .into_iter()
                .chain(estimates.then_some("goog-remb"))
            {
                line(out, format_args!("a=rtcp-fb:{format} {feedback}"));
            }
        }
        line(out, format_args!("a=fmtp:{format} {}", self.parameters));
        if self.flow.sends() {
            line(out, format_args!("a=ssrc:{} cname:crossdesk", self.ssrc));
        }
    }
}

const OPUS_PARAMETERS: &str = "minptime=10;stereo=1;sprop-stereo=1;useinbandfec=1";

fn h264_parameters([profile, constraints, level]: [u8; 3]) -> String {
    format!(
        "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={profile:02x}{constraints:02x}{level:02x}"
    )
}

fn line(out: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
    out.push_str("\r\n");
}

/// The words of the `m=` line that refuses a section.
fn refusal(section: &Section) -> String {
    format!(
        "{} 0 {} {}",
        section.kind,
        section.protocol,
        section.formats.join(" ")
    )
}

/// The flow of an answer, seen from here, to a section that offers `offered`.
fn answered(direction: Direction, offered: Flow) -> Flow {
    match direction {
        Direction::Send if offered.receives() => Flow::SendOnly,
        Direction::Receive if offered.sends() => Flow::RecvOnly,
        _ => Flow::Inactive,
    }
}

/// Payload types that the section's `m=` line lists.
fn listed(section: &Section) -> impl Iterator<Item = &Codec> {
    let listed = |codec: &&Codec| section.formats.contains(&codec.payload_type.to_string());
    section.codecs.iter().filter(listed)
}

/// The H.264 that goes best with `video`: packets of mode 1, and the same profile.
fn choose_h264<'a>(section: &'a Section, video: &VideoConfig) -> Option<&'a Codec> {
    let sends = video.direction == Direction::Send;
    let same_profile = |codec: &Codec| profile(codec)[0] == video.profile_level_id[0];
    let candidates = listed(section).filter(|codec| codec.name == "H264");
    candidates
        .filter(|codec| !sends || mode(codec) == "1" && same_profile(codec))
        .min_by_key(|codec| {
            let same_constraints = profile(codec)[1] == video.profile_level_id[1];
            (mode(codec) != "1", !same_profile(codec), !same_constraints)
        })
}

fn mode(codec: &Codec) -> &str {
    codec
        .parameters
        .get("packetization-mode")
        .map_or("0", String::as_str)
}

fn profile(codec: &Codec) -> [u8; 3] {
    let value = codec.parameters.get("profile-level-id");
    let value = value.filter(|value| value.len() == 6);
    let number = value.and_then(|value| u32::from_str_radix(value, 16).ok());
    // Absent means Baseline at level 1 (RFC 6184, section 8.1).
    let [_, profile, constraints, level] = number.unwrap_or(0x42_00_0a).to_be_bytes();
    [profile, constraints, level]
}

/// A name as SDP allows it (RFC 8866, `token`), different from those of `slots`.
fn token(name: &str, index: usize, slots: &[Slot]) -> String {
    let letters = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c));
    let mut name: String = letters.take(32).collect();
    if name.is_empty() || slots.iter().any(|slot| slot.mid == name) {
        let _ = write!(name, "-{index}");
    }
    name
}
