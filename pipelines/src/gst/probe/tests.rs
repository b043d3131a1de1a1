//! Software decoders are on every machine that runs these tests; their pictures are known.

use super::*;

fn report(name: &str) -> DecoderReport {
    super::super::init().expect("GStreamer is installed");
    let row = crate::plan::decoders::row(name).expect("a decoder of the table");
    look(row, Duration::from_secs(60))
}

#[test]
fn two_unrelated_software_decoders_agree_with_the_embedded_digests() {
    for name in ["avdec_h264", "openh264dec"] {
        let report = report(name);
        // Speed depends on what else this machine does, so `too slow` is no failure here.
        let right = matches!(report.verdict, Verdict::Proven | Verdict::TooSlow);
        assert!(right, "{name}: {:?}", report.reason);
        assert_eq!(report.memory, Some("system"));
    }
}

#[test]
fn a_decoder_that_is_not_installed_is_missing() {
    super::super::init().expect("GStreamer is installed");
    let row = crate::plan::decoders::row("vtdec_hw").expect("a decoder of the table");
    let report = look(row, TOTAL_PATIENCE);
    assert_eq!(report.verdict, Verdict::Missing);
    assert!(!report.installed);
}

#[test]
fn garbage_is_measured_as_a_reason() {
    super::super::init().expect("GStreamer is installed");
    let row = crate::plan::decoders::row("avdec_h264").expect("a decoder of the table");
    let measured = measure(row, b"this is no video");
    assert_eq!(measured.pictures, 0);
    assert_eq!(
        measured.reason.as_deref(),
        Some("there is no H.264 picture in it")
    );
}

#[test]
fn one_different_sample_changes_the_digest() {
    let start = clips::DIGEST_START;
    let mut samples = [7; 11];
    let before = clips::digest(start, &samples);
    samples[10] = 8;
    assert_ne!(clips::digest(start, &samples), before);
}
