//! Real files and real encoders, checked by what comes out and in which order.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crossdesk_core::media::AccessUnit;
use crossdesk_core::time::Monotonic;

use super::*;
use crate::pixels::desktop;
use crossdesk_core::units::PixelSize;
use gst::prelude::*;
use gst_video::VideoFrameExt;

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
enum Seen {
    Unit(AccessUnit),
    Event(SourceEvent),
}

struct Recorder(SyncSender<Seen>);

impl SourceOutput for Recorder {
    fn unit(&self, unit: AccessUnit) {
        let _ = self.0.try_send(Seen::Unit(unit));
    }

    fn event(&self, event: SourceEvent) {
        let _ = self.0.try_send(Seen::Event(event));
    }
}

struct Watched {
    source: Source,
    seen: Receiver<Seen>,
}

fn watch(text: &str) -> Watched {
    let (send, seen) = sync_channel(10_000);
    let spec = SourceSpec::parse(text).expect(text);
    let source = Source::start(spec, None, Arc::new(Recorder(send)));
    Watched { source, seen }
}

impl Watched {
    fn next(&self) -> Seen {
        self.seen.recv_timeout(LIMIT).expect("the source says something")
    }

    fn unit(&self) -> AccessUnit {
        match self.next() {
            Seen::Unit(unit) => unit,
            Seen::Event(event) => panic!("{event:?}"),
        }
    }

    fn opened(&self) {
        assert!(matches!(self.next(), Seen::Event(SourceEvent::Opened { .. })));
    }

