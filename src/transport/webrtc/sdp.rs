//! Session descriptions (RFC 8866) as far as WebRTC needs them: what is read is limited and forgiving.
//!
//! Lines that are not understood are skipped, wrong values of attributes count as absent. What is left out in a
//! section is taken from the session's own lines.

use std::collections::BTreeMap;
use std::fmt;

/// Longest description read, in bytes; the signaling servers' own limit of a message.
pub const MAX_SDP_BYTES: usize = 64 * 1024;
/// Sections, and entries of one kind in a section, beyond which the rest is ignored.
const MAX_SECTIONS: usize = 64;
const MAX_ENTRIES: usize = 128;

/// Why a text is no description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdpError {
    /// More than [`MAX_SDP_BYTES`].
    TooLong,
    /// It does not begin with `v=`.
    NotSdp,
    /// It has no `m=` line.
    NoSections,
    /// This `m=` line (the first is 1) cannot be read.
    BadSection(usize),
}

impl fmt::Display for SdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the session description is longer than {MAX_SDP_BYTES} bytes"),
            Self::NotSdp => f.write_str("the session description does not begin with v="),
            Self::NoSections => f.write_str("the session description has no m= line"),
            Self::BadSection(number) => write!(f, "m= line {number} of the session description is damaged"),
        }
    }
}

impl std::error::Error for SdpError {}

/// Who sends in a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flow {
    #[default]
    SendRecv,
    SendOnly,
    RecvOnly,
    Inactive,
}

impl Flow {
    fn parse(name: &str) -> Option<Self> {
        [Self::SendRecv, Self::SendOnly, Self::RecvOnly, Self::Inactive]
            .into_iter()
            .find(|flow| flow.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SendRecv => "sendrecv",
            Self::SendOnly => "sendonly",
            Self::RecvOnly => "recvonly",
            Self::Inactive => "inactive",
        }
    }

    pub(super) const fn sends(self) -> bool {
        matches!(self, Self::SendRecv | Self::SendOnly)
    }

    pub(super) const fn receives(self) -> bool {
        matches!(self, Self::SendRecv | Self::RecvOnly)
    }
}

/// Who begins the DTLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    Active,
    Passive,
    ActPass,
}

impl Setup {
    fn parse(name: &str) -> Option<Self> {
        [Self::Active, Self::Passive, Self::ActPass]
            .into_iter()
            .find(|setup| setup.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Passive => "passive",
            Self::ActPass => "actpass",
        }
    }
}

/// One payload type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Codec {
    pub(super) payload_type: u8,
    /// Upper-case name, for example `H264`.
    pub(super) name: String,
    /// Its parameters, keys in lower case.
    pub(super) parameters: BTreeMap<String, String>,
}

/// What proves that a check of ICE is the other side's.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(pub(super) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// What may stand once for all sections or in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transport {
    pub(super) ufrag: Option<String>,
    pub(super) password: Option<Password>,
    /// SHA-256 digests of certificates.
    pub(super) fingerprints: Vec<[u8; 32]>,
    pub(super) setup: Option<Setup>,
    pub(super) candidates: Vec<String>,
}

/// One `m=` line and what follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// `video`, `audio`, `application` or something else.
    pub(super) kind: String,
    pub(super) protocol: String,
    pub(super) formats: Vec<String>,
    /// True when the port is 0 and the section is not carried by another one's transport.
    pub(super) rejected: bool,
    pub(super) mid: String,
    pub(super) flow: Flow,
    pub(super) codecs: Vec<Codec>,
    pub(super) ssrcs: Vec<u32>,
    pub(super) rtcp_mux: bool,
    pub(super) max_message_size: Option<u32>,
    pub(super) transport: Transport,
}

/// A description that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) sections: Vec<Section>,
    /// Sections that share one transport, by their mids.
    pub(super) bundle: Vec<String>,
}

