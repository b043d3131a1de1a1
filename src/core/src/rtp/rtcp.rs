//! Feedback and reports (RTCP: RFC 3550 section 6, RFC 4585, RFC 5104, REMB draft).

use bytes::{BufMut as _, BytesMut};

/// Packet types.
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const TRANSPORT_FEEDBACK: u8 = 205;
const PAYLOAD_FEEDBACK: u8 = 206;
/// Formats of feedback.
const NACK: u8 = 1;
const PLI: u8 = 1;
const FIR: u8 = 4;
const APPLICATION: u8 = 15;

/// Most sequence numbers read from or written to one compound packet; a longer wish is sent in parts.
pub const MAX_NACKS: usize = 1024;

/// What a receiver says about one stream (RFC 3550, section 6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The stream.
    pub ssrc: u32,
    /// Packets lost since the report before, in 1/256 of those expected.
    pub fraction_lost: u8,
    /// Packets lost since the beginning; 24 bits on the wire.
    pub lost: i32,
    /// Highest sequence number received, extended by the number of cycles.
    pub highest: u32,
    /// Interarrival jitter in units of the stream's clock.
    pub jitter: u32,
    /// The middle 32 bits of the time in the last sender report; 0 when there was none.
    pub last_report: u32,
    /// Time since that report arrived, in 1/65536 s.
    pub delay: u32,
}

/// One statement of a compound packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// What a sender has sent.
    Sender {
        /// The stream.
        ssrc: u32,
        /// NTP time, 32.32 fixed point.
        ntp: u64,
        /// The same moment on the stream's clock.
        timestamp: u32,
        /// Packets sent.
        packets: u32,
        /// Payload bytes sent.
        octets: u32,
    },
    /// What a receiver has received.
    Block(ReportBlock),
    /// These packets are missing.
    Nack {
        /// The stream.
        ssrc: u32,
        /// Their sequence numbers.
        sequences: Vec<u16>,
    },
    /// A picture was lost: a key frame is wanted.
    PictureLoss {
        /// The stream.
        ssrc: u32,
    },
    /// A key frame is wanted; repeated with the same number until it comes.
    FullIntra {
        /// The stream.
        ssrc: u32,
        /// Command sequence number.
        number: u8,
    },
    /// The receiver's estimate of what the path carries.
    Remb {
        /// Bits per second.
        bitrate: u64,
    },
}

/// Reads a compound packet; what cannot be read is left out, and so is everything behind it.
pub fn parse(data: &[u8]) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut rest = data;
    while let Some((head, _)) = rest.split_first_chunk::<4>() {
        let bytes = 4 * (usize::from(u16::from_be_bytes([head[2], head[3]])) + 1);
        let Some((packet, behind)) = rest.split_at_checked(bytes).filter(|_| head[0] >> 6 == 2) else {
            break;
        };
        parse_one(head[0] & 0x1f, head[1], &packet[4..], &mut statements);
        rest = behind;
    }
    statements
}

/// One packet; `count` is its five-bit field: a number of blocks, or a format.
fn parse_one(count: u8, kind: u8, body: &[u8], out: &mut Vec<Statement>) {
    match (kind, count) {
        (SENDER_REPORT, count) => {
            if let (Some(ssrc), Some(high), Some(low)) = (word(body, 0), word(body, 1), word(body, 2))
                && let (Some(timestamp), Some(packets), Some(octets)) =
                    (word(body, 3), word(body, 4), word(body, 5))
            {
                out.push(Statement::Sender {
                    ssrc,
                    ntp: u64::from(high) << 32 | u64::from(low),
                    timestamp,
                    packets,
                    octets,
                });
                blocks(count, &body[24..], out);
            }
        }
        (RECEIVER_REPORT, count) => blocks(count, body.get(4..).unwrap_or_default(), out),
        (TRANSPORT_FEEDBACK, NACK) => nacks(body, out),
        (PAYLOAD_FEEDBACK, PLI) => {
            out.extend(word(body, 1).map(|ssrc| Statement::PictureLoss { ssrc }));
        }
        (PAYLOAD_FEEDBACK, FIR) => {
            for entry in body.get(8..).unwrap_or_default().chunks_exact(8) {
                let ssrc = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
                let number = entry[4];
                out.push(Statement::FullIntra { ssrc, number });
            }
        }
        (PAYLOAD_FEEDBACK, APPLICATION) => remb(body, out),
        _ => {}
    }
}