    fn failure(&self) -> SourceFailure {
        match self.next() {
            Seen::Event(SourceEvent::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// All access units up to the end of a source that plays once.
    fn all(&self) -> Vec<AccessUnit> {
        self.opened();
        let mut units = Vec::new();
        loop {
            match self.next() {
                Seen::Unit(unit) => units.push(unit),
                Seen::Event(SourceEvent::Ended) => return units,
                Seen::Event(event) => panic!("{event:?}"),
            }
        }
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/data/h264")
        .join(name)
}

/// A file of its own for one test, removed afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("crossdesk-source-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    fn uri(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs a pipeline to its end.
fn run_pipeline(text: &str) {
    crate::gst::init().unwrap();
    let pipeline = gst::parse::launch(text).unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let bus = pipeline.bus().unwrap();
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let message = bus.timed_pop_filtered(gst::ClockTime::from_seconds(30), &kinds);
    pipeline.set_state(gst::State::Null).unwrap();
    let message = message.expect(text);
    assert_eq!(message.type_(), gst::MessageType::Eos, "{message:?}");
}

/// A recording with B-frames at 25 pictures a second.
fn recording(muxer: &str) -> Scratch {
    let file = Scratch::new(&format!("bframes.{muxer}"), b"");
    run_pipeline(&format!(
        "videotestsrc num-buffers=20 ! video/x-raw,width=64,height=64,framerate=25/1 ! \
         x264enc bframes=2 b-adapt=false ! h264parse ! {muxer} ! filesink location={}",
        file.0.display()
    ));
    file
}

/// True when an access unit holds an IDR slice.
fn is_idr(unit: &AccessUnit) -> bool {
    unit.data
        .windows(4)
        .any(|four| four[..3] == [0, 0, 1] && four[3] & 0x1f == 5)
}

fn has_parameter_sets(unit: &AccessUnit) -> bool {
    let has = |kind| {
        unit.data
            .windows(4)
            .any(|four| four[..3] == [0, 0, 1] && four[3] & 0x1f == kind)
    };
    has(7) && has(8)
}

/// All bytes, without the access unit delimiter that `h264parse` puts before each access unit.
fn joined(units: &[AccessUnit]) -> Vec<u8> {
    let delimiter = b"\0\0\0\x01\x09\xf0";
    let bare = units
        .iter()
        .map(|unit| unit.data.strip_prefix(delimiter).unwrap_or(&unit.data));
    bare.flatten().copied().collect()
}

fn gaps(units: &[AccessUnit]) -> Vec<u128> {
    let times: Vec<Monotonic> = units.iter().map(|unit| unit.received).collect();
    times
        .windows(2)
        .map(|two| two[1].since(two[0]).as_millis())
        .collect()
}

#[test]
fn a_raw_file_comes_out_whole_in_access_units_at_thirty_a_second() {
    let watched = watch(&format!("file:{}?once", data("SVA_NL2_E.264").display()));
    let units = watched.all();
    assert_eq!(units.len(), 17);
    assert!(joined(&units) == std::fs::read(data("SVA_NL2_E.264")).unwrap());
    let took = units[16].received.since(units[0].received);
    assert!(took >= Duration::from_millis(16 * 33), "{took:?}");
}

#[test]
fn a_looped_file_shows_the_same_pictures_each_round() {
    let watched = watch(&format!("file:{}", data("SVA_NL2_E.264").display()));
    watched.opened();
    let units: Vec<_> = (0..3 * 17).map(|_| watched.unit()).collect();
    for (n, unit) in units.iter().enumerate() {
        assert!(unit.data == units[n % 17].data, "{n}");
    }
}

#[test]
fn containers_are_paced_by_decoding_time_and_carry_their_parameter_sets() {
    for muxer in ["mp4mux", "matroskamux"] {
        let file = recording(muxer);
        let units = watch(&(file.uri() + "?once")).all();
        assert_eq!(units.len(), 20, "{muxer}");
        assert!(is_idr(&units[0]) && has_parameter_sets(&units[0]), "{muxer}");
        let took = units[19].received.since(units[0].received);
        assert!(took >= Duration::from_millis(19 * 40 - 5), "{muxer}: {took:?}");
        // Paced by presentation time, a B-frame would follow its reference at once.
        let together = gaps(&units).iter().filter(|gap| **gap < 5).count();
        assert!(together <= 2, "{muxer}: {:?}", gaps(&units));
    }
}

#[test]
fn files_that_cannot_be_played_say_why() {
    let webm = Scratch::new("vp8.webm", b"");
    run_pipeline(&format!(
        "videotestsrc num-buffers=3 ! vp8enc ! webmmux ! filesink location={}",
        webm.0.display()
    ));
    let empty = Scratch::new("empty.h264", b"");
    let cases = [
        (empty.uri(), ErrorCode::SourceInvalid, "empty"),
        (webm.uri(), ErrorCode::SourceInvalid, "vp8"),
        (
            "file:/nowhere/at/all.mp4".to_owned(),
            ErrorCode::SourceUnreachable,
            "no file",
        ),
        ("file:/".to_owned(), ErrorCode::SourceInvalid, "regular file"),
        (
            "file:/dev/zero".to_owned(),
            ErrorCode::SourceInvalid,
            "regular file",
        ),
    ];
    for (uri, code, word) in cases {
        let failure = watch(&uri).failure();
        assert_eq!(
            (failure.code, failure.retryable),
            (code, false),
            "{uri}: {failure:?}"
        );
        assert!(failure.reason.contains(word), "{failure:?}");
    }
}

#[test]
fn content_that_is_no_h264_is_named() {
    let text = Scratch::new("text", b"hello\n");
    let hevc = Scratch::new("hevc.h264", b"\0\0\0\x01\x40\x01\x0c\x01\0\0\0\x01\x42\x01\x01");
    let cut = Scratch::new("cut.mp4", b"\0\0\0\x18ftypisom\0\0\0\0isomiso2\0\0\0\x08free");
    let sps_only = Scratch::new("sps", b"\0\0\0\x01\x67\x42\xc0\x1e\xff");
    for (file, word) in [
        (&text, "neither"),
        (&hevc, "HEVC"),
        (&cut, ""),
        (&sps_only, "cannot be played"),
    ] {
        let failure = watch(&file.uri()).failure();
        assert_eq!(failure.code, ErrorCode::SourceInvalid, "{failure:?}");
        assert!(
            failure.reason.contains(word) && !failure.reason.is_empty(),
            "{failure:?}"
        );
    }
}

#[test]
fn a_damaged_recording_is_played_on() {
    let mut bytes = b"garbage in front ".to_vec();
    let clean = std::fs::read(data("SVA_NL2_E.264")).unwrap();
    bytes.extend(&clean[..clean.len() * 3 / 4]);
    for at in (2000..bytes.len()).step_by(97) {
        bytes[at] ^= 0x55;
    }
    let file = Scratch::new("damaged", &bytes);
    let watched = watch(&file.uri());
    watched.opened();
    for _ in 0..40 {
        watched.unit();
    }
}

#[test]
fn dropping_a_source_ends_its_deliveries() {
    let Watched { source, seen } = watch("test:?size=160x120&fps=60");
    seen.recv_timeout(LIMIT).unwrap();
    drop(source);
    // The sender lives in the source's threads: once they are gone the channel says so.
    let end = loop {
        if let Err(end) = seen.recv_timeout(LIMIT) {
            break end;
        }
    };
    assert_eq!(end, RecvTimeoutError::Disconnected);
}

/// Decodes access units and gives the numbers their marks say.
fn decoded_numbers(units: &[AccessUnit], size: PixelSize) -> Vec<Option<u32>> {
    let text = "appsrc name=in is-live=true format=time \
         caps=video/x-h264,stream-format=byte-stream,alignment=au ! h264parse ! \
         avdec_h264 thread-type=slice std-compliance=normal ! appsink name=out sync=false";
    let pipeline = gst::parse::launch(text)
        .unwrap()
        .downcast::<gst::Pipeline>()
        .unwrap();
    let input = pipeline
        .by_name("in")
        .unwrap()
        .downcast::<gst_app::AppSrc>()
        .unwrap();
    let output = pipeline
        .by_name("out")
        .unwrap()
        .downcast::<gst_app::AppSink>()
        .unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let numbers = units.iter().map(|unit| {
        input
            .push_buffer(gst::Buffer::from_slice(unit.data.clone()))
            .unwrap();
        let sample = output.try_pull_sample(gst::ClockTime::from_seconds(20)).unwrap();
        let info = gst_video::VideoInfo::from_caps(sample.caps().unwrap()).unwrap();
        let frame =
            gst_video::VideoFrameRef::from_buffer_ref_readable(sample.buffer().unwrap(), &info).unwrap();
        let stride = usize::try_from(frame.plane_stride()[0]).unwrap();
        desktop::read_marks(frame.plane_data(0).unwrap(), stride, size)
    });
    let numbers = numbers.collect();
    pipeline.set_state(gst::State::Null).unwrap();
    numbers
}

#[test]
fn the_generated_desktop_counts_its_pictures() {
    let watched = watch("test:?size=640x360&fps=60&frames=40");
    let units = watched.all();
    assert!(is_idr(&units[0]) && has_parameter_sets(&units[0]));
    let numbers = decoded_numbers(&units, PixelSize::new(640, 360));
    let numbers: Vec<u32> = numbers
        .into_iter()
        .map(|number| number.expect("marks are readable"))
        .collect();
    assert_eq!(numbers.first(), Some(&0));
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{numbers:?}");
    assert_eq!(numbers.last(), Some(&39));
}

#[test]
fn a_keyframe_comes_when_it_is_asked_for_and_once_a_second_anyway() {
    let watched = watch("test:?size=160x120&fps=100&gop=100000");
    watched.opened();
    assert!(is_idr(&watched.unit()));
    for _ in 0..5 {
        assert!(!is_idr(&watched.unit()));
    }
    watched.source.request_keyframe();
    let next: Vec<_> = (0..100).map(|_| watched.unit()).collect();
    let idr: Vec<usize> = (0..100).filter(|n| is_idr(&next[*n])).collect();
    // Asked for once, it comes once; a busy machine may have let some pictures pass before it saw the wish.
    assert_eq!(idr.len(), 1, "{idr:?}");

    // At four pictures a second the wish is seen long before the next one is drawn, which then is the keyframe.
    let slow = watch("test:?size=160x120&fps=4&gop=100000");
    slow.opened();
    assert!(is_idr(&slow.unit()));
    for _ in 0..3 {
        assert!(!is_idr(&slow.unit()));
        slow.source.request_keyframe();
        assert!(
            is_idr(&slow.unit()),
            "the next picture is the one that was asked for"
        );
    }

    let regular = watch("test:?size=160x120&fps=50");
    regular.opened();
    let units: Vec<_> = (0..120).map(|_| regular.unit()).collect();
    let keyframes: Vec<_> = units.iter().filter(|unit| is_idr(unit)).collect();
    assert!(keyframes.len() >= 2);
    for two in keyframes.windows(2) {
        let gap = two[1].received.since(two[0].received);
        assert!(gap < Duration::from_millis(1500), "{gap:?}");
        assert!(has_parameter_sets(two[1]));
    }
}

#[test]
fn slices_are_counted_as_asked() {
    for slices in [1, 4] {
        let watched = watch(&format!("test:?size=640x480&fps=60&slices={slices}&frames=8"));
        for unit in watched.all() {
            let slice = |four: &[u8]| four[..3] == [0, 0, 1] && matches!(four[3] & 0x1f, 1 | 5);
            let found = unit.data.windows(4).filter(|four| slice(four)).count();
            assert_eq!(found, slices);
        }
    }
}

#[test]
fn sources_that_do_not_end_are_counted_until_they_do() {
    let mut left = Stragglers(Vec::new());
    let mut running: Vec<_> = (0..MOST_STRAGGLERS)
        .map(|_| {
            assert!(left.has_room());
            let (finished, done) = sync_channel(1);
            left.add(done);
            finished
        })
        .collect();
    assert!(!left.has_room());
    // One says that it ended, another ends without a word.
    running[0].send(()).expect("a slot is free");
    assert!(left.has_room());
    running.truncate(1);
    assert!(left.has_room());
    assert!(left.0.is_empty());
}
