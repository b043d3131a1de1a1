//! One access unit in, one access unit out that any decoder can start from and none needs to hold back.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::nal::{Nal, NalKind, nals};
use super::order::OrderWatch;
use super::pps::Pps;
use super::repair::Proof;
use super::sets::{ParameterSets, SpsEntry};
use super::slice::{SliceHeader, SliceStart};
use super::sps::Sps;
use crate::media::MAX_ACCESS_UNIT_BYTES;
use crate::units::PixelSize;

/// Put before every NAL unit that is added or replaced.
const START_CODE: [u8; 4] = [0, 0, 0, 1];

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
    /// Larger than [`MAX_ACCESS_UNIT_BYTES`], by this many bytes in all; before or after its parameter sets
    /// were added.
    TooLarge(usize),
    /// No Annex B start code followed by a NAL unit.
    NotAnnexB,
    /// A NAL unit header has the bit set that must be zero.
    ForbiddenBit,
    /// An IDR picture whose slice header cannot be read.
    BrokenSlice,
    /// An IDR picture whose SPS or PPS never arrived.
    NoParameterSets,
    /// The picture has an edge over [`MAX_EDGE`](crate::h264::MAX_EDGE) or more pixels than
    /// [`MAX_PIXELS`](crate::h264::MAX_PIXELS).
    PictureTooLarge(PixelSize),
}

impl fmt::Display for UnitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the access unit is empty"),
            Self::TooLarge(bytes) => write!(
                f,
                "the access unit has {bytes} bytes, more than {MAX_ACCESS_UNIT_BYTES}"
            ),
            Self::NotAnnexB => write!(f, "the access unit has no NAL unit in Annex B form"),
            Self::ForbiddenBit => write!(f, "a NAL unit header is damaged"),
            Self::BrokenSlice => write!(f, "the slice header of an IDR picture is damaged"),
            Self::NoParameterSets => write!(f, "an IDR picture came without SPS and PPS, and none are known"),
            Self::PictureTooLarge(size) => {
                write!(f, "a picture of {}x{} is too large", size.width, size.height)
            }
        }
    }
}

impl std::error::Error for UnitRefusal {}

/// Checks the access units of one stream, in receive order, and completes them.
///
/// - Parameter sets are remembered by id; an IDR access unit that lacks its SPS, or a PPS that uses it, gets
///   them behind its delimiter.
/// - An SPS without `bitstream_restriction` gets one that promises output in decoding order, where that is
///   certain (order count type 2, intra-only profiles) or Baseline. Baseline with order counts in slice headers
///   could legally reorder: when its counts ever run backwards inside a coded sequence, or a B slice appears,
///   such SPS are left alone until another SPS comes into force.
/// - Everything else passes unchanged, without a copy. Two pictures in one unit are tolerated; the first
///   decides.
#[derive(Clone, Debug, Default)]
pub struct Conditioner {
    sets: ParameterSets,
    watch: OrderWatch,
    /// The SPS NAL unit in force, as received.
    active: Option<Bytes>,
    /// Its meaning, as published.
    active_sps: Option<Arc<Sps>>,
}

/// What one access unit holds.
#[derive(Debug, Default)]
struct Survey {
    /// End of the leading delimiter, or where the first NAL unit begins.
    front: usize,
    /// Every SPS in it.
    sps: Vec<SpsPlace>,
    /// Ids of the PPS before the first slice.
    pps: Vec<u8>,
    /// Its first slice, once seen.
    picture: Option<Picture>,
}

#[derive(Debug)]
struct SpsPlace {
    /// Where its bytes lie.
    range: Range<usize>,
    entry: SpsEntry,
    /// True before the first slice.
    leads: bool,
}

#[derive(Debug, Default)]
struct Picture {
    idr: bool,
    /// Start codes and NAL units to add for an IDR picture, and where.
    missing: Vec<u8>,
    missing_at: usize,
}

impl Conditioner {
    /// A conditioner that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks one access unit, remembers its parameter sets and completes it.
    pub fn condition(&mut self, data: Bytes) -> Result<Conditioned, UnitRefusal> {
        let before = self.active.clone();
        let result = self.condition_after(before.as_ref(), data);
        if result.is_err() {
            // A change of SPS is reported with the first picture that passes.
            self.active = before;
        }
        result
    }

    fn condition_after(&mut self, before: Option<&Bytes>, data: Bytes) -> Result<Conditioned, UnitRefusal> {
        if data.is_empty() {
            return Err(UnitRefusal::Empty);
        }
        check_length(data.len())?;
        let survey = self.survey(&data)?;
        let data = self.complete(data, &survey);
        check_length(data.len())?;
        Ok(Conditioned {
            data,
            idr: survey.picture.as_ref().is_some_and(|picture| picture.idr),
            has_picture: survey.picture.is_some(),
            sps: self.active_sps.clone(),
            changed: survey.picture.is_some() && self.active.as_ref() != before,
        })
    }

    fn survey(&mut self, data: &[u8]) -> Result<Survey, UnitRefusal> {
        let first = nals(data).next().ok_or(UnitRefusal::NotAnnexB)?;
        let mut survey = Survey {
            front: match first.kind() {
                NalKind::Delimiter => first.range().end,
                _ => first.prefix_start(),
            },
            ..Survey::default()
        };
        for nal in nals(data) {
            if nal.is_forbidden() {
                return Err(UnitRefusal::ForbiddenBit);
            }
            self.take(&nal, &mut survey)?;
        }
        Ok(survey)
    }