fn word(body: &[u8], index: usize) -> Option<u32> {
    let bytes = body.get(4 * index..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

fn blocks(count: u8, body: &[u8], out: &mut Vec<Statement>) {
    for block in body.chunks_exact(24).take(usize::from(count)) {
        let word = |index| word(block, index).unwrap_or_default();
        let loss = word(1);
        out.push(Statement::Block(ReportBlock {
            ssrc: word(0),
            fraction_lost: (loss >> 24) as u8,
            // 24 bits with a sign.
            lost: (loss << 8).cast_signed() >> 8,
            highest: word(2),
            jitter: word(3),
            last_report: word(4),
            delay: word(5),
        }));
    }
}

fn nacks(body: &[u8], out: &mut Vec<Statement>) {
    let Some(ssrc) = word(body, 1) else { return };
    let mut sequences = Vec::new();
    for entry in body.get(8..).unwrap_or_default().chunks_exact(4) {
        let first = u16::from_be_bytes([entry[0], entry[1]]);
        let following = u16::from_be_bytes([entry[2], entry[3]]);
        sequences.push(first);
        let more = (0..16).filter(|bit| following >> bit & 1 == 1);
        sequences.extend(more.map(|bit| first.wrapping_add(bit + 1)));
        if sequences.len() >= MAX_NACKS {
            break;
        }
    }
    sequences.truncate(MAX_NACKS);
    if !sequences.is_empty() {
        out.push(Statement::Nack { ssrc, sequences });
    }
}

fn remb(body: &[u8], out: &mut Vec<Statement>) {
    if let Some(fields) = body.get(8..16)
        && fields.starts_with(b"REMB")
    {
        let (exponent, mantissa) = (fields[5] >> 2, u64::from(fields[5] & 3));
        let mantissa = mantissa << 16 | u64::from(fields[6]) << 8 | u64::from(fields[7]);
        let bitrate = mantissa.saturating_mul(1 << exponent);
        out.push(Statement::Remb { bitrate });
    }
}

/// Appends a report about what was received by `ssrc`; at most 31 blocks.
pub fn write_receiver_report(ssrc: u32, reports: &[ReportBlock], out: &mut BytesMut) {
    let reports = &reports[..reports.len().min(31)];
    head(reports.len() as u8, RECEIVER_REPORT, 1 + 6 * reports.len(), out);
    out.put_u32(ssrc);
    for report in reports {
        out.put_u32(report.ssrc);
        let lost = report.lost.clamp(-0x80_0000, 0x7f_ffff).cast_unsigned() & 0xff_ffff;
        out.put_u32(u32::from(report.fraction_lost) << 24 | lost);
        out.put_u32(report.highest);
        out.put_u32(report.jitter);
        out.put_u32(report.last_report);
        out.put_u32(report.delay);
    }
}

/// Appends a sender's report without blocks.
pub fn write_sender_report(
    ssrc: u32,
    (ntp, timestamp): (u64, u32),
    (packets, octets): (u32, u32),
    out: &mut BytesMut,
) {
    head(0, SENDER_REPORT, 6, out);
    out.put_u32(ssrc);
    out.put_u64(ntp);
    out.put_u32(timestamp);
    out.put_u32(packets);
    out.put_u32(octets);
}

/// Appends a request of `own` for the packets of `ssrc` numbered `sequences`, which rise; nothing when there are none.
pub fn write_nack(own: u32, ssrc: u32, sequences: &[u16], out: &mut BytesMut) {
    let mut entries: Vec<(u16, u16)> = Vec::new();
    for &sequence in sequences {
        if let Some((first, following)) = entries.last_mut() {
            let behind = sequence.wrapping_sub(*first);
            if (1..=16).contains(&behind) {
                *following |= 1 << (behind - 1);
                continue;
            }
        }
        entries.push((sequence, 0));
    }
    if entries.is_empty() {
        return;
    }
    head(NACK, TRANSPORT_FEEDBACK, 2 + entries.len(), out);
    out.put_u32(own);
    out.put_u32(ssrc);
    for (first, following) in entries {
        out.put_u16(first);
        out.put_u16(following);
    }
}

/// Appends a request of `own` for a key frame of `ssrc`.
pub fn write_picture_loss(own: u32, ssrc: u32, out: &mut BytesMut) {
    head(PLI, PAYLOAD_FEEDBACK, 2, out);
    out.put_u32(own);
    out.put_u32(ssrc);
}

/// A packet's first four bytes; `words` counts what follows.
fn head(count: u8, kind: u8, words: usize, out: &mut BytesMut) {
    out.put_u8(0x80 | count);
    out.put_u8(kind);
    out.put_u16(words as u16);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_compound_packet_is_read_as_written() {
        let block = ReportBlock {
            ssrc: 7,
            fraction_lost: 12,
            lost: -3,
            highest: 0x1_0005,
            jitter: 90,
            last_report: 0xdead_beef,
            delay: 65_536,
        };
        let mut out = BytesMut::new();
        write_sender_report(9, (1 << 32, 90_000), (10, 12_000), &mut out);
        write_receiver_report(1, &[block], &mut out);
        write_nack(1, 7, &[65_534, 65_535, 3, 40], &mut out);
        write_picture_loss(1, 7, &mut out);
        let nack = Statement::Nack {
            ssrc: 7,
            sequences: vec![65_534, 65_535, 3, 40],
        };
        let sender = Statement::Sender {
            ssrc: 9,
            ntp: 1 << 32,
            timestamp: 90_000,
            packets: 10,
            octets: 12_000,
        };
        let expected = [
            sender,
            Statement::Block(block),
            nack,
            Statement::PictureLoss { ssrc: 7 },
        ];
        assert_eq!(parse(&out), expected);
    }

    #[test]
    fn what_browsers_send_besides_is_read() {
        let fir = [0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 3, 0, 0, 0];
        let remb = [
            &[0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0][..],
            b"REMB",
            &[1, 0x0b, 0xd0, 0x90, 0, 0, 0, 9],
        ]
        .concat();
        let read = parse(&[&fir[..], &remb].concat());
        let intra = Statement::FullIntra { ssrc: 9, number: 3 };
        assert_eq!(
            read,
            [
                intra,
                Statement::Remb {
                    bitrate: 0x3_d090 << 2
                }
            ]
        );
    }

    proptest! {
        #[test]
        fn a_wish_list_survives(wished in prop::collection::btree_set(any::<u16>(), 1..200)) {
            let list: Vec<u16> = wished.iter().copied().collect();
            let mut out = BytesMut::new();
            write_nack(1, 2, &list, &mut out);
            let [Statement::Nack { sequences, .. }] = &parse(&out)[..] else { panic!() };
            prop_assert_eq!(sequences.iter().copied().collect::<BTreeSet<_>>(), wished);
        }

        #[test]
        fn no_bytes_make_it_panic_or_grow(data: Vec<u8>) {
            prop_assert!(parse(&data).len() <= data.len());
        }
    }
}