/// Reads a description.
pub(super) fn parse(text: &str) -> Result<Description, SdpError> {
    if text.len() > MAX_SDP_BYTES {
        return Err(SdpError::TooLong);
    }
    if !text.trim_start().starts_with("v=") {
        return Err(SdpError::NotSdp);
    }
    let mut description = Description::default();
    let mut common = Section::default();
    let mut bundle_only = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(media) = line.strip_prefix("m=") {
            let number = description.sections.len() + 1;
            if number > MAX_SECTIONS {
                break;
            }
            let section = parse_media(media, &common).ok_or(SdpError::BadSection(number))?;
            description.sections.push(section);
            bundle_only.push(false);
        } else if let Some(attribute) = line.strip_prefix("a=") {
            let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
            match (name, bundle_only.last_mut()) {
                ("group", _) => description.bundle.extend(bundle(value)),
                ("bundle-only", Some(only)) => *only = true,
                _ => {
                    let section = description.sections.last_mut().unwrap_or(&mut common);
                    attribute_of(section, name, value.trim());
                }
            }
        }
    }
    for (section, only) in description.sections.iter_mut().zip(bundle_only) {
        section.rejected &= !only;
        section.inherit(&common);
    }
    if description.sections.is_empty() {
        return Err(SdpError::NoSections);
    }
    Ok(description)
}

impl Section {
    /// Fills in what the section leaves to the session.
    fn inherit(&mut self, common: &Self) {
        let (own, shared) = (&mut self.transport, &common.transport);
        if own.ufrag.is_none() {
            own.ufrag.clone_from(&shared.ufrag);
            own.password.clone_from(&shared.password);
        }
        if own.fingerprints.is_empty() {
            own.fingerprints.clone_from(&shared.fingerprints);
        }
        own.setup = own.setup.or(shared.setup);
    }
}

fn bundle(value: &str) -> Vec<String> {
    let mut words = value.split_whitespace();
    if words.next() != Some("BUNDLE") {
        return Vec::new();
    }
    words.take(MAX_SECTIONS).map(str::to_owned).collect()
}

fn parse_media(value: &str, common: &Section) -> Option<Section> {
    let mut words = value.split_whitespace();
    let kind = words.next()?.to_owned();
    let port: u16 = words.next()?.split('/').next()?.parse().ok()?;
    Some(Section {
        kind,
        rejected: port == 0,
        protocol: words.next()?.to_owned(),
        formats: words.take(MAX_ENTRIES).map(str::to_owned).collect(),
        flow: common.flow,
        ..Section::default()
    })
}

fn attribute_of(section: &mut Section, name: &str, value: &str) {
    let transport = &mut section.transport;
    match name {
        "mid" => value.clone_into(&mut section.mid),
        "rtcp-mux" => section.rtcp_mux = true,
        "max-message-size" => section.max_message_size = value.parse().ok(),
        "ice-ufrag" => transport.ufrag = Some(value.to_owned()),
        "ice-pwd" => transport.password = Some(Password(value.to_owned())),
        "setup" => transport.setup = Setup::parse(value).or(transport.setup),
        "fingerprint" if transport.fingerprints.len() < MAX_ENTRIES => {
            transport.fingerprints.extend(fingerprint(value));
        }
        "candidate" if transport.candidates.len() < MAX_ENTRIES => {
            transport.candidates.push(format!("candidate:{value}"));
        }
        "ssrc" if section.ssrcs.len() < MAX_ENTRIES => {
            let ssrc = value.split_whitespace().next().and_then(|ssrc| ssrc.parse().ok());
            section
                .ssrcs
                .extend(ssrc.filter(|ssrc| !section.ssrcs.contains(ssrc)));
        }
        "rtpmap" | "fmtp" => codec(section, name, value),
        _ => section.flow = Flow::parse(name).unwrap_or(section.flow),
    }
}

fn codec(section: &mut Section, name: &str, value: &str) {
    let Some((number, rest)) = value.split_once(' ') else {
        return;
    };
    let Some(payload_type) = number.parse().ok().filter(|number| *number < 128) else {
        return;
    };
    let known = section
        .codecs
        .iter()
        .position(|codec| codec.payload_type == payload_type);
    let index = match known {
        Some(index) => index,
        None if section.codecs.len() == MAX_ENTRIES => return,
        None => {
            section.codecs.push(Codec {
                payload_type,
                ..Codec::default()
            });
            section.codecs.len() - 1
        }
    };
    let codec = &mut section.codecs[index];
    if name == "rtpmap" {
        codec.name = rest.split('/').next().unwrap_or(rest).trim().to_uppercase();
        return;
    }
    for parameter in rest.split(';').take(MAX_ENTRIES) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let key = key.trim().to_lowercase();
        codec.parameters.insert(key, value.trim().to_owned());
    }
}

