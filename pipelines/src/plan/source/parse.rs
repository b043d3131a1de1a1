//! Reading the text of `--source`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crossdesk_core::units::{FrameRate, PixelSize};

use super::{Bitrate, FileSource, RtpSource, RtspSource, SourceSpec, TestSource};

/// Longest text accepted; an operating system path is at most 4096 bytes, three bytes each when escaped.
const MAX_TEXT_BYTES: usize = 16 * 1024;
/// Smallest edge of a generated picture: one macroblock.
const MIN_EDGE: u32 = 16;
/// Largest edge of a picture anywhere (automation protocol, "Binary messages and flow control").
const MAX_EDGE: u32 = 8192;
/// Most pixels of a picture anywhere (same place).
const MAX_PIXELS: u64 = 16_777_216;
/// More than any display shows, and the point where the timer's resolution starts to matter.
const MAX_FPS: u32 = 240;
/// Port of an RTSP address that names none (RFC 7826 section 22.14).
const RTSP_PORT: u16 = 554;
/// The same over TLS.
const RTSPS_PORT: u16 = 322;
/// RTP clock of H.264 (RFC 6184 section 8.2.1).
pub(super) const H264_CLOCK_RATE: u32 = 90_000;
/// A missing packet is waited for this long: a LAN reorders within it, and nobody sees it.
pub(super) const DEFAULT_RTP_LATENCY: Duration = Duration::from_millis(50);
/// More waiting than this is no longer live.
const MAX_RTP_LATENCY_MS: u32 = 2000;

/// Why the text of `--source` is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpecError(String);

impl fmt::Display for SourceSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceSpecError {}

type Parsed<T> = Result<T, SourceSpecError>;

fn refuse<T>(reason: impl Into<String>) -> Parsed<T> {
    Err(SourceSpecError(reason.into()))
}

pub(super) fn parse(text: &str) -> Parsed<SourceSpec> {
    if text.is_empty() {
        return refuse("the source is empty; try test: or file:PATH");
    }
    if text.len() > MAX_TEXT_BYTES {
        return refuse("the source is longer than 16384 bytes");
    }
    if text.chars().any(char::is_control) {
        return refuse("the source holds a control character");
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return file_or_sdp(text);
    };
    match scheme.to_ascii_lowercase().as_str() {
        "file" => file_or_sdp(rest),
        "sdp" => sdp(rest),
        "test" => test(rest),
        "rtp" => rtp(rest),
        "rtsp" | "rtspt" | "rtspu" => rtsp(text, rest, RTSP_PORT),
        "rtsps" => rtsp(text, rest, RTSPS_PORT),
        other => refuse(format!(
            "unknown source scheme {other:?}; known are file:, rtsp://, rtp://, sdp: and test: \
             (a file of that name is written file:NAME)"
        )),
    }
}

/// Splits `scheme:rest`; a single letter before the colon is a drive, not a scheme.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut chars = scheme.chars();
    let first = chars.next()?.is_ascii_alphabetic();
    let all = chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    (scheme.len() > 1 && first && all).then_some((scheme, rest))
}

fn file_or_sdp(rest: &str) -> Parsed<SourceSpec> {
    if rest.to_ascii_lowercase().ends_with(".sdp") {
        return sdp(rest);
    }
    let (name, once) = match rest.strip_suffix("?once") {
        Some(name) => (name, true),
        None => (rest, false),
    };
    let candidates = paths(name)?;
    Ok(SourceSpec::File(FileSource { candidates, once }))
}

fn sdp(rest: &str) -> Parsed<SourceSpec> {
    Ok(SourceSpec::Sdp(FileSource {
        candidates: paths(rest)?,
        once: false,
    }))
}

