//! The HTTP side of a connection: an upgrade to WebSocket on any path, two pages for operators, 404 for the rest.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tungstenite::handshake::machine::TryParse as _;
use tungstenite::handshake::server::{Request, create_response, write_response};
use tungstenite::http::StatusCode;

/// Longest request head, in bytes.
const MAX_HEAD_BYTES: usize = 8192;

const END: &[u8] = b"\r\n\r\n";

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A WebSocket; the 101 response is ready to be sent.
    Upgrade(Vec<u8>),
    /// Is the server alive?
    Health,
    /// Counters.
    Metrics,
    /// Something that is not here.
    Refused(StatusCode),
}

/// A request head, and what the peer had sent behind it.
#[derive(Debug)]
pub(super) struct Head {
    head: Vec<u8>,
    pub(super) rest: Vec<u8>,
}

/// Reads up to and including the empty line that ends the head.
///
/// # Errors
/// On end of stream, a read error, or a head over 8 KiB.
pub(super) async fn read_head<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Head> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let searched = head.len().saturating_sub(END.len() - 1);
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let end = head[searched..].windows(END.len()).position(|bytes| bytes == END);
        let whole = end.map(|at| searched + at + END.len());
        if whole.unwrap_or(head.len()) > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if let Some(whole) = whole {
            let rest = head.split_off(whole);
            return Ok(Head { head, rest });
        }
    }
}

/// Reads a request.
pub(super) fn wish(head: &Head) -> Wish {
    let parsed = Request::try_parse(&head.head).ok().flatten();
    let Some((_, request)) = parsed.filter(|(length, _)| *length == head.head.len()) else {
        return Wish::Refused(StatusCode::BAD_REQUEST);
    };
    if request.headers().contains_key("Upgrade") {
        return upgrade(&request);
    }
    match request.uri().path() {
        "/healthz" => Wish::Health,
        "/metrics" => Wish::Metrics,
        _ => Wish::Refused(StatusCode::NOT_FOUND),
    }
}

fn upgrade(request: &Request) -> Wish {
    let version = request.headers().get("Sec-WebSocket-Version");
    if version.is_none_or(|version| version != "13") {
        return Wish::Refused(StatusCode::UPGRADE_REQUIRED);
    }
    let mut response = Vec::new();
    let written = create_response(request)
        .ok()
        .and_then(|answer| write_response(&mut response, &answer).ok());
    match written {
        Some(()) => Wish::Upgrade(response),
        None => Wish::Refused(StatusCode::BAD_REQUEST),
    }
}

/// A whole response with a body.
pub(super) fn page(status: StatusCode, kind: &str, body: &str) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or("Refused");
    let version = match status {
        StatusCode::UPGRADE_REQUIRED => "Sec-WebSocket-Version: 13\r\n",
        _ => "",
    };
    format!(
        "HTTP/1.1 {} {reason}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{version}\r\n{body}",
        status.as_str(),
        body.len()
    )
    .into_bytes()
}

/// What a request for something that is not here gets.
pub(super) fn refusal(status: StatusCode) -> Vec<u8> {
    let error = match status {
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::SERVICE_UNAVAILABLE => "too_many_connections",
        _ => "bad_request",
    };
    page(status, "application/json", &format!("{{\"error\":\"{error}\"}}"))
}

/// Writes a response and ends the stream.
///
/// # Errors
/// When the socket fails.
pub(super) async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish_of(lines: &[&str]) -> Wish {
        let head = format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes();
        wish(&Head {
            head,
            rest: Vec::new(),
        })
    }

    const FIELDS: [&str; 4] = [
        "Host: signal.example.net:9099",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];

    #[test]
    fn any_path_is_upgraded_without_extensions() {
        for path in ["/", "/anything?x=1"] {
            let line = format!("GET {path} HTTP/1.1");
            let fields = [&[line.as_str()], &FIELDS[..], &["Sec-WebSocket-Version: 13"]].concat();
            let Wish::Upgrade(response) = wish_of(&fields) else {
                panic!("an upgrade");
            };
            let response = String::from_utf8(response).expect("text").to_lowercase();
            assert!(response.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="));
            assert!(!response.contains("extensions"));
        }
    }

    #[test]
    fn another_version_and_a_bad_key_are_refused() {
        let line = ["GET / HTTP/1.1"];
        let old = [&line[..], &FIELDS, &["Sec-WebSocket-Version: 8"]].concat();
        assert_eq!(wish_of(&old), Wish::Refused(StatusCode::UPGRADE_REQUIRED));
        let keyless = [&line[..], &FIELDS[..3], &["Sec-WebSocket-Version: 13"]].concat();
        assert_eq!(wish_of(&keyless), Wish::Refused(StatusCode::BAD_REQUEST));
        assert_eq!(wish_of(&["nonsense"]), Wish::Refused(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn there_are_two_pages() {
        let get = |path: &str| wish_of(&[format!("GET {path} HTTP/1.1").as_str(), FIELDS[0]]);
        assert_eq!(get("/healthz"), Wish::Health);
        assert_eq!(get("/metrics"), Wish::Metrics);
        assert_eq!(get("/"), Wish::Refused(StatusCode::NOT_FOUND));
        assert_eq!(get("/admin"), Wish::Refused(StatusCode::NOT_FOUND));
    }

    #[tokio::test]
    async fn a_head_ends_at_its_empty_line_or_at_its_limit() {
        let mut bytes = &b"GET / HTTP/1.1\r\n\r\n\x81"[..];
        let head = read_head(&mut bytes).await.expect("a head");
        assert_eq!(head.rest, b"\x81");
        let mut endless = &vec![b'x'; MAX_HEAD_BYTES + 1][..];
        let error = read_head(&mut endless).await.expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let mut short = &b"GET"[..];
        let error = read_head(&mut short).await.expect_err("cut off");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