/// The digest of `sha-256 AA:BB:…`.
fn fingerprint(value: &str) -> Option<[u8; 32]> {
    let (algorithm, digits) = value.split_once(' ')?;
    if !algorithm.eq_ignore_ascii_case("sha-256") {
        return None;
    }
    let mut digest = [0; 32];
    let mut pairs = digits.trim().split(':');
    for byte in &mut digest {
        *byte = u8::from_str_radix(pairs.next()?, 16).ok()?;
    }
    pairs.next().is_none().then_some(digest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BROWSER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
        a=fingerprint:sha-1 AA:BB\r\n\
        a=fingerprint:SHA-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1a:1b:1C:1D:1E:FF\r\n\
        m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:secret\r\n\
        a=mid:0\r\na=recvonly\r\na=rtcp-mux\r\na=setup:active\r\na=rtpmap:96 H264/90000\r\n\
        a=rtcp-fb:96 nack pli\r\na=fmtp:96 Level-Asymmetry-Allowed=1; packetization-mode=1;profile-level-id=42e01f\r\n\
        a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=ssrc:7 cname:x\r\na=ssrc:7 msid:x y\r\na=candidate:1 1 udp 1 1.2.3.4 5 typ host\r\n\
        m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\na=bundle-only\r\na=mid:1\r\na=max-message-size:262144\r\n";

    #[test]
    fn a_browsers_description_is_read() {
        let read = parse(BROWSER).unwrap();
        assert_eq!(read.bundle, ["0", "1"]);
        let [video, data] = &read.sections[..] else {
            panic!()
        };
        assert_eq!(
            (video.kind.as_str(), video.flow, video.rtcp_mux),
            ("video", Flow::RecvOnly, true)
        );
        assert_eq!(video.transport.ufrag.as_deref(), Some("abcd"));
        assert_eq!(video.transport.setup, Some(Setup::Active));
        assert_eq!(video.transport.password, Some(Password("secret".to_owned())));
        assert!(!format!("{read:?}").contains("secret"));
        assert_eq!(video.transport.fingerprints.len(), 1);
        assert_eq!(video.transport.fingerprints[0][31], 0xff);
        assert_eq!(
            video.transport.candidates,
            ["candidate:1 1 udp 1 1.2.3.4 5 typ host"]
        );
        assert_eq!(video.ssrcs, [7]);
        assert_eq!(video.codecs[0].name, "H264");
        assert_eq!(video.codecs[0].parameters["packetization-mode"], "1");
        assert_eq!(video.codecs[0].parameters["level-asymmetry-allowed"], "1");
        assert!(
            !data.rejected,
            "a bundle-only section is carried by the first one's transport"
        );
        assert_eq!(data.max_message_size, Some(262_144));
        assert_eq!(data.transport.fingerprints, video.transport.fingerprints);
    }

    #[test]
    fn what_is_no_description_is_told() {
        assert_eq!(parse(""), Err(SdpError::NotSdp));
        assert_eq!(parse("v=0\r\ns=-\r\n"), Err(SdpError::NoSections));
        assert_eq!(parse("v=0\r\nm=video nine\r\n"), Err(SdpError::BadSection(1)));
        assert_eq!(parse(&"v=".repeat(MAX_SDP_BYTES)), Err(SdpError::TooLong));
        let many = format!("v=0\n{}", "m=video 9 x 1\n".repeat(500));
        assert_eq!(parse(&many).unwrap().sections.len(), MAX_SECTIONS);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,300}") {
            let _ = parse(&format!("v=0\n{text}"));
        }

        #[test]
        fn no_damaged_description_makes_it_panic(at in 0..BROWSER.len(), with in ".{0,12}", cut in 0_usize..40) {
            let mut text = BROWSER.to_owned();
            if text.is_char_boundary(at) {
                let end = (at + cut).min(text.len());
                text.replace_range(at..end, &with);
            }
            let _ = parse(&text);
        }
    }
}