/// The names a path may mean: as written, then decoded; after `//` it is a URI and only decoded.
fn paths(name: &str) -> Parsed<Vec<PathBuf>> {
    if name.is_empty() {
        return refuse("the source names no file");
    }
    let Some(authority_and_path) = name.strip_prefix("//") else {
        let literal = PathBuf::from(name);
        let decoded = percent_decode(name).and_then(path_from_bytes).ok();
        let decoded = decoded.filter(|path| *path != literal);
        return Ok(std::iter::once(literal).chain(decoded).collect());
    };
    let slash = authority_and_path.find('/');
    let Some((host, path)) = slash.map(|at| authority_and_path.split_at(at)) else {
        return refuse("a file URI is written file:///absolute/path");
    };
    if !(host.is_empty() || host.eq_ignore_ascii_case("localhost")) {
        return refuse("a file URI must not name another host; write file:///absolute/path");
    }
    Ok(vec![path_from_bytes(percent_decode(path)?)?])
}

fn percent_decode(text: &str) -> Parsed<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push(u8::try_from(high * 16 + low).unwrap_or(0)),
            _ => return refuse("a % in a file URI must be followed by two hexadecimal digits"),
        }
    }
    if out.contains(&0) {
        return refuse("a file name cannot hold a NUL character");
    }
    Ok(out)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "fails on systems whose paths are text")]
fn path_from_bytes(bytes: Vec<u8>) -> Parsed<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn path_from_bytes(bytes: Vec<u8>) -> Parsed<PathBuf> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(_) => refuse("the file name is not UTF-8"),
    }
}

/// Host and port of `//host:port/...`, checked; user information is refused.
struct Authority<'a> {
    host: &'a str,
    port: Option<u16>,
    /// What follows, from the first `/`, `?` or `#`.
    rest: &'a str,
}

fn authority<'a>(scheme: &str, rest: &'a str) -> Parsed<Authority<'a>> {
    let Some(rest) = rest.strip_prefix("//") else {
        return refuse(format!("an {scheme} source is written {scheme}://HOST:PORT"));
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    // A password may hold an unescaped slash, so an at sign later in the text is suspicious as well.
    if authority.contains('@') || (authority.contains(':') && rest.contains('@') && !port_follows(authority))
    {
        return refuse("credentials do not belong in the address; give them on the password descriptor");
    }
    let (host, port) = match authority
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'))
    {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, port.strip_prefix(':').or(Some("bad"))),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~:%".contains(c);
    if host.is_empty() || !host.chars().all(legal) {
        return refuse(format!("the {scheme} address names no valid host"));
    }
    let port = match port.map(str::parse::<u16>) {
        None => None,
        Some(Ok(port)) if port > 0 => Some(port),
        Some(_) => return refuse(format!("the {scheme} port must be a number from 1 to 65535")),
    };
    Ok(Authority { host, port, rest })
}

