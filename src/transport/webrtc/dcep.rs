//! How data channels are opened (RFC 8832).

use bytes::{BufMut as _, BytesMut};
use sctp_proto::ReliabilityType;

const ACK: u8 = 2;
const OPEN: u8 = 3;
const UNORDERED: u8 = 0x80;
/// Longest label or protocol name taken from the other side, in bytes.
const MAX_NAME_BYTES: usize = 1024;

/// How hard a channel tries to deliver a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reliability {
    /// Until it has arrived.
    #[default]
    Full,
    /// At most so many repetitions.
    Retransmits(u16),
    /// At most so many milliseconds.
    Lifetime(u16),
}

impl Reliability {
    pub(super) fn parameters(self) -> (ReliabilityType, u32) {
        match self {
            Self::Full => (ReliabilityType::Reliable, 0),
            Self::Retransmits(count) => (ReliabilityType::Rexmit, count.into()),
            Self::Lifetime(milliseconds) => (ReliabilityType::Timed, milliseconds.into()),
        }
    }
}

/// What a data channel is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Its name for the applications; names may repeat.
    pub label: String,
    /// True when messages come out in the order in which they were sent.
    pub ordered: bool,
    /// How hard it tries.
    pub reliability: Reliability,
}

impl ChannelConfig {
    /// An ordered channel that delivers every message.
    pub fn reliable(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            ordered: true,
            reliability: Reliability::Full,
        }
    }
}

/// A message of the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dcep {
    Open(ChannelConfig),
    Ack,
}

/// Reads a message; `None` when it is damaged.
pub(super) fn parse(data: &[u8]) -> Option<Dcep> {
    if data.first() == Some(&ACK) {
        return Some(Dcep::Ack);
    }
    let (head, names) = data.split_first_chunk::<12>()?;
    let short = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (label, protocol) = (usize::from(short(8)), usize::from(short(10)));
    if head[0] != OPEN || label > MAX_NAME_BYTES || protocol > MAX_NAME_BYTES {
        return None;
    }
    let parameter = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    let parameter = u16::try_from(parameter).unwrap_or(u16::MAX);
    let reliability = match head[1] & !UNORDERED {
        0 => Reliability::Full,
        1 => Reliability::Retransmits(parameter),
        2 => Reliability::Lifetime(parameter),
        _ => return None,
    };
    names.get(label..label + protocol)?;
    Some(Dcep::Open(ChannelConfig {
        label: std::str::from_utf8(&names[..label]).ok()?.to_owned(),
        ordered: head[1] & UNORDERED == 0,
        reliability,
    }))
}

/// The message that opens a channel, and the one that says it is open.
pub(super) fn write(message: &Dcep) -> BytesMut {
    let mut out = BytesMut::new();
    match message {
        Dcep::Ack => out.put_u8(ACK),
        Dcep::Open(config) => {
            let (kind, parameter) = config.reliability.parameters();
            out.put_u8(OPEN);
            out.put_u8(kind as u8 | if config.ordered { 0 } else { UNORDERED });
            out.put_u16(0);
            out.put_u32(parameter);
            let label = &config.label.as_bytes()[..config.label.len().min(MAX_NAME_BYTES)];
            out.put_u16(label.len() as u16);
            out.put_u16(0);
            out.put_slice(label);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(label in "[a-zä-ü]{0,40}", ordered: bool, kind in 0..3, parameter: u16) {
            let reliability = match kind {
                0 => Reliability::Full,
                1 => Reliability::Retransmits(parameter),
                _ => Reliability::Lifetime(parameter),
            };
            let open = Dcep::Open(ChannelConfig { label, ordered, reliability });
            prop_assert_eq!(parse(&write(&open)), Some(open));
            prop_assert_eq!(parse(&write(&Dcep::Ack)), Some(Dcep::Ack));
        }

        #[test]
        fn no_bytes_make_it_panic(data: Vec<u8>, names in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&data);
            let _ = parse(&[&[3, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 9][..], &names].concat());
        }
    }
}
