//! A WebSocket client by hand, which can also misbehave.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use crossdesk_core::video::websocket::{Opcode, ServerHeader};
use socket2::{Domain, Socket, Type};

use super::{GENERATION, PATIENCE};

pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;

/// What a server frame is, and its payload.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub first: u8,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The big-endian number at `at` of a CDV1 or CDN1 header.
    pub fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    pub fn sequence(&self) -> u32 {
        assert_eq!(self.first, BINARY, "{:?}", String::from_utf8_lossy(&self.payload));
        self.word(8)
    }

    pub fn is_keyframe(&self) -> bool {
        self.word(20) == 1
    }

    /// The status code of a close frame.
    pub fn close_code(&self) -> u16 {
        assert_eq!(self.first, CLOSE);
        u16::from_be_bytes(self.payload[..2].try_into().unwrap())
    }
}

pub struct Client {
    pub stream: TcpStream,
}

impl Client {
    pub fn connect(port: u16) -> Self {
        Self::over(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap())
    }

    /// A client whose kernel takes little ahead of its reads.
    pub fn connect_narrow(port: u16) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        socket
            .connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())
            .unwrap();
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends the usual request; the status line of the answer.
    pub fn handshake(&mut self, host: &str, origin: &str) -> String {
        self.send(request("/api/video", host, origin).as_bytes());
        self.head().lines().next().unwrap_or_default().to_owned()
    }

    /// Reads up to the end of a response head; shorter when the server closes.
    pub fn head(&mut self) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && self.stream.read(&mut byte).unwrap_or(0) == 1 {
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap()
    }

    pub fn frame(&mut self, first: u8, payload: &[u8]) {
        self.send(&masked(first, payload));
    }

    pub fn text(&mut self, text: &str) {
        self.frame(TEXT, text.as_bytes());
    }

    pub fn ack(&mut self, sequence: u32) {
        self.text(&ack_text(sequence));
    }

    /// The next frame of the server.
    pub fn next(&mut self) -> io::Result<Frame> {
        let mut start = [0; 2];
        self.stream.read_exact(&mut start)?;
        assert_eq!(start[1] & 0x80, 0, "servers do not mask");
        let length = match start[1] {
            126 => self.number::<2>()?,
            127 => self.number::<8>()?,
            short => u64::from(short),
        };
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload)?;
        Ok(Frame {
            first: start[0],
            payload,
        })
    }

    fn number<const N: usize>(&mut self) -> io::Result<u64> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// Reads a frame of video and acknowledges it.
    pub fn watch(&mut self) -> Frame {
        let frame = self.next().unwrap();
        self.ack(frame.sequence());
        frame
    }

    /// The code the server closes with, after whatever it had sent before; then it is gone.
    pub fn closed_with(&mut self) -> u16 {
        loop {
            let frame = self.next().unwrap();
            if frame.first == CLOSE {
                self.is_gone();
                return frame.close_code();
            }
        }
    }

    /// Waits for the end of the stream.
    pub fn is_gone(&mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
        }
    }
}

pub fn ack_text(sequence: u32) -> String {
    format!(r#"{{"type":"ack","generation":{GENERATION},"sequence":{sequence}}}"#)
}

pub fn request(path: &str, host: &str, origin: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nOrigin: {origin}\r\n\r\n"
    )
}

/// A client frame.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x5a, 0x01, 0xfe, 0x33];
    let mut bytes = ServerHeader::new(Opcode::Text, payload.len()).as_bytes().to_vec();
    bytes[0] = first;
    bytes[1] |= 0x80;
    bytes.extend_from_slice(&mask);
    bytes.extend(
        payload
            .iter()
            .zip(mask.into_iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
    bytes
}