fn port_follows(authority: &str) -> bool {
    authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

fn rtsp(text: &str, rest: &str, default_port: u16) -> Parsed<SourceSpec> {
    let address = authority("rtsp", rest)?;
    if text.contains(' ') {
        return refuse("an rtsp address cannot hold a space; write %20");
    }
    Ok(SourceSpec::Rtsp(RtspSource {
        uri: text.to_owned(),
        host: address.host.to_owned(),
        port: address.port.unwrap_or(default_port),
    }))
}

fn rtp(rest: &str) -> Parsed<SourceSpec> {
    let address = authority("rtp", rest)?;
    let Some(port) = address.port else {
        return refuse("an rtp source needs a port: rtp://HOST:PORT");
    };
    let mut source = RtpSource {
        host: address.host.to_owned(),
        port,
        payload_type: None,
        clock_rate: H264_CLOCK_RATE,
        latency: DEFAULT_RTP_LATENCY,
        parameter_sets: None,
    };
    let query = address.rest.strip_prefix('/').unwrap_or(address.rest);
    for (key, value) in options("rtp", query)? {
        match key {
            "pt" => source.payload_type = Some(narrow(number(key, value, 0, 127)?)),
            "latency" => {
                source.latency = Duration::from_millis(number(key, value, 0, MAX_RTP_LATENCY_MS)?.into());
            }
            _ => return unknown("rtp", key, "pt, latency"),
        }
    }
    Ok(SourceSpec::Rtp(source))
}

fn narrow(value: u32) -> u8 {
    u8::try_from(value).expect("bounded to 127 by the caller")
}

fn test(rest: &str) -> Parsed<SourceSpec> {
    let mut size = PixelSize::new(1920, 1080);
    let (mut fps, mut gop, mut kbit, mut slices, mut frames) = (60, None, None, 0, None);
    for (key, value) in options("test", rest.trim_start_matches('/'))? {
        match key {
            "size" => size = picture_size(value)?,
            "fps" => fps = number(key, value, 1, MAX_FPS)?,
            "gop" => gop = Some(number(key, value, 1, 100_000)?),
            "bitrate" => kbit = Some(number(key, value, 100, 1_000_000)?),
            "slices" => slices = number(key, value, 0, 32)?,
            "frames" => frames = Some(u64::from(number(key, value, 1, u32::MAX)?)),
            "pattern" if value == "desktop" => {}
            "pattern" => return refuse(format!("unknown test pattern {value:?}; known is desktop")),
            _ => return unknown("test", key, "size, fps, pattern, gop, bitrate, slices, frames"),
        }
    }
    Ok(SourceSpec::Test(TestSource {
        size,
        rate: FrameRate { num: fps, den: 1 },
        // One second, so that someone who joins late waits well under a second and a half.
        gop: gop.unwrap_or(fps),
        bitrate: Bitrate::from_kbit(kbit.unwrap_or_else(|| default_kbit(size, fps))),
        slices,
        frames,
    }))
}

/// Enough for crisp text: a tenth of a bit for each pixel at 60 pictures a second, more when there are fewer.
fn default_kbit(size: PixelSize, fps: u32) -> u32 {
    let pixels_per_second = size.area() * u64::from(fps.max(30));
    u32::try_from(pixels_per_second / 10_000)
        .unwrap_or(u32::MAX)
        .clamp(500, 200_000)
}

fn picture_size(value: &str) -> Parsed<PixelSize> {
    let edges = value.split_once(['x', 'X']);
    let Some((Ok(width), Ok(height))) = edges.map(|(w, h)| (decimal(w), decimal(h))) else {
        return refuse(format!("size={value:?} is not WIDTHxHEIGHT"));
    };
    let size = PixelSize::new(width, height);
    let in_range = |edge| (MIN_EDGE..=MAX_EDGE).contains(&edge);
    if !in_range(width) || !in_range(height) || size.area() > MAX_PIXELS {
        return refuse("size must be between 16x16 and 8192x8192, with at most 16777216 pixels");
    }
    if size != size.even() {
        return refuse("size must be even in both directions");
    }
    Ok(size)
}

fn decimal(text: &str) -> Result<u32, ()> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or(())
}

fn number(key: &str, value: &str, min: u32, max: u32) -> Parsed<u32> {
    match decimal(value) {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        _ => refuse(format!("{key} must be a whole number from {min} to {max}")),
    }
}

fn unknown<T>(scheme: &str, key: &str, known: &str) -> Parsed<T> {
    refuse(format!("unknown {scheme} option {key:?}; known are {known}"))
}

/// The `key=value` pairs of a query; the question mark is required, each key may come once.
fn options<'a>(scheme: &str, query: &'a str) -> Parsed<Vec<(&'a str, &'a str)>> {
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let Some(query) = query.strip_prefix('?') else {
        return refuse(format!("{scheme} options start with a question mark"));
    };
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for item in query.split('&').filter(|item| !item.is_empty()) {
        let Some((key, value)) = item.split_once('=') else {
            return refuse(format!("{scheme} option {item:?} is not written name=value"));
        };
        if pairs.iter().any(|(earlier, _)| *earlier == key) {
            return refuse(format!("{scheme} option {key:?} is given twice"));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests;
