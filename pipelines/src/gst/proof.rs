//! Is the first picture of a decoder right? H.264 decoding is exact, so another decoder's picture of the same
//! IDR must be equal bit by bit.

use std::time::Duration;

use bytes::Bytes;

use super::frame::GstFrame;
use super::{registry, samples, trial};
use crate::plan::decoders::DecoderRow;
use crate::plan::shape::StreamShape;

/// A reference that takes longer than this is no help; the machine gives up on the candidate after two seconds.
const REFERENCE_PATIENCE: Duration = Duration::from_millis(1500);

/// A decoder's claim: this is the picture of that IDR.
pub(super) struct Claim {
    /// The IDR access unit with its parameter sets.
    pub idr: Bytes,
    /// What its SPS says.
    pub shape: StreamShape,
    /// The picture.
    pub frame: GstFrame,
}

/// Compares the claim with a software decoder's picture; without one, looks whether it can be right at all.
///
/// # Errors
/// Why the picture is not to be believed.
pub(super) fn judge(claim: &Claim, row: &DecoderRow) -> Result<(), String> {
    let size = claim.shape.visible;
    let mut picture = Vec::with_capacity(size.area() as usize * 3 / 2);
    samples::append(&claim.frame, size, &mut picture).map_err(|error| error.to_string())?;
    let reference = registry::reference_for(row, claim.shape.chroma).and_then(|software| {
        trial::first_picture(software, &claim.idr, &claim.shape, REFERENCE_PATIENCE).ok()
    });
    let Some(reference) = reference else {
        return look(claim, &picture);
    };
    match samples::first_difference(&picture, &reference) {
        None => Ok(()),
        Some(_) if samples::is_flat(&picture, size) => {
            Err("wrong pixels: a picture of one colour".to_owned())
        }
        Some(index) => {
            let (column, row) = (index as u32 % size.width, index as u32 / size.width);
            Err(format!("wrong pixels, first at column {column}, row {row}"))
        }
    }
}

/// Looks whether a software decoder's first picture can be right at all.
///
/// # Errors
/// Why not.
pub(super) fn plausible(claim: &Claim) -> Result<(), String> {
    let mut picture = Vec::new();
    samples::append(&claim.frame, claim.shape.visible, &mut picture).map_err(|error| error.to_string())?;
    look(claim, &picture)
}

fn look(claim: &Claim, picture: &[u8]) -> Result<(), String> {
    if samples::is_flat(picture, claim.shape.visible)
        && samples::has_detail(claim.idr.len(), claim.shape.coded)
    {
        return Err("wrong pixels: a picture of one colour".to_owned());
    }
    Ok(())
}
