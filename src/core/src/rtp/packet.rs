//! RTP packets (RFC 3550, section 5.1).

use bytes::{BufMut as _, Bytes, BytesMut};

/// Bytes of the fixed header.
pub const HEADER_BYTES: usize = 12;

/// One packet without padding, contributing sources and header extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What the payload is, as negotiated; 0 to 127.
    pub payload_type: u8,
    /// For video: the last packet of an access unit.
    pub marker: bool,
    /// Counts packets, modulo 2^16.
    pub sequence: u16,
    /// Media time in units of the negotiated clock (90 kHz for video), modulo 2^32.
    pub timestamp: u32,
    /// Which stream it belongs to.
    pub ssrc: u32,
    /// What is carried.
    pub payload: Bytes,
}

impl Packet {
    /// Reads a packet, skipping contributing sources and header extension; `None` when it is none.
    pub fn parse(data: &Bytes) -> Option<Self> {
        let head: &[u8; HEADER_BYTES] = data.first_chunk()?;
        let [flags, kind, rest @ ..] = head;
        if flags >> 6 != 2 {
            return None;
        }
        let mut start = HEADER_BYTES + 4 * usize::from(flags & 0x0f);
        if flags & 0x10 != 0 {
            let extension: &[u8; 4] = data.get(start..)?.first_chunk()?;
            start += 4 + 4 * usize::from(u16::from_be_bytes([extension[2], extension[3]]));
        }
        let padding = if flags & 0x20 != 0 {
            usize::from(*data.last()?)
        } else {
            0
        };
        let end = data.len().checked_sub(padding).filter(|end| *end >= start)?;
        let word = |at: usize| u32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        Some(Self {
            payload_type: kind & 0x7f,
            marker: kind & 0x80 != 0,
            sequence: u16::from_be_bytes([rest[0], rest[1]]),
            timestamp: word(2),
            ssrc: word(6),
            payload: data.slice(start..end),
        })
    }

    /// Header and payload as they go on the wire.
    pub fn to_bytes(&self) -> BytesMut {
        let mut out = BytesMut::with_capacity(HEADER_BYTES + self.payload.len());
        out.put_u8(0x80);
        out.put_u8(self.payload_type & 0x7f | u8::from(self.marker) << 7);
        out.put_u16(self.sequence);
        out.put_u32(self.timestamp);
        out.put_u32(self.ssrc);
        out.put_slice(&self.payload);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn extension_sources_and_padding_are_skipped() {
        let wire = [
            &[0xb1, 0xe0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 1][..],
            &[0, 0, 0, 5],
            &[0xbe, 0xde, 0, 1, 1, 2, 3, 4],
            &[42, 43],
            &[0, 0, 3],
        ]
        .concat();
        let packet = Packet::parse(&Bytes::from(wire)).unwrap();
        assert_eq!(
            (packet.payload_type, packet.marker, packet.sequence),
            (96, true, 7)
        );
        assert_eq!((packet.timestamp, packet.ssrc), (9, 1));
        assert_eq!(&packet.payload[..], [42, 43]);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            payload_type in 0_u8..128, marker: bool, sequence: u16, timestamp: u32, ssrc: u32, payload: Vec<u8>,
        ) {
            let packet = Packet { payload_type, marker, sequence, timestamp, ssrc, payload: payload.into() };
            prop_assert_eq!(Packet::parse(&packet.to_bytes().freeze()), Some(packet));
        }

        #[test]
        fn no_bytes_make_it_panic(data: Vec<u8>) {
            let _ = Packet::parse(&data.into());
        }
    }
}
