//! The HTTP side of a connection: one request, answered with 101 or an empty refusal.
//!
//! The request head is read here, so that bytes which follow it reach the frame reader; parsing and the key
//! computation are tungstenite's.

use std::io;

use crossdesk_core::video::MAX_HANDSHAKE_BYTES;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tungstenite::handshake::machine::TryParse as _;
use tungstenite::handshake::server::{Request, create_response, write_response};
use tungstenite::http::StatusCode;

/// The only path there is.
pub(super) const PATH: &str = "/api/video";

/// A head that was read, and what the peer had sent behind it.
#[derive(Debug)]
pub(super) struct Head {
    head: Vec<u8>,
    /// The first bytes after the head.
    pub(super) rest: Vec<u8>,
}

/// An acceptable request.
#[derive(Debug)]
pub(super) struct Upgrade {
    /// The `Origin` header.
    pub(super) origin: String,
    /// The 101 response.
    pub(super) response: Vec<u8>,
}

/// Reads up to and including the empty line that ends the head.
///
/// # Errors
/// On end of stream, a read error, or a head over [`MAX_HANDSHAKE_BYTES`].
pub(super) async fn read_head(stream: &mut TcpStream) -> io::Result<Head> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let searched = head.len().saturating_sub(END.len() - 1);
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(at) = head[searched..].windows(END.len()).position(|bytes| bytes == END) {
            let rest = head.split_off(searched + at + END.len());
            return if head.len() <= MAX_HANDSHAKE_BYTES {
                Ok(Head { head, rest })
            } else {
                too_long()
            };
        }
        if head.len() > MAX_HANDSHAKE_BYTES {
            return too_long();
        }
    }
}

const END: &[u8] = b"\r\n\r\n";

fn too_long() -> io::Result<Head> {
    Err(io::ErrorKind::FileTooLarge.into())
}

/// Checks request line, `Host`, the RFC 6455 fields and `Origin`, in this order.
///
/// `host` is the one name of this listener; `knows_origin` says whether a ticket was granted to an origin.
///
/// # Errors
/// The status to refuse with.
pub(super) fn check(
    head: &Head,
    host: &str,
    knows_origin: impl Fn(&str) -> bool,
) -> Result<Upgrade, StatusCode> {
    let line = head.head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    // Compared as bytes, so that no form of the same path (absolute, escaped, with a query) gets through.
    if line != format!("GET {PATH} HTTP/1.1").as_bytes() {
        return Err(StatusCode::NOT_FOUND);
    }
    let parsed = Request::try_parse(&head.head).ok().flatten();
    let (length, request) = parsed.ok_or(StatusCode::BAD_REQUEST)?;
    if length != head.head.len() {
        return Err(StatusCode::BAD_REQUEST);
    }
    if only(&request, "Host") != Some(host) {
        return Err(StatusCode::FORBIDDEN);
    }
    if only(&request, "Sec-WebSocket-Version") != Some("13") {
        return Err(StatusCode::UPGRADE_REQUIRED);
    }
    let answer = create_response(&request).map_err(|_| StatusCode::BAD_REQUEST)?;
    let origin = only(&request, "Origin").filter(|origin| knows_origin(origin));
    let origin = origin.ok_or(StatusCode::FORBIDDEN)?.to_owned();
    let mut response = Vec::new();
    write_response(&mut response, &answer).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(Upgrade { origin, response })
}

/// The value of a header that is there exactly once.
fn only<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let mut values = request.headers().get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// An answer without content. It names the version where that was wrong, as RFC 6455 section 4.4 asks.
pub(super) fn refusal(status: StatusCode) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or("Refused");
    let version = if status == StatusCode::UPGRADE_REQUIRED {
        "Sec-WebSocket-Version: 13\r\n"
    } else {
        ""
    };
    format!(
        "HTTP/1.1 {} {reason}\r\nConnection: close\r\nContent-Length: 0\r\n{version}\r\n",
        status.as_str()
    )
    .into_bytes()
}

