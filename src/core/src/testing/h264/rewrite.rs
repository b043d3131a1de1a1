//! Real streams with another SPS: crops, colours and promises that no encoder at hand writes.

use crate::h264::{ChromaFormat, ColourDescription, Crop, NalKind, Sps, VideoSignal, nals};

/// The NAL units as an Annex B stream with four-byte start codes.
pub fn annex_b<N: AsRef<[u8]>>(nals: impl IntoIterator<Item = N>) -> Vec<u8> {
    let mut stream = Vec::new();
    for nal in nals {
        stream.extend_from_slice(&[0, 0, 0, 1]);
        stream.extend_from_slice(nal.as_ref());
    }
    stream
}

/// `stream` with `edit` applied to every SPS that can be read; everything else stays byte for byte.
///
/// Slice headers depend on the id, the frame number bits, the order count and the field flags: an edit that
/// changes one of those breaks the stream.
pub fn rewrite_sps(stream: &[u8], mut edit: impl FnMut(&mut Sps)) -> Vec<u8> {
    let mut out = Vec::with_capacity(stream.len() + 64);
    let mut copied = 0;
    for nal in nals(stream).filter(|nal| nal.kind() == NalKind::Sps) {
        if let Ok(mut sps) = Sps::parse(nal.bytes()) {
            edit(&mut sps);
            out.extend_from_slice(&stream[copied..nal.range().start]);
            out.extend_from_slice(&sps.to_nal());
            copied = nal.range().end;
        }
    }
    out.extend_from_slice(&stream[copied..]);
    out
}

/// Cuts these luma pixels from the edges; they must be whole crop units (2x2 for 4:2:0 frames).
pub fn set_crop(sps: &mut Sps, crop: Crop) {
    let horizontal = match sps.chroma_format {
        ChromaFormat::Yuv420 | ChromaFormat::Yuv422 => 2,
        ChromaFormat::Monochrome | ChromaFormat::Yuv444 => 1,
    };
    let chroma_rows = if sps.chroma_format == ChromaFormat::Yuv420 {
        2
    } else {
        1
    };
    let vertical = chroma_rows * if sps.frames_only { 1 } else { 2 };
    let units = Crop {
        left: crop.left / horizontal,
        right: crop.right / horizontal,
        top: crop.top / vertical,
        bottom: crop.bottom / vertical,
    };
    sps.crop_units = (units != Crop::default()).then_some(units);
    assert_eq!(sps.crop(), crop, "a crop is made of whole units");
}

/// Signals this `matrix_coefficients` number (table E-5), with primaries and transfer to match, and range.
pub fn set_colour(sps: &mut Sps, matrix: u8, full_range: bool) {
    let (primaries, transfer) = match matrix {
        1 => (1, 1),
        5 => (5, 6),
        6 => (6, 6),
        7 => (7, 7),
        9 | 10 => (9, 14),
        _ => (2, 2),
    };
    sps.vui.get_or_insert_default().video_signal = Some(VideoSignal {
        format: 5,
        full_range,
        colour: Some(ColourDescription {
            primaries,
            transfer,
            matrix,
        }),
    });
}

/// Takes the promise about output order away and keeps the rest of the VUI.
pub fn without_restriction(sps: &mut Sps) {
    if let Some(vui) = &mut sps.vui {
        vui.restriction = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{Color, Matrix};
    use crate::testing::h264::{pps_nal, sps_of_size};
    use crate::units::PixelSize;

    #[test]
    fn only_the_sps_changes() {
        let sps = sps_of_size(PixelSize::new(64, 48));
        let stream = annex_b([sps.to_nal(), pps_nal(0, 0), vec![0x65, 0x88, 0x80]]);
        let rewritten = rewrite_sps(&stream, |sps| {
            set_crop(
                sps,
                Crop {
                    left: 6,
                    right: 2,
                    top: 4,
                    bottom: 0,
                },
            );
            set_colour(sps, 1, true);
        });
        let found: Vec<_> = nals(&rewritten).map(|nal| nal.bytes().to_vec()).collect();
        assert_eq!(found[1..], [pps_nal(0, 0), vec![0x65, 0x88, 0x80]]);
        let sps = Sps::parse(&found[0]).expect("SPS");
        assert_eq!(sps.visible_size(), PixelSize::new(56, 44));
        let bt709 = Color {
            matrix: Matrix::Bt709,
            full_range: true,
        };
        assert_eq!(sps.color(), bt709);
    }
}