    fn take(&mut self, nal: &Nal<'_>, survey: &mut Survey) -> Result<(), UnitRefusal> {
        let leads = survey.picture.is_none();
        match nal.kind() {
            NalKind::Sps => {
                survey
                    .sps
                    .extend(self.sets.remember_sps(nal.bytes()).map(|entry| SpsPlace {
                        range: nal.range(),
                        entry: entry.clone(),
                        leads,
                    }));
            }
            NalKind::Pps => {
                let id = self.sets.remember_pps(nal.bytes());
                survey.pps.extend(id.filter(|_| leads));
            }
            NalKind::IdrSlice if leads => survey.picture = Some(self.take_idr(nal, survey)?),
            NalKind::Slice if leads => {
                self.take_other(nal)?;
                survey.picture = Some(Picture::default());
            }
            _ => {}
        }
        Ok(())
    }

    fn take_idr(&mut self, nal: &Nal<'_>, survey: &Survey) -> Result<Picture, UnitRefusal> {
        let start = SliceStart::parse(nal).map_err(|_| UnitRefusal::BrokenSlice)?;
        let (entry, pps) = self
            .sets
            .of_picture(start.pps_id)
            .ok_or(UnitRefusal::NoParameterSets)?;
        let (entry, pps) = (entry.clone(), *pps);
        self.activate(&entry, nal, &pps)?;
        let own = survey
            .sps
            .iter()
            .rfind(|place| place.leads && place.entry.sps.id == pps.sps_id);
        let mut missing = Vec::new();
        if own.is_none() {
            append(&mut missing, self.published(&entry).0);
        }
        for other in self.sets.pps_of(pps.sps_id) {
            if !survey.pps.contains(&other.pps.id) {
                append(&mut missing, &other.nal);
            }
        }
        Ok(Picture {
            idr: true,
            missing,
            missing_at: own.map_or(survey.front, |place| place.range.end),
        })
    }

    /// A picture that is no IDR picture may refer to anything, even to what was lost: decoders cope.
    fn take_other(&mut self, nal: &Nal<'_>) -> Result<(), UnitRefusal> {
        let start = SliceStart::parse(nal).ok();
        let Some((entry, pps)) = start.and_then(|start| self.sets.of_picture(start.pps_id)) else {
            return Ok(());
        };
        let (entry, pps) = (entry.clone(), *pps);
        self.activate(&entry, nal, &pps)
    }

    /// Puts the SPS of a picture in force and watches the order of pictures.
    fn activate(&mut self, entry: &SpsEntry, slice: &Nal<'_>, pps: &Pps) -> Result<(), UnitRefusal> {
        entry.sps.check_size().map_err(UnitRefusal::PictureTooLarge)?;
        if self.active.as_ref() != Some(&entry.received) {
            self.active = Some(entry.received.clone());
            self.watch.restart();
        }
        if let Ok(header) = SliceHeader::parse(slice, &entry.sps, pps) {
            self.watch.observe(&entry.sps, &header);
        }
        self.active_sps = Some(Arc::clone(self.published(entry).1));
        Ok(())
    }

    /// What is sent on for an SPS.
    fn published<'a>(&self, entry: &'a SpsEntry) -> (&'a Bytes, &'a Arc<Sps>) {
        match &entry.repaired {
            Some(repaired) if repaired.proof == Proof::Certain || !self.watch.is_broken() => {
                (&repaired.nal, &repaired.sps)
            }
            _ => (&entry.received, &entry.sps),
        }
    }

    /// Replaces SPS and adds what is missing; the bytes given in when there is nothing to do.
    fn complete(&self, data: Bytes, survey: &Survey) -> Bytes {
        let mut edits: Vec<(Range<usize>, &[u8])> = Vec::new();
        for place in &survey.sps {
            let nal = self.published(&place.entry).0;
            if *nal != place.entry.received {
                edits.push((place.range.clone(), nal));
            }
        }
        if let Some(picture) = survey
            .picture
            .as_ref()
            .filter(|picture| !picture.missing.is_empty())
        {
            edits.push((picture.missing_at..picture.missing_at, &picture.missing));
        }
        if edits.is_empty() {
            return data;
        }
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        splice(&data, &edits).into()
    }
}

/// `data` with each range replaced; the ranges are sorted and do not overlap.
fn splice(data: &[u8], edits: &[(Range<usize>, &[u8])]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut out = Vec::with_capacity(data.len() + added);
    let mut copied = 0;
    for (range, bytes) in edits {
        out.extend_from_slice(&data[copied..range.start]);
        out.extend_from_slice(bytes);
        copied = range.end;
    }
    out.extend_from_slice(&data[copied..]);
    out
}

fn append(out: &mut Vec<u8>, nal: &[u8]) {
    out.extend_from_slice(&START_CODE);
    out.extend_from_slice(nal);
}

fn check_length(bytes: usize) -> Result<(), UnitRefusal> {
    if bytes > MAX_ACCESS_UNIT_BYTES {
        return Err(UnitRefusal::TooLarge(bytes));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
