//! Access units into payloads (RFC 6184, packetization mode 1).

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::h264::nals;

/// Type of a NAL unit in fragments (RFC 6184, section 5.8).
pub(super) const FU_A: u8 = 28;
/// The bit of a fragment's header for the first and for the last one.
pub(super) const FU_START: u8 = 0x80;
pub(super) const FU_END: u8 = 0x40;

/// The payloads of `unit` (Annex B), none longer than `limit` bytes, which is at least 4: one NAL unit each, or
/// fragments of nearly equal length.
pub fn packetize(unit: &Bytes, limit: usize) -> Vec<Bytes> {
    let limit = limit.max(4);
    let mut payloads = Vec::with_capacity(unit.len() / limit + 2);
    for nal in nals(unit) {
        let bytes = nal.bytes();
        if bytes.len() <= limit {
            payloads.push(unit.slice_ref(bytes));
        } else {
            fragment(bytes, limit, &mut payloads);
        }
    }
    payloads
}

fn fragment(nal: &[u8], limit: usize, payloads: &mut Vec<Bytes>) {
    let Some((&header, body)) = nal.split_first() else {
        return;
    };
    let count = body.len().div_ceil(limit - 2);
    let length = body.len().div_ceil(count);
    for (n, part) in body.chunks(length).enumerate() {
        let mut flags = header & 0x1f;
        if n == 0 {
            flags |= FU_START;
        }
        if (n + 1) * length >= body.len() {
            flags |= FU_END;
        }
        let mut payload = BytesMut::with_capacity(2 + part.len());
        payload.put_u8(header & 0xe0 | FU_A);
        payload.put_u8(flags);
        payload.put_slice(part);
        payloads.push(payload.freeze());
    }
}
