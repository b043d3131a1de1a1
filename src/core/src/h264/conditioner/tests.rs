//! Access units through the conditioner, one rule a test.

use super::*;
use crate::h264::{AccessUnits, OrderCount, Reorder};
use crate::testing::h264::{
    SliceFields, annex_b, pps_nal, rewrite_sps, slice_nal, sps_of_size, without_restriction,
};

const IDR: SliceFields = SliceFields {
    idr: true,
    first_mb: 0,
    slice_type: 7,
    pps_id: 0,
    ref_idc: 1,
    frame_num: 0,
    idr_pic_id: 0,
    order_low_bits: 0,
};
const P: SliceFields = SliceFields {
    idr: false,
    slice_type: 5,
    frame_num: 1,
    order_low_bits: 2,
    ..IDR
};
const DELIMITER: [u8; 2] = [9, 0xf0];

/// A Main profile SPS that proves nothing, so that nothing is repaired.
fn main_sps(width: u32) -> Sps {
    Sps {
        profile_idc: 77,
        order_count: OrderCount::LowBits { bits: 4 },
        ..sps_of_size(PixelSize::new(width, 64))
    }
}

/// A Baseline SPS with order counts in slice headers.
fn baseline_sps() -> Sps {
    Sps {
        profile_idc: 66,
        ..main_sps(64)
    }
}

fn unit<N: AsRef<[u8]>>(nals: impl IntoIterator<Item = N>) -> Bytes {
    annex_b(nals).into()
}

fn whole_idr(sps: &Sps) -> Bytes {
    unit([sps.to_nal(), pps_nal(0, sps.id), slice_nal(sps, IDR)])
}

fn kinds(data: &[u8]) -> Vec<NalKind> {
    nals(data).map(|nal| nal.kind()).collect()
}

fn pass(conditioner: &mut Conditioner, data: &Bytes) -> Conditioned {
    conditioner.condition(data.clone()).expect("passes")
}

/// True when no byte was copied.
fn untouched(conditioned: &Conditioned, data: &Bytes) -> bool {
    conditioned.data.as_ptr() == data.as_ptr() && conditioned.data.len() == data.len()
}

#[test]
fn a_complete_unit_passes_without_a_copy() {
    let sps = main_sps(64);
    let mut conditioner = Conditioner::new();
    let idr = whole_idr(&sps);
    let first = pass(&mut conditioner, &idr);
    assert!(untouched(&first, &idr) && first.idr && first.has_picture && first.changed);
    assert_eq!(first.sps.as_deref(), Some(&sps));
    let p = unit([slice_nal(&sps, P)]);
    let second = pass(&mut conditioner, &p);
    assert!(untouched(&second, &p) && !second.idr && second.has_picture && !second.changed);
}

#[test]
fn missing_parameter_sets_are_added_behind_the_delimiter() {
    let sps = main_sps(64);
    let mut conditioner = Conditioner::new();
    pass(&mut conditioner, &whole_idr(&sps));
    let bare = unit([DELIMITER.to_vec(), vec![6, 5, 1, 0, 0x80], slice_nal(&sps, IDR)]);
    let completed = pass(&mut conditioner, &bare);
    assert_eq!(
        kinds(&completed.data),
        [
            NalKind::Delimiter,
            NalKind::Sps,
            NalKind::Pps,
            NalKind::Sei,
            NalKind::IdrSlice
        ]
    );
    assert!(!completed.changed);
    let alone = pass(&mut Conditioner::new(), &completed.data);
    assert!(untouched(&alone, &completed.data), "nothing is left to do");
}

#[test]
fn a_single_missing_set_is_added_in_its_place() {
    let sps = main_sps(64);
    let mut conditioner = Conditioner::new();
    pass(&mut conditioner, &unit([pps_nal(1, 0)]));
    pass(&mut conditioner, &whole_idr(&sps));
    let only_sps = pass(&mut conditioner, &unit([sps.to_nal(), slice_nal(&sps, IDR)]));
    let expected = [sps.to_nal(), pps_nal(0, 0), pps_nal(1, 0), slice_nal(&sps, IDR)];
    assert_eq!(
        only_sps.data,
        unit(expected.clone()),
        "every PPS a later picture may use"
    );
    let only_pps = unit([pps_nal(0, 0), pps_nal(1, 0), slice_nal(&sps, IDR)]);
    assert_eq!(pass(&mut conditioner, &only_pps).data, unit(expected));
}

