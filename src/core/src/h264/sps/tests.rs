//! Sizes, colours and rates of real and made-up SPS.

use proptest::prelude::*;

use super::*;
use crate::h264::{NalKind, nals};
use crate::media::{Color, Matrix};
use crate::testing::Seeded;
use crate::testing::h264::{random_sps, set_colour, set_crop, sps_of_size};
use crate::units::{FrameRate, PixelSize};

/// Every SPS of a stream under `tests/data`, as NAL units.
fn sps_nals(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../../tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let stream = std::fs::read(&path).expect(&path);
    let mut found: Vec<_> = nals(&stream)
        .filter(|nal| nal.kind() == NalKind::Sps)
        .map(|nal| nal.bytes().to_vec())
        .collect();
    found.dedup();
    found
}

fn first_sps(name: &str) -> Sps {
    Sps::parse(&sps_nals(name)[0]).expect("SPS")
}

fn with_timing(units_in_tick: u32, time_scale: u32) -> Sps {
    Sps {
        vui: Some(Vui {
            timing: Some(Timing {
                units_in_tick,
                time_scale,
                fixed: true,
            }),
            ..Vui::default()
        }),
        ..Sps::blank(66, 0, 30)
    }
}

#[test]
fn real_sps_are_written_back_bit_for_bit() {
    for name in [
        "desktop/desktop-1080p30.h264",
        "desktop/desktop-4k.h264",
        "h264/Adobe_PDF_sample_a_1024x768_50Frms.264",
        "h264/CVFC1_Sony_C.jsv",
        "h264/SarVui.264",
        "h264/Static.264",
        "h264/VID_1920x1080_cavlc_temporal_direct.264",
    ] {
        for nal in sps_nals(name) {
            let sps = Sps::parse(&nal).expect(name);
            assert_eq!(sps.to_nal(), nal, "{name}");
        }
    }
}

#[test]
fn a_1080_picture_is_coded_in_1088_rows() {
    let sps = first_sps("desktop/desktop-1080p30.h264");
    assert_eq!(sps.coded_size(), PixelSize::new(1920, 1088));
    assert_eq!(sps.visible_size(), PixelSize::new(1920, 1080));
    assert_eq!(
        sps.crop(),
        Crop {
            bottom: 8,
            ..Crop::default()
        }
    );
    assert_eq!(sps.frame_rate(), Some(FrameRate { num: 30, den: 1 }));
    assert_eq!(sps.codec_string(), "avc1.640028");
    assert_eq!(
        sps.color(),
        Color::BT601_LIMITED,
        "nothing signalled, whatever the size"
    );
}

#[test]
fn a_signalled_range_without_a_matrix_is_full_range_bt601() {
    let color = first_sps("h264/VID_1920x1080_cavlc_temporal_direct.264").color();
    assert_eq!((color.matrix, color.full_range), (Matrix::Bt601, true));
}

#[test]
fn crop_units_follow_sampling_and_field_coding() {
    let unit = Crop {
        left: 1,
        right: 0,
        top: 1,
        bottom: 0,
    };
    for (chroma_format, frames_only, left, top) in [
        (ChromaFormat::Monochrome, true, 1, 1),
        (ChromaFormat::Yuv420, true, 2, 2),
        (ChromaFormat::Yuv420, false, 2, 4),
        (ChromaFormat::Yuv422, true, 2, 1),
        (ChromaFormat::Yuv444, false, 1, 2),
    ] {
        let sps = Sps {
            chroma_format,
            frames_only,
            crop_units: Some(unit),
            ..Sps::blank(100, 0, 30)
        };
        assert_eq!(
            (sps.crop().left, sps.crop().top),
            (left, top),
            "{chroma_format:?}"
        );
        let rows = if frames_only { 16 } else { 32 };
        assert_eq!(sps.visible_size(), PixelSize::new(16 - left, rows - top));
    }
}

#[test]
fn a_crop_of_everything_is_refused() {
    let mut sps = sps_of_size(PixelSize::new(32, 32));
    for left in [16, u32::MAX - 1] {
        sps.crop_units = Some(Crop {
            left,
            ..Crop::default()
        });
        assert_eq!(
            Sps::parse(&sps.to_nal()),
            Err(ParseError::Invalid("frame_crop_offset"))
        );
    }
}

#[test]
fn matrices_and_ranges_are_told_apart() {
    for (number, matrix) in [
        (1, Matrix::Bt709),
        (2, Matrix::Bt601),
        (4, Matrix::Fcc),
        (5, Matrix::Bt601),
        (6, Matrix::Bt601),
        (7, Matrix::Smpte240),
        (9, Matrix::Bt2020),
    ] {
        for full_range in [false, true] {
            let mut sps = sps_of_size(PixelSize::new(64, 64));
            set_colour(&mut sps, number, full_range);
            let sps = Sps::parse(&sps.to_nal()).expect("SPS");
            assert_eq!(sps.color(), Color { matrix, full_range }, "matrix {number}");
            assert_eq!(sps.displayable(), Ok(()));
        }
    }
}

