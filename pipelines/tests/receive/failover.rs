//! Hardware that fails in every way we could think of: software takes over, on the same connection, with
//! the right pictures.

use bytes::Bytes;
use crossdesk_pipelines::receive::{DecoderChoice, Pace, Receive, ReceiveEvent, ReceiveFailure};

use crate::fakes::{Fault, Hardware};
use crate::support::{Bench, Log, PATIENCE, clip};

const SOFTWARE: &str = "avdec_h264";

/// Plays 60 pictures (one IDR) step by step while `vah264dec` fails as told; every picture must come out,
/// once, right and in order, and so must every tapped unit.
fn plays_on(fault: Fault, stage: &str, reason: &str) {
    let _hardware = Hardware::new(&[("vah264dec", fault)]);
    let clip = clip("four-slices");
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    bench.step_or_follow(&clip.units);
    bench.seen.look(|log| {
        let digests: Vec<&str> = log.pictures.iter().map(|picture| picture.sha1.as_str()).collect();
        assert_eq!(
            digests, clip.digests,
            "{fault:?}: no picture is lost or shown twice"
        );
        for (n, picture) in log.pictures.iter().enumerate() {
            assert_eq!(
                (picture.sequence as usize, picture.epoch),
                (n + 1, 1),
                "{fault:?}"
            );
        }
        let tapped: Vec<u32> = log.units.iter().map(|unit| unit.sequence).collect();
        assert_eq!(tapped, (1..=60).collect::<Vec<_>>(), "{fault:?}");
        let failures = log.failures();
        assert_eq!(failures.len(), 1, "{fault:?}: {failures:?}");
        let (name, at, why) = failures[0];
        assert_eq!(name, "vah264dec", "{fault:?}: {why}");
        assert!(stage.contains(at), "{fault:?}: {at}: {why}");
        assert!(why.contains(reason), "{fault:?}: {why}");
        assert_eq!(log.selected().last(), Some(&SOFTWARE), "{fault:?}");
        assert_eq!(
            log.selected().len(),
            if at == "running" { 2 } else { 1 },
            "{fault:?}"
        );
    });
}

#[test]
fn a_device_that_cannot_be_opened() {
    plays_on(Fault::OpenFails, "open", "no such device");
}

#[test]
fn a_driver_that_hangs_while_opening() {
    plays_on(Fault::OpenHangs, "open", "hangs");
}

#[test]
fn memory_that_cannot_be_mapped() {
    plays_on(Fault::MapFailsAfter(0), "proof", "mapped");
}

/// A picture that is out already cannot be taken back; what counts is that no more than three are lost.
#[test]
fn memory_that_cannot_be_mapped_any_more() {
    let _hardware = Hardware::new(&[("vah264dec", Fault::MapFailsAfter(20))]);
    let clip = clip("four-slices");
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    for (n, unit) in clip.units.iter().enumerate() {
        bench.push(unit);
        bench
            .seen
            .wait_briefly(|log| log.pictures.len() + log.unreadable.len() > n);
    }
    let shown = |log: &Log| log.pictures.last().is_some_and(|picture| picture.sequence == 60);
    bench.seen.wait("the last picture", shown, |log| {
        let [(name, stage, reason)] = log.failures()[..] else {
            panic!("{:?}", log.failures());
        };
        assert_eq!((name, stage), ("vah264dec", "running"), "{reason}");
        assert!(reason.contains("mapped"), "{reason}");
        assert_eq!(log.selected(), ["vah264dec", SOFTWARE]);
        assert!(!log.unreadable.is_empty());
        for picture in &log.pictures {
            let right = &clip.digests[picture.sequence as usize - 1];
            assert_eq!(&picture.sha1, right, "picture {}", picture.sequence);
        }
        assert!(
            log.pictures.len() >= 57,
            "{} of 60 were shown",
            log.pictures.len()
        );
    });
}

#[test]
fn pictures_of_the_wrong_size() {
    plays_on(Fault::WrongSize, "proof", "304x240 instead of 320x240");
}

#[test]
fn a_grey_surface() {
    plays_on(Fault::Grey, "proof", "one colour");
}

#[test]
fn a_single_wrong_sample() {
    plays_on(Fault::WrongPixel, "proof", "column 5, row 70");
}

#[test]
fn a_driver_that_hangs_at_the_first_picture() {
    plays_on(Fault::HangsAfter(0), "proof", "no first picture");
}

#[test]
fn a_device_that_is_lost_at_once() {
    plays_on(Fault::DiesAfter(0), "proof", "the device was lost");
}

#[test]
fn a_device_that_is_lost_later() {
    for limit in [1, 2, 3] {
        plays_on(Fault::DiesAfter(limit), "proof or running", "the device was lost");
    }
    for limit in [10, 30, 59] {
        plays_on(Fault::DiesAfter(limit), "running", "the device was lost");
    }
}

#[test]
fn a_decoder_that_stalls() {
    plays_on(Fault::StallsAfter(20), "running", "no more pictures");
}

#[test]
fn a_driver_that_hangs_later() {
    plays_on(Fault::HangsAfter(20), "running", "no more pictures");
}

#[test]
fn hardware_that_works_is_chosen_and_kept() {
    let _hardware = Hardware::new(&[("vah264dec", Fault::None)]);
    let clip = clip("four-slices");
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    bench.step(&clip.units);
    assert_eq!(bench.digests(), clip.digests);
    bench.seen.look(|log| {
        assert_eq!(log.selected(), ["vah264dec"]);
        assert!(log.failures().is_empty());
        let hardware =
            |event: &ReceiveEvent| matches!(event, ReceiveEvent::DecoderSelected { hardware: true, .. });
        assert!(log.events.iter().any(hardware));
    });
}