#[test]
fn an_idr_without_known_sets_is_refused_and_one_with_them_follows() {
    let sps = main_sps(64);
    let mut conditioner = Conditioner::new();
    let refused = |conditioner: &mut Conditioner, data| conditioner.condition(data).err();
    let bare = unit([slice_nal(&sps, IDR)]);
    assert_eq!(
        refused(&mut conditioner, bare.clone()),
        Some(UnitRefusal::NoParameterSets)
    );
    let without_pps = unit([sps.to_nal(), slice_nal(&sps, IDR)]);
    assert_eq!(
        refused(&mut conditioner, without_pps),
        Some(UnitRefusal::NoParameterSets)
    );
    let sets = pass(&mut conditioner, &unit([pps_nal(0, 0)]));
    assert!(!sets.has_picture && !sets.changed && sets.sps.is_none());
    let completed = pass(&mut conditioner, &bare);
    assert!(completed.idr && completed.changed);
    assert_eq!(
        kinds(&completed.data),
        [NalKind::Sps, NalKind::Pps, NalKind::IdrSlice]
    );
}

#[test]
fn bad_units_are_refused_by_kind() {
    let mut conditioner = Conditioner::new();
    let sps = main_sps(64);
    pass(&mut conditioner, &whole_idr(&sps));
    for (data, refusal) in [
        (Bytes::new(), UnitRefusal::Empty),
        (Bytes::from_static(b"not a stream"), UnitRefusal::NotAnnexB),
        (Bytes::from_static(&[0, 0, 1]), UnitRefusal::NotAnnexB),
        (
            Bytes::from_static(&[0, 0, 1, 0xe5, 0x88]),
            UnitRefusal::ForbiddenBit,
        ),
        (Bytes::from_static(&[0, 0, 1, 0x65]), UnitRefusal::BrokenSlice),
        (
            vec![1; MAX_ACCESS_UNIT_BYTES + 1].into(),
            UnitRefusal::TooLarge(MAX_ACCESS_UNIT_BYTES + 1),
        ),
    ] {
        assert_eq!(conditioner.condition(data).err(), Some(refusal), "{refusal}");
    }
    let p = unit([slice_nal(&sps, P)]);
    assert!(untouched(&pass(&mut conditioner, &p), &p), "the stream goes on");
}

#[test]
fn adding_sets_never_exceeds_the_limit() {
    let sps = main_sps(64);
    let mut conditioner = Conditioner::new();
    pass(&mut conditioner, &whole_idr(&sps));
    let mut bare = unit([slice_nal(&sps, IDR)]).to_vec();
    bare.resize(MAX_ACCESS_UNIT_BYTES, 0xff);
    let refusal = conditioner.condition(bare.into()).err();
    assert!(
        matches!(refusal, Some(UnitRefusal::TooLarge(bytes)) if bytes > MAX_ACCESS_UNIT_BYTES),
        "{refusal:?}"
    );
}

#[test]
fn pictures_over_the_limits_are_refused_with_their_size() {
    let huge = sps_of_size(PixelSize::new(16384, 64));
    let refusal = Conditioner::new().condition(whole_idr(&huge)).err();
    assert_eq!(
        refusal,
        Some(UnitRefusal::PictureTooLarge(PixelSize::new(16384, 64)))
    );
}

#[test]
fn a_change_of_sps_is_told_once_and_with_a_picture_that_passed() {
    let (old, new) = (main_sps(64), main_sps(128));
    let mut conditioner = Conditioner::new();
    assert!(pass(&mut conditioner, &whole_idr(&old)).changed);
    assert!(!pass(&mut conditioner, &whole_idr(&old)).changed);
    let announced = pass(&mut conditioner, &unit([new.to_nal(), pps_nal(0, 0)]));
    assert!(!announced.changed, "not in force yet");
    let mut padded = whole_idr(&new).to_vec();
    padded.splice(0..0, unit([slice_nal(&new, IDR)]));
    padded.resize(MAX_ACCESS_UNIT_BYTES, 0xff);
    assert!(conditioner.condition(padded.into()).is_err());
    let idr = pass(&mut conditioner, &unit([slice_nal(&new, IDR)]));
    assert!(idr.changed);
    assert_eq!(
        idr.sps.map(|sps| sps.visible_size()),
        Some(PixelSize::new(128, 64))
    );
    assert!(!pass(&mut conditioner, &unit([slice_nal(&new, P)])).changed);
}