/// Writes `bytes`, which are few.
///
/// # Errors
/// When the socket fails.
pub(super) async fn answer(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "127.0.0.1:4242";
    const ORIGIN: &str = "http://127.0.0.1:80";

    fn request(line: &str, fields: &[&str]) -> Head {
        let head = [&[line], fields, &["", ""]].concat().join("\r\n").into_bytes();
        Head {
            head,
            rest: Vec::new(),
        }
    }

    fn status(line: &str, fields: &[&str]) -> Result<String, u16> {
        let upgrade = check(&request(line, fields), HOST, |origin| origin == ORIGIN);
        upgrade
            .map(|upgrade| String::from_utf8(upgrade.response).unwrap())
            .map_err(|status| status.as_u16())
    }

    const LINE: &str = "GET /api/video HTTP/1.1";
    const FIELDS: [&str; 6] = [
        "Host: 127.0.0.1:4242",
        "Upgrade: websocket",
        "Connection: keep-alive, Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "Origin: http://127.0.0.1:80",
    ];

    fn with(name: &str, replacement: &[&'static str]) -> Vec<&'static str> {
        let mut fields: Vec<_> = FIELDS
            .into_iter()
            .filter(|field| !field.starts_with(name))
            .collect();
        assert_eq!(fields.len(), FIELDS.len() - 1);
        fields.extend(replacement);
        fields
    }

    #[test]
    fn a_browsers_request_is_upgraded_without_extensions() {
        let mut fields = FIELDS.to_vec();
        fields.push("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits");
        fields.push("Sec-WebSocket-Protocol: video");
        let response = status(LINE, &fields).unwrap();
        assert!(
            response.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
            "{response}"
        );
        assert!(
            response
                .to_lowercase()
                .contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="),
            "{response}"
        );
        assert!(!response.to_lowercase().contains("extensions"), "{response}");
        assert!(
            !response.to_lowercase().contains("sec-websocket-protocol"),
            "{response}"
        );
    }

    #[test]
    fn only_the_literal_path_exists() {
        for line in [
            "GET / HTTP/1.1",
            "GET /api/video/ HTTP/1.1",
            "GET /api/video?ticket=x HTTP/1.1",
            "GET /API/video HTTP/1.1",
            "GET //api/video HTTP/1.1",
            "GET /api/%76ideo HTTP/1.1",
            "GET http://127.0.0.1:4242/api/video HTTP/1.1",
            "GET /api/video HTTP/1.0",
            "POST /api/video HTTP/1.1",
            "get /api/video HTTP/1.1",
        ] {
            assert_eq!(status(line, &FIELDS), Err(404), "{line}");
        }
    }

    #[test]
    fn only_the_literal_host_is_served() {
        for host in [
            "Host: localhost:4242",
            "Host: 127.0.0.1",
            "Host: 127.0.0.1:4243",
            "Host: 127.0.0.1:04242",
            "Host: 127.0.0.1.evil.test:4242",
            "Host: evil.test:4242",
            "Host: [::1]:4242",
            "Host: 127.1:4242",
            "Host: 127.0.0.1:4242, 127.0.0.1:4242",
            "Host:",
        ] {
            assert_eq!(status(LINE, &with("Host", &[host])), Err(403), "{host}");
        }
        assert_eq!(status(LINE, &with("Host", &[])), Err(403));
        assert_eq!(
            status(
                LINE,
                &with("Host", &["Host: 127.0.0.1:4242", "host: 127.0.0.1:4242"])
            ),
            Err(403)
        );
    }

    #[test]
    fn rfc_6455_fields_are_required() {
        assert_eq!(
            status(
                LINE,
                &with("Sec-WebSocket-Version", &["Sec-WebSocket-Version: 8"])
            ),
            Err(426)
        );
        assert_eq!(
            status(
                LINE,
                &with("Sec-WebSocket-Version", &["Sec-WebSocket-Version: 13, 8"])
            ),
            Err(426)
        );
        assert_eq!(status(LINE, &with("Sec-WebSocket-Version", &[])), Err(426));
        assert_eq!(
            status(LINE, &with("Sec-WebSocket-Key", &["Sec-WebSocket-Key: AAAA"])),
            Err(400)
        );
        assert_eq!(status(LINE, &with("Sec-WebSocket-Key", &[])), Err(400));
        assert_eq!(status(LINE, &with("Upgrade", &["Upgrade: h2c"])), Err(400));
        assert_eq!(
            status(LINE, &with("Connection", &["Connection: close"])),
            Err(400)
        );
    }

    #[test]
    fn an_origin_nobody_was_granted_is_refused() {
        assert_eq!(
            status(LINE, &with("Origin", &["Origin: http://127.0.0.1:81"])),
            Err(403)
        );
        assert_eq!(
            status(LINE, &with("Origin", &["Origin: http://evil.test"])),
            Err(403)
        );
        assert_eq!(status(LINE, &with("Origin", &[])), Err(403));
        assert_eq!(status(LINE, &with("Origin", &[FIELDS[5], FIELDS[5]])), Err(403));
    }

    #[test]
    fn broken_heads_are_refused() {
        assert_eq!(status(LINE, &with("Host", &["Host : 127.0.0.1:4242"])), Err(400));
        assert_eq!(
            status(LINE, &with("Host", &["Host: 127.0.0.1:4242\n\nX: y"])),
            Err(400)
        );
        assert_eq!(status(LINE, &["no colon"]), Err(400));
    }

    #[test]
    fn a_refusal_has_no_content() {
        assert_eq!(
            String::from_utf8(refusal(StatusCode::UPGRADE_REQUIRED)).unwrap(),
            "HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\nContent-Length: 0\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
    }
}