#[test]
fn one_failure_after_another_ends_at_software() {
    let _hardware = Hardware::new(&[
        ("vah264dec", Fault::OpenFails),
        ("nvh264dec", Fault::Grey),
        ("v4l2h264dec", Fault::DiesAfter(10)),
    ]);
    let clip = clip("four-slices");
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    bench.step_or_follow(&clip.units);
    assert_eq!(bench.digests(), clip.digests);
    bench.seen.look(|log| {
        let names: Vec<&str> = log.failures().iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["vah264dec", "nvh264dec", "v4l2h264dec"]);
        assert_eq!(log.selected(), ["v4l2h264dec", SOFTWARE], "{:?}", log.failures());
    });
}

#[test]
fn a_size_change_is_proven_again() {
    let _hardware = Hardware::new(&[("vah264dec", Fault::None)]);
    let clip = clip("size-change");
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    bench.step(&clip.units);
    assert_eq!(bench.digests(), clip.digests);
    bench.seen.look(|log| {
        assert_eq!(log.selected(), ["vah264dec"]);
        assert_eq!(log.pictures.last().unwrap().epoch, 2);
    });
}

#[test]
fn software_never_opens_hardware_and_a_rank_of_none_is_honoured() {
    let hardware = Hardware::new(&[("vah264dec", Fault::None)]);
    let clip = clip("baseline");
    let bench = Bench::start(DecoderChoice::Software, Pace::Live);
    bench.step(&clip.units);
    bench.seen.look(|log| assert_eq!(log.selected(), [SOFTWARE]));
    drop(hardware);
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    bench.step(&clip.units);
    bench.seen.look(|log| assert_eq!(log.selected(), [SOFTWARE]));
}

fn failed(log: &Log, code: ReceiveFailure) -> bool {
    let is = |event: &ReceiveEvent| matches!(event, ReceiveEvent::Failed { code: is, .. } if *is == code);
    log.events.iter().any(is)
}

#[test]
fn a_forced_decoder_fails_with_a_reason_and_nothing_takes_over() {
    let _hardware = Hardware::new(&[("vah264dec", Fault::DiesAfter(0))]);
    let bench = Bench::start(DecoderChoice::Named("vah264dec".to_owned()), Pace::Live);
    bench.push(&clip("baseline").units[0]);
    bench.seen.wait(
        "the failure",
        |log| failed(log, ReceiveFailure::DecoderFailed),
        |_| (),
    );
    let missing = Bench::start(DecoderChoice::Named("nosuchdec".to_owned()), Pace::Live);
    missing.seen.wait(
        "the failure",
        |log| failed(log, ReceiveFailure::DecoderUnavailable),
        |_| (),
    );
}

#[test]
fn stopping_does_not_wait_for_a_hung_driver() {
    let _hardware = Hardware::new(&[("vah264dec", Fault::HangsAfter(0))]);
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    bench.push(&clip("baseline").units[0]);
    bench.seen.wait("the tap", |log| !log.units.is_empty(), |_| ());
    let before = crossdesk_pipelines::clock::now();
    drop(bench.receiver);
    let took = crossdesk_pipelines::clock::now().since(before);
    assert!(took < PATIENCE / 10, "{took:?}");
}

#[test]
fn damaged_streams_keep_the_session_alive_and_recover_at_the_next_idr() {
    let good = clip("baseline");
    for choice in [
        DecoderChoice::Auto,
        DecoderChoice::Named("openh264dec".to_owned()),
    ] {
        let bench = Bench::start(choice, Pace::Live);
        bench.step(&good.units);
        for (n, unit) in good.units.iter().enumerate().skip(1) {
            let mut bytes = unit.to_vec();
            match n % 3 {
                0 => bytes.truncate(bytes.len() / 2),
                1 => bytes
                    .iter_mut()
                    .skip(12)
                    .step_by(17)
                    .for_each(|byte| *byte ^= 0x55),
                _ => bytes.truncate(6),
            }
            bench.push(&Bytes::from(bytes));
        }
        let garbage = Bytes::from([&[0, 0, 0, 1][..], &[0xff; 500]].concat());
        bench.push(&garbage);
        let (before, wanted) = bench
            .seen
            .look(|log| (log.pictures.len(), good.digests.last().unwrap().clone()));
        for unit in &good.units {
            bench.push(unit);
        }
        bench.seen.wait(
            "the last good picture",
            |log| {
                log.pictures
                    .iter()
                    .skip(before)
                    .any(|picture| picture.sha1 == wanted)
            },
            |log| assert!(!failed(log, ReceiveFailure::DecoderFailed)),
        );
    }
}

#[test]
fn a_second_life_after_the_end_of_a_stream() {
    let clip = clip("bframes");
    let bench = Bench::software();
    for round in 1..=3 {
        for unit in &clip.units {
            bench.push(unit);
        }
        bench.receiver.finish();
        let drained = |log: &Log| {
            log.events
                .iter()
                .filter(|event| **event == ReceiveEvent::Drained)
                .count()
        };
        bench.seen.wait("the end", |log| drained(log) == round, |_| ());
    }
    let digests = bench.digests();
    assert_eq!(
        digests,
        [&clip.digests[..], &clip.digests[..], &clip.digests[..]].concat()
    );
    bench.seen.look(|log| assert_eq!(log.selected().len(), 1));
}
