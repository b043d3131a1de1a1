//! RFC 6455 frames, as far as a server of live video needs them: writing whole binary frames, reading small text.
//!
//! [`ClientFrames`] reads what browsers send, in whatever pieces it arrives; its memory is bounded by one message of
//! the size it was made for and one control frame.

use super::{CloseReason, MAX_CLIENT_MESSAGE_BYTES};

/// Longest payload of a ping, pong or close frame (RFC 6455 section 5.5).
pub const MAX_CONTROL_BYTES: usize = 125;

/// Longest header of a frame sent by a server: it never masks.
pub const MAX_SERVER_HEADER_BYTES: usize = 10;

/// Longest header of a frame sent by a client.
const MAX_CLIENT_HEADER_BYTES: usize = 14;

const FIN: u8 = 0x80;
const RESERVED_BITS: u8 = 0x70;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// What a frame is (RFC 6455 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Goes on with a fragmented message.
    Continuation,
    /// Text.
    Text,
    /// Bytes.
    Binary,
    /// The end.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    const fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The header of an unfragmented server frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerHeader {
    bytes: [u8; MAX_SERVER_HEADER_BYTES],
    len: usize,
}

impl ServerHeader {
    /// The header before `payload_bytes` of payload.
    pub fn new(opcode: Opcode, payload_bytes: usize) -> Self {
        let mut bytes = [0; MAX_SERVER_HEADER_BYTES];
        bytes[0] = FIN | opcode.bits();
        let len = if let Some(short) = u8::try_from(payload_bytes).ok().filter(|len| *len < LENGTH_16) {
            bytes[1] = short;
            2
        } else if let Ok(medium) = u16::try_from(payload_bytes) {
            bytes[1] = LENGTH_16;
            bytes[2..4].copy_from_slice(&medium.to_be_bytes());
            4
        } else {
            bytes[1] = LENGTH_64;
            bytes[2..10].copy_from_slice(&(payload_bytes as u64).to_be_bytes());
            10
        };
        Self { bytes, len }
    }

    /// Its bytes on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Something whole that a client has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// A text message, valid UTF-8.
    Text(String),
    /// A ping; its payload goes back in a pong.
    Ping(Vec<u8>),
    /// A pong nobody has to do anything about.
    Pong,
    /// The client ends the connection, with the status code it gave.
    Close(Option<u16>),
}

/// The part of a frame that comes after its header.
#[derive(Clone, Copy, Debug)]
struct Body {
    opcode: Opcode,
    last: bool,
    mask: [u8; 4],
    length: usize,
    read: usize,
}

/// Reads client frames from a byte stream.
#[derive(Debug)]
pub struct ClientFrames {
    /// Longest message, in bytes.
    limit: usize,
    header: [u8; MAX_CLIENT_HEADER_BYTES],
    header_read: usize,
    body: Option<Body>,
    /// Payload of the text message under way, all fragments so far.
    message: Vec<u8>,
    /// True between the first and the last fragment of a message.
    fragmented: bool,
    control: Vec<u8>,
}

impl Default for ClientFrames {
    /// For viewers, who have little to say.
    fn default() -> Self {
        Self::with_limit(MAX_CLIENT_MESSAGE_BYTES)
    }
}

