//! The binary messages of live video: `CDV1` and `CDN1` headers before a shared payload.
//!
//! Integers are big-endian; timestamps are microseconds of `CLOCK_MONOTONIC`. A [`Message`] is built once and shared
//! by every viewer it goes to.

use std::fmt;

use bytes::Bytes;

use super::{MAX_PICTURE_EDGE, MAX_PICTURE_PIXELS};
use crate::media::{MAX_ACCESS_UNIT_BYTES, TapUnit};
use crate::time::Monotonic;
use crate::units::PixelSize;

/// Bytes before the Annex B data of an `h264-annexb/1` message.
pub const CDV1_HEADER_BYTES: usize = 24;

/// Bytes before the samples of an `nv12/1` message.
pub const CDN1_HEADER_BYTES: usize = 32;

const CDV1_MAGIC: u32 = 0x4344_5631;
const CDN1_MAGIC: u32 = 0x4344_4e31;
const FLAG_IDR: u32 = 1;

/// Why a payload cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// An access unit over 4 MiB, or a picture over 8192 per edge or 16777216 pixels.
    TooLarge,
    /// An odd or empty picture size.
    NotEven,
    /// The samples do not fill exactly `width * height * 3 / 2` bytes.
    WrongLength,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "larger than the video protocol allows",
            Self::NotEven => "picture edges must be even and not zero",
            Self::WrongLength => "samples do not match the picture size",
        })
    }
}

impl std::error::Error for MessageError {}

/// One complete binary message: a frame header and the payload it describes.
///
/// Immutable; viewers share it behind an `Arc`, so neither part is copied per viewer.
pub struct Message {
    header: [u8; CDN1_HEADER_BYTES],
    header_bytes: usize,
    payload: Bytes,
    /// Receive or decode sequence, as in the header.
    pub sequence: u32,
    /// True when a decoder can start here: an IDR access unit, or any picture.
    pub starts: bool,
    /// When the access unit behind it arrived.
    pub received: Monotonic,
    /// When it was handed to the video thread.
    pub published: Monotonic,
}

impl Message {
    /// An `h264-annexb/1` message for `generation`.
    ///
    /// # Errors
    /// [`MessageError::TooLarge`] over 4 MiB of Annex B data.
    pub fn h264(generation: u32, unit: &TapUnit, published: Monotonic) -> Result<Self, MessageError> {
        if unit.data.len() > MAX_ACCESS_UNIT_BYTES {
            return Err(MessageError::TooLarge);
        }
        let mut header = [0; CDN1_HEADER_BYTES];
        header[..CDV1_HEADER_BYTES].copy_from_slice(&cdv1_header(generation, unit));
        Ok(Self {
            header,
            header_bytes: CDV1_HEADER_BYTES,
            payload: unit.data.clone(),
            sequence: unit.sequence,
            starts: unit.idr,
            received: unit.received,
            published,
        })
    }

    /// An `nv12/1` message for `generation`.
    ///
    /// # Errors
    /// When size and samples break a limit or do not fit each other.
    pub fn nv12(generation: u32, picture: &Nv12Picture) -> Result<Self, MessageError> {
        let whole = cdn1_message_bytes(picture.size)?;
        if picture.samples.len() != whole - CDN1_HEADER_BYTES {
            return Err(MessageError::WrongLength);
        }
        Ok(Self {
            header: cdn1_header(generation, picture),
            header_bytes: CDN1_HEADER_BYTES,
            payload: picture.samples.clone(),
            sequence: picture.sequence,
            starts: true,
            received: picture.received,
            published: picture.decoded,
        })
    }

    /// The `CDV1` or `CDN1` header.
    pub fn header(&self) -> &[u8] {
        &self.header[..self.header_bytes]
    }

    /// What follows the header.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Header and payload together, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.header_bytes + self.payload.len()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("sequence", &self.sequence)
            .field("starts", &self.starts)
            .field("bytes", &self.total_bytes())
            .finish_non_exhaustive()
    }
}

/// A decoded picture packed for `nv12/1`: limited-range BT.601, rows tightly packed, Y then interleaved Cb Cr.
#[derive(Clone)]
pub struct Nv12Picture {
    /// Even edges.
    pub size: PixelSize,
    /// Position among all decoded pictures of the connection.
    pub sequence: u32,
    /// When its access unit arrived.
    pub received: Monotonic,
    /// When the decoder handed it over; the header's timestamp.
    pub decoded: Monotonic,
    /// `width * height * 3 / 2` bytes.
    pub samples: Bytes,
}

impl fmt::Debug for Nv12Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nv12Picture")
            .field("sequence", &self.sequence)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// Bytes of the whole `nv12/1` message for a picture of `size`.
///
/// # Errors
/// [`MessageError::NotEven`] or [`MessageError::TooLarge`].
pub fn cdn1_message_bytes(size: PixelSize) -> Result<usize, MessageError> {
    if size != size.even() || size.area() == 0 {
        return Err(MessageError::NotEven);
    }
    if size.longest_edge() > MAX_PICTURE_EDGE || size.area() > MAX_PICTURE_PIXELS {
        return Err(MessageError::TooLarge);
    }
    let samples = usize::try_from(size.area() * 3 / 2).map_err(|_| MessageError::TooLarge)?;
    Ok(CDN1_HEADER_BYTES + samples)
}