#[test]
fn rgb_deep_and_split_pictures_cannot_be_shown() {
    let full = Sps {
        chroma_format: ChromaFormat::Yuv444,
        ..Sps::blank(244, 0, 30)
    };
    assert_eq!(full.displayable(), Ok(()));
    let mut rgb = full.clone();
    set_colour(&mut rgb, 0, true);
    assert_eq!(rgb.displayable(), Err(NotDisplayable::Matrix(0)));
    rgb.chroma_format = ChromaFormat::Yuv420;
    assert_eq!(
        rgb.displayable(),
        Ok(()),
        "RGB exists in 4:4:4 only; encoders leave a zero here"
    );
    let split = Sps {
        separate_planes: true,
        ..full.clone()
    };
    assert_eq!(split.displayable(), Err(NotDisplayable::SeparatePlanes));
    let deep = Sps {
        bit_depth_chroma: 10,
        ..full
    };
    assert_eq!(deep.displayable(), Err(NotDisplayable::BitDepth(10)));
    let grey = Sps {
        chroma_format: ChromaFormat::Monochrome,
        ..deep
    };
    assert_eq!(grey.displayable(), Ok(()), "there is no chroma to be deep");
}

#[test]
fn sizes_end_at_the_limits() {
    let shown = |width, height| sps_of_size(PixelSize::new(width, height)).displayable();
    for (width, height) in [(8192, 2048), (4096, 4096), (2, 8192), (7680, 2160), (5792, 2896)] {
        assert_eq!(shown(width, height), Ok(()), "{width}x{height}");
    }
    for (width, height) in [(8208, 16), (16, 8208), (8192, 2064), (8192, 8192)] {
        let size = PixelSize::new(width, height);
        assert_eq!(shown(width, height), Err(NotDisplayable::TooLarge(size)));
    }
    let mut hidden = sps_of_size(PixelSize::new(8192, 8192));
    set_crop(
        &mut hidden,
        Crop {
            right: 8128,
            ..Crop::default()
        },
    );
    assert!(
        hidden.displayable().is_err(),
        "a crop does not make decoding cheaper"
    );
}

#[test]
fn rates_are_reduced_and_absurd_ones_ignored() {
    let rate = |units, scale| {
        with_timing(units, scale)
            .frame_rate()
            .map(|rate| (rate.num, rate.den))
    };
    assert_eq!(rate(1, 120), Some((60, 1)));
    assert_eq!(rate(1001, 60_000), Some((30_000, 1001)));
    assert_eq!(rate(1, 1), Some((1, 2)));
    assert_eq!(rate(0, 60), None);
    assert_eq!(rate(1, 0), None);
    assert_eq!(rate(1, 180_000), None);
    assert_eq!(rate(u32::MAX, 1), None, "the denominator does not fit");
    assert_eq!(Sps::blank(66, 0, 30).frame_rate(), None);
}

#[test]
fn output_order_is_read_from_the_restriction_first() {
    let mut sps = Sps::blank(100, 0, 40);
    assert_eq!(sps.reorder(), Reorder::None, "order count type 2");
    sps.order_count = OrderCount::LowBits { bits: 8 };
    assert_eq!(sps.reorder(), Reorder::Unknown);
    let mut restriction = Restriction {
        vectors_over_edges: true,
        max_bytes_per_pic_denom: 0,
        max_bits_per_mb_denom: 0,
        log2_max_vector_horizontal: 11,
        log2_max_vector_vertical: 11,
        max_reorder_frames: 2,
        max_dec_frame_buffering: 4,
    };
    for (frames, expected) in [(2, Reorder::Frames(2)), (0, Reorder::None)] {
        restriction.max_reorder_frames = frames;
        sps.vui = Some(Vui {
            restriction: Some(restriction),
            ..Vui::default()
        });
        assert_eq!(sps.reorder(), expected);
    }
}

#[test]
fn damaged_usability_information_leaves_the_rest_readable() {
    let whole = with_timing(1, 60).to_nal();
    let sps = Sps::parse(&whole[..whole.len() - 4]).expect("SPS");
    assert!(sps.vui_damaged && sps.vui.is_none());
    assert_eq!(sps.coded_size(), PixelSize::new(16, 16));
}

#[test]
fn cut_and_foreign_units_are_refused() {
    let nal = sps_of_size(PixelSize::new(64, 64)).to_nal();
    for length in 0..5 {
        assert_eq!(Sps::parse(&nal[..length]), Err(ParseError::Truncated), "{length}");
    }
    assert_eq!(Sps::parse(&[0x68, 1, 2, 3]), Err(ParseError::WrongKind));
    assert_eq!(Sps::parse(&[0xe7, 1, 2, 3]), Err(ParseError::WrongKind));
}

proptest! {
    #[test]
    fn every_sps_survives_writing(seed: u64) {
        let sps = random_sps(&mut Seeded::new(seed));
        let nal = sps.to_nal();
        prop_assert_eq!(Sps::parse(&nal), Ok(sps));
        let mut stream = vec![0, 0, 1];
        stream.extend(&nal);
        let found: Vec<_> = nals(&stream).map(|nal| nal.bytes().to_vec()).collect();
        prop_assert_eq!(found, [nal], "no start code inside, no zero at the end");
    }
}
