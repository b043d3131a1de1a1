//! Zero frames held: access unit N in gives picture N out before N+1 arrives.

use bytes::Bytes;
use crossdesk_core::h264::Conditioner;
use crossdesk_core::testing::h264::{rewrite_sps, without_restriction};
use crossdesk_pipelines::plan::shape::StreamShape;
use crossdesk_pipelines::receive::{DecoderChoice, Pace};

use crate::support::{Bench, clip, read, repository, split};

fn step_through(name: &str, decoder: DecoderChoice, units: &[Bytes]) {
    println!("{name}");
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

/// True when the first picture's SPS promises that output order is decoding order, as sent or as repaired.
fn is_reorder_free(units: &[Bytes]) -> bool {
    let mut conditioner = Conditioner::new();
    units.iter().enumerate().all(|(n, unit)| {
        let conditioned = conditioner.condition(unit.clone()).unwrap();
        let low_delay = conditioned
            .sps
            .is_some_and(|sps| StreamShape::from(&*sps).low_delay());
        low_delay && conditioned.has_picture && (n > 0 || conditioned.idr)
    })
}

#[test]
fn low_delay_streams_give_each_picture_at_once() {
    let auto = || DecoderChoice::Auto;
    for name in [
        "baseline",
        "high-8x8",
        "cropped-1080",
        "bt709-full",
        "size-change",
        "four-slices",
    ] {
        step_through(name, auto(), &clip(name).units);
    }
    let desktop = split(&read(
        repository().join("tests/data/desktop/desktop-1080p30.h264"),
    ));
    step_through("desktop", auto(), &desktop[..10]);
    let mut low_delay = Vec::new();
    for entry in std::fs::read_dir(repository().join("tests/data/h264")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let units = split(&read(&path));
        if !name.ends_with("tsv") && is_reorder_free(&units[..5]) {
            step_through(&name, auto(), &units[..5]);
            low_delay.push(name);
        }
    }
    println!("{low_delay:?}");
    assert!(low_delay.len() >= 5, "{low_delay:?}");
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
    step_through(
        "baseline",
        DecoderChoice::Named("openh264dec".to_owned()),
        &clip("baseline").units,
    );
}
