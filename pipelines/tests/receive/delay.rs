//! Zero frames held: access unit N in gives picture N out before N+1 arrives.

use bytes::Bytes;
use crossdesk_core::testing::h264::{rewrite_sps, without_restriction};
use crossdesk_pipelines::receive::{DecoderChoice, Pace};

use crate::support::{Bench, clip, read, repository, split};

fn step_through(name: &str, decoder: DecoderChoice, units: &[Bytes]) {
    let bench = Bench::start(decoder, Pace::Live);
    bench.step(units);
    bench.seen.look(|log| {
        assert_eq!(log.pictures.len(), units.len(), "{name}");
        for pair in log.pictures.windows(2) {
            assert_eq!(pair[1].sequence, pair[0].sequence + 1, "{name}");
            assert!(pair[1].received > pair[0].received, "{name}");
        }
    });
}

#[test]
fn low_delay_streams_give_each_picture_at_once() {
    let auto = || DecoderChoice::Auto;
    for name in ["baseline", "high-8x8", "cropped-1080", "bt709-full", "size-change", "four-slices"] {
        step_through(name, auto(), &clip(name).units);
    }
    let desktop = split(&read(repository().join("tests/data/desktop/desktop-1080p30.h264")));
    step_through("desktop", auto(), &desktop[..10]);
    for name in ["BA_MW_D.264", "MIDR_MW_D.264", "SVA_BA2_D.264", "test_qcif_cabac.264"] {
        let units = split(&read(repository().join("tests/data/h264").join(name)));
        step_through(name, auto(), &units[..15]);
    }
}

#[test]
fn a_reorder_free_stream_that_does_not_say_so_is_repaired() {
    for name in ["baseline", "high-8x8"] {
        let silent = rewrite_sps(&clip(name).stream, without_restriction);
        step_through(name, DecoderChoice::Auto, &split(&silent));
    }
}

#[test]
fn openh264_gives_each_baseline_picture_at_once() {
    step_through("baseline", DecoderChoice::Named("openh264dec".to_owned()), &clip("baseline").units);
}
