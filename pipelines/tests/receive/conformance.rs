//! Conformance streams through our graph: the published pictures, bit by bit.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use crossdesk_core::media::{AccessUnit, TapUnit};
use crossdesk_pipelines::clock;
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::receive::{
    DecoderChoice, Pace, Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput, Refused,
};
use sha1::{Digest, Sha1};

use crate::support::{Bench, PATIENCE, clip, hex, read, repository, samples_of, split};

struct Row {
    file: String,
    pictures: usize,
    digests: [String; 2],
    damaged: bool,
}

fn manifest() -> Vec<Row> {
    let text = String::from_utf8(read(repository().join("tests/data/h264/manifest.tsv"))).unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            Row {
                file: fields[0].to_owned(),
                pictures: fields[3].parse().unwrap(),
                digests: [fields[4].to_owned(), fields[5].to_owned()],
                damaged: fields[6].contains("damaged"),
            }
        })
        .collect()
}

#[test]
fn every_conformance_stream_gives_its_published_pictures() {
    let mut wrong = Vec::new();
    for row in manifest() {
        let bench = Bench::software();
        bench.play(&split(&read(
            repository().join("tests/data/h264").join(&row.file),
        )));
        let (pictures, digest, failures) = bench.seen.look(|log| {
            let failures = log.failures().len();
            (log.pictures.len(), hex(&log.all.clone().finalize()), failures)
        });
        if !row.damaged && (pictures != row.pictures || !row.digests.contains(&digest) || failures > 0) {
            wrong.push(format!(
                "{}: {pictures} of {} pictures, {digest}",
                row.file, row.pictures
            ));
        }
        if row.damaged && pictures == 0 {
            wrong.push(format!("{}: no pictures at all", row.file));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Keeps every picture, and what it looked like when it came.
struct Keeper {
    kept: Mutex<Vec<(String, Picture)>>,
    drained: SyncSender<()>,
}

impl ReceiveOutput for Keeper {
    fn unit(&self, _: TapUnit) {}

    fn picture(&self, picture: Picture) {
        let digest = hex(&Sha1::digest(samples_of(&picture)));
        self.kept.lock().unwrap().push((digest, picture));
    }

    fn event(&self, event: ReceiveEvent) {
        if event == ReceiveEvent::Drained {
            self.drained.send(()).unwrap();
        }
    }
}

/// Pictures are shown in the memory the decoder predicts from, so it must never touch one that is out: neither
/// in the sound streams nor in the damaged ones, with their fields, gaps and reordering.
#[test]
fn no_picture_changes_after_it_was_shown() {
    for row in manifest() {
        let (drained, end) = sync_channel(1);
        let keeper = Arc::new(Keeper {
            kept: Mutex::default(),
            drained,
        });
        let config = ReceiveConfig {
            decoder: DecoderChoice::Software,
            pace: Pace::Lossless,
        };
        let receiver = Receiver::start(&config, keeper.clone()).unwrap();
        for data in split(&read(repository().join("tests/data/h264").join(&row.file))) {
            let unit = AccessUnit {
                data,
                received: clock::now(),
            };
            while receiver.push(unit.clone()) == Err(Refused::Full) {
                receiver.wait_for_room(unit.data.len(), PATIENCE);
            }
        }
        receiver.finish();
        end.recv_timeout(PATIENCE).unwrap();
        for (n, (digest, picture)) in keeper.kept.lock().unwrap().iter().enumerate() {
            let now = hex(&Sha1::digest(samples_of(picture)));
            assert_eq!(*digest, now, "{}: picture {n}", row.file);
        }
    }
}

#[test]
fn every_chroma_format_gives_its_pictures() {
    for name in ["mono-651x365", "yuv422", "yuv444", "bframes", "four-slices"] {
        let (bench, clip) = (Bench::software(), clip(name));
        bench.play(&clip.units);
        assert_eq!(bench.digests(), clip.digests, "{name}");
    }
}

#[test]
fn more_than_eight_bits_is_a_failure_with_a_reason() {
    let bench = Bench::software();
    let deep = read(repository().join("pipelines/tests/data/deep10.h264"));
    for unit in split(&deep) {
        bench.push(&unit);
    }
    let reason = bench.seen.wait(
        "the failure",
        |log| {
            log.events
                .iter()
                .any(|event| matches!(event, ReceiveEvent::Failed { .. }))
        },
        |log| format!("{:?}", log.events),
    );
    assert!(
        reason.contains("StreamUnsupported") && reason.contains("10 bits"),
        "{reason}"
    );
    // The next stream on the same connection is shown.
    let good = clip("baseline");
    bench.play(&good.units);
    assert_eq!(bench.digests(), good.digests);
}

#[test]
fn the_tap_carries_every_unit_once_and_whole() {
    let (bench, clip) = (Bench::software(), clip("bframes"));
    bench.play(&clip.units);
    bench.seen.look(|log| {
        assert_eq!(log.units.len(), clip.units.len());
        for (n, unit) in log.units.iter().enumerate() {
            assert_eq!(unit.sequence as usize, n + 1);
            assert_eq!(unit.idr, n % 15 == 0);
        }
        let tapped: Vec<u8> = log
            .units
            .iter()
            .flat_map(|unit| unit.data.iter().copied())
            .collect();
        let nals = |stream: &[u8]| -> Vec<(u8, usize)> {
            crossdesk_core::h264::nals(stream)
                .map(|nal| (nal.bytes()[0], nal.bytes().len()))
                .filter(|(header, _)| header & 0x1f != 9)
                .collect()
        };
        let count =
            |list: &[(u8, usize)], kind: u8| list.iter().filter(|(header, _)| header & 0x1f == kind).count();
        let (before, after) = (nals(&clip.stream), nals(&tapped));
        for kind in [1, 5] {
            assert_eq!(count(&before, kind), count(&after, kind), "slices");
        }
        assert_eq!(
            (count(&after, 7), count(&after, 8)),
            (3, 3),
            "one SPS and PPS an IDR"
        );
    });
}