#[test]
fn a_later_set_in_the_same_unit_does_not_touch_its_picture() {
    let (old, new) = (main_sps(64), main_sps(128));
    let mut conditioner = Conditioner::new();
    pass(&mut conditioner, &whole_idr(&old));
    let merged = unit([slice_nal(&old, IDR), new.to_nal()]);
    let completed = pass(&mut conditioner, &merged);
    assert_eq!(completed.sps.as_deref(), Some(&old));
    assert_eq!(
        completed.data,
        unit([old.to_nal(), pps_nal(0, 0), slice_nal(&old, IDR), new.to_nal()])
    );
}

#[test]
fn a_decoding_order_stream_gets_the_promise_everywhere() {
    let sps = Sps {
        profile_idc: 77,
        ..sps_of_size(PixelSize::new(64, 64))
    };
    let mut conditioner = Conditioner::new();
    let first = pass(&mut conditioner, &whole_idr(&sps));
    let repaired = first.sps.expect("SPS");
    assert_eq!(repaired.reorder(), Reorder::None);
    assert!(repaired.vui.as_ref().is_some_and(|vui| vui.restriction.is_some()));
    assert_eq!(
        first.data,
        unit([repaired.to_nal(), pps_nal(0, 0), slice_nal(&sps, IDR)])
    );
    let cached = pass(&mut conditioner, &unit([slice_nal(&sps, IDR)]));
    assert_eq!(cached.data, first.data, "also when it comes from memory");
    assert!(!cached.changed);
    let again = pass(&mut Conditioner::new(), &first.data);
    assert!(untouched(&again, &first.data), "repair is idempotent");
    let alone = pass(&mut conditioner, &unit([sps.to_nal()]));
    assert_eq!(alone.data, unit([repaired.to_nal()]), "also without a picture");
}

#[test]
fn baseline_is_trusted_until_its_order_counts_run_backwards() {
    let sps = baseline_sps();
    let mut conditioner = Conditioner::new();
    let idr = whole_idr(&sps);
    assert!(!untouched(&pass(&mut conditioner, &idr), &idr));
    for fields in [
        P,
        SliceFields {
            frame_num: 2,
            order_low_bits: 6,
            ..P
        },
    ] {
        pass(&mut conditioner, &unit([slice_nal(&sps, fields)]));
    }
    assert!(!untouched(&pass(&mut conditioner, &idr), &idr), "rising counts");
    pass(
        &mut conditioner,
        &unit([slice_nal(
            &sps,
            SliceFields {
                order_low_bits: 4,
                ..P
            },
        )]),
    );
    let early = SliceFields { frame_num: 2, ..P };
    pass(&mut conditioner, &unit([slice_nal(&sps, early)]));
    let after = pass(&mut conditioner, &idr);
    assert!(untouched(&after, &idr) && !after.changed);
    assert_eq!(after.sps.map(|sps| sps.reorder()), Some(Reorder::Unknown));
    let other = whole_idr(&Sps {
        max_ref_frames: 2,
        ..sps
    });
    let fresh = pass(&mut conditioner, &other);
    assert!(!untouched(&fresh, &other), "another SPS is judged anew");
}

#[test]
fn pictures_that_are_no_idr_pass_even_when_their_sets_are_unknown() {
    let sps = main_sps(64);
    let mut conditioner = Conditioner::new();
    let p = unit([slice_nal(&sps, P)]);
    let early = pass(&mut conditioner, &p);
    assert!(untouched(&early, &p) && early.has_picture && early.sps.is_none() && !early.changed);
    pass(&mut conditioner, &unit([sps.to_nal(), pps_nal(0, 0)]));
    let recovery = pass(
        &mut conditioner,
        &unit([slice_nal(&sps, SliceFields { slice_type: 7, ..P })]),
    );
    assert!(!recovery.idr && recovery.changed && recovery.sps.is_some());
}

#[test]
fn a_real_stream_without_the_promise_gets_it_back() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/h264/Adobe_PDF_sample_a_1024x768_50Frms.264"
    );
    let original = std::fs::read(path).expect(path);
    let stripped = rewrite_sps(&original, without_restriction);
    assert_ne!(stripped, original);
    let mut conditioner = Conditioner::new();
    for data in AccessUnits::new(&stripped) {
        let conditioned = pass(&mut conditioner, &Bytes::copy_from_slice(data));
        let sps = conditioned.sps.expect("SPS");
        assert!(sps.vui.as_ref().is_some_and(|vui| vui.restriction.is_some()));
        assert_eq!(sps.reorder(), Reorder::None);
    }
}
