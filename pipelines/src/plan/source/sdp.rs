//! Reading a session description (RFC 8866) far enough to receive its H.264 stream.

use super::RtpSource;
use super::parse::{DEFAULT_RTP_LATENCY, H264_CLOCK_RATE};

/// Longest session description read; real ones stay under two kilobytes.
pub const MAX_SDP_BYTES: usize = 64 * 1024;

/// One media section while it is read.
#[derive(Default)]
struct Media<'a> {
    port: u16,
    payload_types: Vec<u8>,
    host: Option<&'a str>,
    h264: Option<u8>,
    clock_rate: u32,
    parameters: Vec<(u8, &'a str)>,
}

/// The first H.264 stream a session description offers.
///
/// # Errors
/// A sentence saying what is missing.
pub fn receiver(text: &str) -> Result<RtpSource, String> {
    let mut session_host = None;
    let mut media: Option<Media<'_>> = None;
    let mut sections = Vec::new();
    if !text.lines().any(|line| line.trim_end() == "v=0") {
        return Err("the file is not a session description: it has no v=0 line".to_owned());
    }
    for line in text.lines() {
        let Some((kind, value)) = line.trim_end().split_once('=') else {
            continue;
        };
        match (kind, &mut media) {
            ("m", _) => {
                sections.extend(media.take());
                media = Some(section(value));
            }
            ("c", None) => session_host = connection(value),
            ("c", Some(media)) => media.host = connection(value),
            ("a", Some(media)) => media.attribute(value),
            _ => {}
        }
    }
    sections.extend(media);
    let found = sections.into_iter().find_map(|m| Some((m.h264?, m)));
    let (payload_type, media) = found.ok_or("the session description offers no H.264 video")?;
    if media.port == 0 {
        return Err("the session description gives its H.264 video no port".to_owned());
    }
    let host = media.host.or(session_host);
    let host = host.ok_or("the session description names no address (no usable c= line)")?;
    let parameters = media.parameters.iter().find(|(pt, _)| *pt == payload_type);
    Ok(RtpSource {
        host: host.to_owned(),
        port: media.port,
        payload_type: Some(payload_type),
        clock_rate: media.clock_rate,
        latency: DEFAULT_RTP_LATENCY,
        parameter_sets: parameters.and_then(|(_, list)| parameter_sets(list)),
    })
}

/// `video 5004 RTP/AVP 96 97`.
fn section(value: &str) -> Media<'_> {
    let mut words = value.split_ascii_whitespace();
    let video = words.next() == Some("video");
    let port = words.next().and_then(|port| port.split('/').next()?.parse().ok());
    let rtp = words.next().is_some_and(|profile| profile.starts_with("RTP/AVP"));
    Media {
        port: port.unwrap_or(0),
        payload_types: if video && rtp {
            words.filter_map(|pt| pt.parse().ok()).collect()
        } else {
            Vec::new()
        },
        clock_rate: H264_CLOCK_RATE,
        ..Media::default()
    }
}

/// `IN IP4 239.1.1.1/127`: the address without its time to live.
fn connection(value: &str) -> Option<&str> {
    let mut words = value.split_ascii_whitespace();
    let known = words.next() == Some("IN") && matches!(words.next(), Some("IP4" | "IP6"));
    let address = words.next()?.split('/').next()?;
    let legal = |c: char| c.is_ascii_alphanumeric() || ".:-_".contains(c);
    (known && address.chars().all(legal)).then_some(address)
}

impl<'a> Media<'a> {
    fn attribute(&mut self, value: &'a str) {
        let Some((name, value)) = value.split_once(':') else {
            return;
        };
        let Some((pt, rest)) = value.split_once(' ') else {
            return;
        };
        let Some(pt) = pt.parse().ok().filter(|pt| self.payload_types.contains(pt)) else {
            return;
        };
        match name {
            "rtpmap" if self.h264.is_none() => self.mapping(pt, rest),
            "fmtp" => self.parameters.push((pt, rest)),
            _ => {}
        }
    }

    fn mapping(&mut self, pt: u8, value: &str) {
        let mut parts = value.trim().split('/');
        if parts.next().is_some_and(|name| name.eq_ignore_ascii_case("H264")) {
            self.h264 = Some(pt);
            let rate = parts.next().and_then(|rate| rate.parse().ok());
            self.clock_rate = rate.filter(|rate| *rate > 0).unwrap_or(H264_CLOCK_RATE);
        }
    }
}

/// The value of `sprop-parameter-sets`, when it is base64 and commas.
fn parameter_sets(list: &str) -> Option<String> {
    let items = list.split(';').map(str::trim);
    let value = items
        .filter_map(|item| item.split_once('='))
        .find_map(|(key, value)| key.eq_ignore_ascii_case("sprop-parameter-sets").then_some(value))?;
    let legal = |c: char| c.is_ascii_alphanumeric() || "+/=,".contains(c);
    (!value.is_empty() && value.chars().all(legal)).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMERA: &str = "v=0\r\no=- 0 0 IN IP4 10.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
        m=audio 5002 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n\
        m=video 5004 RTP/AVP 26 97\r\na=rtpmap:97 H264/90000\r\n\
        a=fmtp:97 packetization-mode=1; sprop-parameter-sets=Z0LAHtk=,aMuDyyA=; profile-level-id=42C01E\r\n";

    #[test]
    fn the_h264_stream_is_found_with_its_parameter_sets() {
        let source = receiver(CAMERA).unwrap();
        assert_eq!((source.host.as_str(), source.port), ("127.0.0.1", 5004));
        assert_eq!(source.payload_type, Some(97));
        assert_eq!(source.parameter_sets.as_deref(), Some("Z0LAHtk=,aMuDyyA="));
    }

    #[test]
    fn a_sections_own_address_wins_and_a_group_loses_its_ttl() {
        let text = CAMERA.replace("a=rtpmap:97", "c=IN IP4 239.1.2.3/16\r\na=rtpmap:97");
        assert_eq!(receiver(&text).unwrap().host, "239.1.2.3");
    }

    #[test]
    fn what_is_missing_is_named() {
        let cases = [
            ("hello".to_owned(), "v=0"),
            (CAMERA.replace("H264", "H265"), "no H.264"),
            (CAMERA.replace("video 5004", "video 0"), "no port"),
            (CAMERA.replace("c=IN IP4 127.0.0.1\r\n", ""), "address"),
            (CAMERA.replace("c=IN IP4 127.0.0.1", "c=IN IP4 a\"b"), "address"),
        ];
        for (text, expected) in cases {
            let reason = receiver(&text).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
