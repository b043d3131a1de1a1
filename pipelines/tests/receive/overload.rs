//! More than can be decoded or taken: bounded queues, no blocking, recovery at the next IDR.

use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::media::{AccessUnit, MAX_ACCESS_UNIT_BYTES};
use crossdesk_core::time::Monotonic;
use crossdesk_pipelines::clock;
use crossdesk_pipelines::receive::{DecoderChoice, Pace, Receive, ReceiveEvent, Refused};

use crate::support::{Bench, Log, clip, read, repository, split};

fn unit(data: &Bytes) -> AccessUnit {
    AccessUnit {
        data: data.clone(),
        received: clock::now(),
    }
}

#[test]
fn a_decoder_that_falls_behind_skips_to_an_idr_and_the_tap_does_not() {
    let units = split(&read(
        repository().join("tests/data/desktop/desktop-1080p30.h264"),
    ));
    let bench = Bench::start(DecoderChoice::Software, Pace::Live);
    // A wish for a keyframe follows, at most one a second, as long as units keep coming.
    let overloaded = || {
        bench.seen.look(|log| {
            let has = |event| log.events.contains(&event);
            has(ReceiveEvent::Overloaded) && has(ReceiveEvent::KeyframeWanted)
        })
    };
    bench.step(&units[..1]);
    let mut accepted = 1;
    // As fast as the tap follows: many times faster than the decoder.
    for data in units.iter().cycle().skip(1).take(20 * units.len()) {
        bench.receiver.push(unit(data)).unwrap();
        accepted += 1;
        let near = |log: &Log| log.units.len() + 30 >= accepted;
        bench.seen.wait("the tap", near, |_| ());
        if overloaded() {
            break;
        }
    }
    bench.seen.wait(
        "the overload",
        |log| log.events.contains(&ReceiveEvent::Overloaded),
        |_| (),
    );
    bench.seen.wait(
        "every unit at the tap",
        |log| log.units.len() == accepted,
        |log| {
            assert!(log.events.contains(&ReceiveEvent::KeyframeWanted));
            assert!(log.failures().is_empty(), "{:?}", log.failures());
        },
    );
    // What was queued comes out; then life goes on with the next IDR.
    bench.receiver.finish();
    bench.seen.wait("the end", Log::drained, |_| ());
    bench.step(&units[..5]);
}

#[test]
fn a_decoder_a_second_behind_skips_before_its_queue_is_full() {
    let units = split(&read(
        repository().join("tests/data/desktop/desktop-1080p30.h264"),
    ));
    let bench = Bench::start(DecoderChoice::Software, Pace::Live);
    bench.step(&units[..1]);
    let start = clock::now();
    // Five pictures a second by their time stamps, handed over at once; fewer than the queue holds.
    for (place, data) in units[1..50].iter().enumerate() {
        let received = start + Duration::from_millis(200 * place as u64);
        let data = data.clone();
        bench.receiver.push(AccessUnit { data, received }).unwrap();
    }
    let overloaded = |log: &Log| log.events.contains(&ReceiveEvent::Overloaded);
    bench.seen.wait("the overload", overloaded, |_| ());
}

#[test]
fn units_that_are_none_are_refused_at_the_door() {
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    let push = |data: Vec<u8>| {
        bench.receiver.push(AccessUnit {
            data: Bytes::from(data),
            received: Monotonic::ZERO,
        })
    };
    assert_eq!(push(Vec::new()), Err(Refused::NotAccessUnit));
    assert_eq!(push(b"hello".to_vec()), Err(Refused::NotAccessUnit));
    let mut large = vec![0, 0, 0, 1, 0x65];
    large.resize(MAX_ACCESS_UNIT_BYTES + 1, 0x55);
    assert_eq!(push(large), Err(Refused::TooLarge));
    bench.step(&clip("baseline").units);
}

#[test]
fn a_group_with_a_missing_unit_is_not_shown_past_the_gap() {
    let clip = clip("baseline");
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    bench.step(&clip.units[..3]);
    // A damaged unit counts as missing: what refers to it must not be shown.
    bench.push(&Bytes::from_static(&[0, 0, 0, 1, 0xff, 0xff]));
    for data in &clip.units[4..] {
        bench.push(data);
    }
    for data in &clip.units[..2] {
        bench.push(data);
    }
    bench.seen.wait(
        "the next group",
        |log| log.pictures.len() >= 5,
        |log| {
            let shown: Vec<&str> = log.pictures.iter().map(|picture| picture.sha1.as_str()).collect();
            let expected = [&clip.digests[..3], &clip.digests[..2]].concat();
            assert_eq!(shown, expected);
            assert!(log.events.contains(&ReceiveEvent::KeyframeWanted));
        },
    );
}

/// Threads, open files and resident KiB of this process.
fn held() -> [usize; 3] {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).map_or(0, Iterator::count);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    let kib = resident
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number of KiB");
    [count("task"), count("fd"), kib]
}

#[test]
fn a_thousand_short_lives_leave_nothing_behind() {
    let clip = clip("baseline");
    let live = || {
        let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
        bench.step(&clip.units[..2]);
    };
    // Pools, registries and allocators reach their size first.
    (0..100).for_each(|_| live());
    let [threads, files, kib] = held();
    (0..1000).for_each(|_| live());
    // The last graphs end on threads of their own.
    let limit = clock::now() + Duration::from_secs(20);
    let mut after = held();
    while (after[0] > threads + 2 || after[1] > files + 2) && clock::now() < limit {
        std::thread::yield_now();
        after = held();
    }
    assert!(after[0] <= threads + 2, "{after:?}, before {threads} threads");
    assert!(after[1] <= files + 2, "{after:?}, before {files} files");
    assert!(after[2] <= kib + 16 * 1024, "{after:?}, before {kib} KiB");
}

#[test]
fn a_damaged_first_idr_costs_pictures_and_not_the_decoder() {
    let mut units = split(&read(
        repository().join("tests/data/desktop/desktop-1080p30.h264"),
    ));
    let mut damaged = units[0].to_vec();
    // Everything behind the slice header is noise: libavcodec conceals the picture, mostly with one colour.
    let start = damaged.len() / 8;
    for (place, byte) in damaged.iter_mut().enumerate().skip(start) {
        *byte ^= u8::try_from(place * 37 % 251).unwrap() | 1;
    }
    units[0] = Bytes::from(damaged);
    let bench = Bench::start(DecoderChoice::Auto, Pace::Live);
    let idr = 120;
    for unit in units[..4].iter().chain(&units[idr..idr + 4]) {
        bench.push(unit);
    }
    let shown = |log: &Log| log.pictures.len() >= 4;
    bench.seen.wait("pictures after the second IDR", shown, |log| {
        let failed = log
            .events
            .iter()
            .any(|event| matches!(event, ReceiveEvent::Failed { .. }));
        assert!(!failed, "{:?}", log.events);
    });
}