/// The 24 bytes before an access unit.
pub fn cdv1_header(generation: u32, unit: &TapUnit) -> [u8; CDV1_HEADER_BYTES] {
    let flags = if unit.idr { FLAG_IDR } else { 0 };
    let mut header = [0; CDV1_HEADER_BYTES];
    header[0..4].copy_from_slice(&CDV1_MAGIC.to_be_bytes());
    header[4..8].copy_from_slice(&generation.to_be_bytes());
    header[8..12].copy_from_slice(&unit.sequence.to_be_bytes());
    header[12..20].copy_from_slice(&unit.received.as_micros().to_be_bytes());
    header[20..24].copy_from_slice(&flags.to_be_bytes());
    header
}

fn cdn1_header(generation: u32, picture: &Nv12Picture) -> [u8; CDN1_HEADER_BYTES] {
    let mut header = [0; CDN1_HEADER_BYTES];
    header[0..4].copy_from_slice(&CDN1_MAGIC.to_be_bytes());
    header[4..8].copy_from_slice(&generation.to_be_bytes());
    header[8..12].copy_from_slice(&picture.sequence.to_be_bytes());
    header[12..20].copy_from_slice(&picture.decoded.as_micros().to_be_bytes());
    header[20..24].copy_from_slice(&FLAG_IDR.to_be_bytes());
    header[24..28].copy_from_slice(&picture.size.width.to_be_bytes());
    header[28..32].copy_from_slice(&picture.size.height.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(size: PixelSize, bytes: usize) -> Nv12Picture {
        Nv12Picture {
            size,
            sequence: 0x0102_0304,
            received: Monotonic::from_micros(7),
            decoded: Monotonic::from_micros(0x1122_3344_5566_7788),
            samples: Bytes::from(vec![9; bytes]),
        }
    }

    #[test]
    fn cdv1_is_byte_exact() {
        let unit = TapUnit {
            data: Bytes::from_static(b"\0\0\0\x01\x65payload"),
            idr: true,
            sequence: 0xa1b2_c3d4,
            received: Monotonic::from_micros(0x0001_0203_0405_0607),
        };
        let message = Message::h264(0x1020_3040, &unit, Monotonic::ZERO).unwrap();
        let expected = [
            0x43, 0x44, 0x56, 0x31, 0x10, 0x20, 0x30, 0x40, 0xa1, 0xb2, 0xc3, 0xd4, 0, 1, 2, 3, 4, 5, 6, 7,
            0, 0, 0, 1,
        ];
        assert_eq!(message.header(), expected);
        assert_eq!(message.total_bytes(), 24 + unit.data.len());
        assert_eq!(
            message.payload().as_ptr(),
            unit.data.as_ptr(),
            "the payload is shared"
        );
        let delta = TapUnit { idr: false, ..unit };
        assert_eq!(
            Message::h264(1, &delta, Monotonic::ZERO).unwrap().header()[20..],
            [0, 0, 0, 0]
        );
    }

    #[test]
    fn cdn1_is_byte_exact() {
        let message = Message::nv12(5, &picture(PixelSize::new(4, 2), 12)).unwrap();
        let expected = [
            0x43, 0x44, 0x4e, 0x31, 0, 0, 0, 5, 1, 2, 3, 4, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
            0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2,
        ];
        assert_eq!(message.header(), expected);
        assert_eq!(message.total_bytes(), 32 + 12);
    }

    #[test]
    fn nv12_sizes_keep_the_limits() {
        let bytes = |w, h| cdn1_message_bytes(PixelSize::new(w, h));
        assert_eq!(bytes(4096, 4096), Ok(25_165_856));
        assert_eq!(bytes(8192, 2048), Ok(25_165_856));
        assert_eq!(bytes(8192, 2050), Err(MessageError::TooLarge));
        assert_eq!(bytes(8194, 2), Err(MessageError::TooLarge));
        assert_eq!(bytes(650, 365), Err(MessageError::NotEven));
        assert_eq!(bytes(0, 2), Err(MessageError::NotEven));
        let short = picture(PixelSize::new(4, 2), 11);
        assert!(matches!(Message::nv12(1, &short), Err(MessageError::WrongLength)));
    }

    #[test]
    fn an_access_unit_over_the_limit_is_refused() {
        let unit = |len: usize| TapUnit {
            data: Bytes::from(vec![0; len]),
            idr: true,
            sequence: 1,
            received: Monotonic::ZERO,
        };
        assert!(Message::h264(1, &unit(MAX_ACCESS_UNIT_BYTES), Monotonic::ZERO).is_ok());
        assert!(matches!(
            Message::h264(1, &unit(MAX_ACCESS_UNIT_BYTES + 1), Monotonic::ZERO),
            Err(MessageError::TooLarge)
        ));
    }
}