impl ClientFrames {
    /// Reads messages of up to `limit` bytes.
    pub const fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            header: [0; MAX_CLIENT_HEADER_BYTES],
            header_read: 0,
            body: None,
            message: Vec::new(),
            fragmented: false,
            control: Vec::new(),
        }
    }

    /// Takes bytes from the front of `input` until something is whole; `None` when `input` is used up.
    ///
    /// # Errors
    /// Why the connection must be closed; the reader is of no further use then.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<ClientEvent>, CloseReason> {
        loop {
            let Some(body) = &mut self.body else {
                if !self.read_header(input)? {
                    return Ok(None);
                }
                continue;
            };
            let take = (body.length - body.read).min(input.len());
            let (now, later) = input.split_at(take);
            let target = if body.opcode.is_control() {
                &mut self.control
            } else {
                &mut self.message
            };
            let position = body.read;
            target.extend(
                now.iter()
                    .enumerate()
                    .map(|(at, byte)| byte ^ body.mask[(position + at) % 4]),
            );
            body.read += take;
            *input = later;
            if body.read < body.length {
                return Ok(None);
            }
            let (opcode, last) = (body.opcode, body.last);
            self.body = None;
            if let Some(event) = self.finish_frame(opcode, last)? {
                return Ok(Some(event));
            }
        }
    }

    /// True once a header is complete.
    fn read_header(&mut self, input: &mut &[u8]) -> Result<bool, CloseReason> {
        while let Some((byte, rest)) = input.split_first() {
            self.header[self.header_read] = *byte;
            self.header_read += 1;
            *input = rest;
            if self.header_read == 2 {
                self.check_start()?;
            }
            if self.header_read >= 2 && self.header_read == self.header_bytes() {
                self.body = Some(self.parse_header()?);
                self.header_read = 0;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn header_bytes(&self) -> usize {
        let extended = match self.header[1] & !MASKED {
            LENGTH_16 => 2,
            LENGTH_64 => 8,
            _ => 0,
        };
        2 + extended + 4
    }

    /// Refuses what the first two bytes already show to be wrong.
    fn check_start(&self) -> Result<(), CloseReason> {
        let [first, second, ..] = self.header;
        let opcode = Opcode::from_bits(first & 0x0f).ok_or(CloseReason::ProtocolError)?;
        let (last, short_length) = (first & FIN != 0, second & !MASKED);
        let allowed = match opcode {
            Opcode::Continuation => self.fragmented,
            Opcode::Text | Opcode::Binary => !self.fragmented,
            Opcode::Close | Opcode::Ping | Opcode::Pong => {
                last && usize::from(short_length) <= MAX_CONTROL_BYTES
            }
        };
        if first & RESERVED_BITS != 0 || second & MASKED == 0 || !allowed {
            return Err(CloseReason::ProtocolError);
        }
        if opcode == Opcode::Binary {
            return Err(CloseReason::NotText);
        }
        Ok(())
    }

    fn parse_header(&mut self) -> Result<Body, CloseReason> {
        let header = &self.header[..self.header_read];
        let (lengths, mask) = header.split_at(header.len() - 4);
        let length = match lengths[1] & !MASKED {
            LENGTH_16 | LENGTH_64 => lengths[2..]
                .iter()
                .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)),
            short => u64::from(short),
        };
        // RFC 6455 section 5.2: the shortest form, and no more than 63 bits.
        let shortest = match lengths[1] & !MASKED {
            LENGTH_16 => length >= u64::from(LENGTH_16),
            LENGTH_64 => length > u64::from(u16::MAX) && length <= i64::MAX as u64,
            _ => true,
        };
        if !shortest {
            return Err(CloseReason::ProtocolError);
        }
        let opcode = Opcode::from_bits(header[0] & 0x0f).ok_or(CloseReason::ProtocolError)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if !opcode.is_control() {
            if length > self.limit - self.message.len() {
                return Err(CloseReason::TooLarge);
            }
            self.fragmented = true;
        }
        let mask = [mask[0], mask[1], mask[2], mask[3]];
        Ok(Body {
            opcode,
            last: header[0] & FIN != 0,
            mask,
            length,
            read: 0,
        })
    }

    fn finish_frame(&mut self, opcode: Opcode, last: bool) -> Result<Option<ClientEvent>, CloseReason> {
        match opcode {
            Opcode::Ping => Ok(Some(ClientEvent::Ping(std::mem::take(&mut self.control)))),
            Opcode::Pong => {
                self.control.clear();
                Ok(Some(ClientEvent::Pong))
            }
            Opcode::Close => close_event(&std::mem::take(&mut self.control)).map(Some),
            Opcode::Text | Opcode::Continuation | Opcode::Binary if last => {
                self.fragmented = false;
                let text = String::from_utf8(std::mem::take(&mut self.message));
                text.map(|text| Some(ClientEvent::Text(text)))
                    .map_err(|_| CloseReason::NotUtf8)
            }
            Opcode::Text | Opcode::Continuation | Opcode::Binary => Ok(None),
        }
    }
}

fn close_event(payload: &[u8]) -> Result<ClientEvent, CloseReason> {
    match payload {
        [] => Ok(ClientEvent::Close(None)),
        [high, low, text @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            // RFC 6455 section 7.4: some codes are never sent.
            if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
                return Err(CloseReason::ProtocolError);
            }
            std::str::from_utf8(text).map_err(|_| CloseReason::NotUtf8)?;
            Ok(ClientEvent::Close(Some(code)))
        }
        [_] => Err(CloseReason::ProtocolError),
    }
}

/// A whole close frame; `text` is cut to what a control frame can carry.
pub fn close_frame(code: Option<u16>, text: &str) -> Vec<u8> {
    let code = code.map(u16::to_be_bytes);
    let code = code.as_ref().map_or(&[][..], |code| &code[..]);
    let text = if code.is_empty() { "" } else { text };
    let text = &text.as_bytes()[..text.len().min(MAX_CONTROL_BYTES - 2)];
    control_frame(Opcode::Close, &[code, text].concat())
}

/// A whole pong frame for a ping with `payload`.
pub fn pong_frame(payload: &[u8]) -> Vec<u8> {
    control_frame(Opcode::Pong, payload)
}

fn control_frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    [ServerHeader::new(opcode, payload.len()).as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests;
