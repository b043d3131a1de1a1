//! Captures of a made-up screen with real encoders.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crossdesk_core::h264::{ChromaFormat, NalKind, Sps, nals};
use crossdesk_core::screen::{Screen, ScreenError, ScreenPixels, Waker};
use crossdesk_core::units::{FrameRate, PixelRect, PixelSize};
use gst::prelude::*;

use super::Capture;
use crate::capture::{CaptureEvent, CaptureFailure, CaptureOutput, CapturedUnit};
use crate::clock;
use crate::plan::capture::{CaptureSettings, Profile};
use crate::plan::source::Bitrate;

/// Longer than anything here takes on a loaded machine; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the test's screen shows.
struct Shown {
    size: PixelSize,
    /// Another number, other pixels all over.
    picture: u32,
    news: bool,
    woken: bool,
    /// True when every look finds another picture.
    lively: bool,
    gone: bool,
}

struct Stage {
    shown: Mutex<Shown>,
    news: Condvar,
}

impl Stage {
    fn new(width: u32, height: u32) -> Arc<Self> {
        Arc::new(Self {
            shown: Mutex::new(Shown {
                size: PixelSize::new(width, height),
                picture: 0,
                news: true,
                woken: false,
                lively: false,
                gone: false,
            }),
            news: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Shown)) {
        let mut shown = self.lock();
        change(&mut shown);
        shown.news = true;
        self.news.notify_all();
    }
}

impl Waker for Stage {
    fn wake(&self) {
        self.lock().woken = true;
        self.news.notify_all();
    }
}

struct FakeScreen {
    stage: Arc<Stage>,
    seen: Option<(PixelSize, u32)>,
}

impl Screen for FakeScreen {
    fn size(&self) -> PixelSize {
        self.stage.lock().size
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ScreenError> {
        let shown = self.stage.lock();
        let quiet = |shown: &mut Shown| !(shown.news || shown.woken || shown.gone);
        let (mut shown, _) = self.stage.news.wait_timeout_while(shown, timeout, quiet).unwrap();
        shown.woken = false;
        if shown.gone {
            return Err(ScreenError::ServerGone("the test says so".to_owned()));
        }
        Ok(std::mem::take(&mut shown.news))
    }

    fn grab(&mut self, read: &mut dyn FnMut(ScreenPixels<'_>, &[PixelRect])) -> Result<(), ScreenError> {
        let mut shown = self.stage.lock();
        shown.news = shown.lively;
        shown.picture += u32::from(shown.lively);
        let (size, picture) = (shown.size, shown.picture);
        drop(shown);
        let mut state = picture.wrapping_add(1).wrapping_mul(0x9e37_79b9);
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        let bytes: Vec<u8> = (0..size.area() * 4).map(|_| noise()).collect();
        let pixels = ScreenPixels {
            data: &bytes,
            stride: size.width as usize * 4,
            size,
        };
        let same = self.seen.replace((size, picture)) == Some((size, picture));
        let changed = [PixelRect::whole(size)];
        read(pixels, if same { &[] } else { &changed });
        Ok(())
    }

    fn waker(&self) -> Arc<dyn Waker> {
        Arc::clone(&self.stage) as Arc<dyn Waker>
    }
}

#[derive(Clone, Debug)]
enum Said {
    Unit(CapturedUnit),
    Event(CaptureEvent),
}

/// Remembers what is delivered and wakes who waits for it.
#[derive(Default)]
struct Log {
    said: Mutex<Vec<Said>>,
    news: Condvar,
}

impl Log {
    fn add(&self, said: Said) {
        self.said.lock().unwrap().push(said);
        self.news.notify_all();
    }

    /// The first thing from `*next` on that `wanted` makes something of; `*next` is then behind it.
    fn wait<T>(&self, next: &mut usize, mut wanted: impl FnMut(&Said) -> Option<T>) -> T {
        let mut said = self.said.lock().unwrap();
        loop {
            while let Some(one) = said.get(*next) {
                *next += 1;
                if let Some(found) = wanted(one) {
                    return found;
                }
            }
            let (more, late) = self.news.wait_timeout(said, PATIENCE).unwrap();
            assert!(!late.timed_out(), "only this was said: {:?}", summary(&more));
            said = more;
        }
    }
}

fn summary(said: &[Said]) -> Vec<String> {
    let line = |said: &Said| match said {
        Said::Unit(unit) => format!("{} bytes, idr {}", unit.data.len(), unit.idr),
        Said::Event(event) => format!("{event:?}"),
    };
    said.iter().map(line).collect()
}

impl CaptureOutput for Log {
    fn unit(&self, unit: CapturedUnit) {
        self.add(Said::Unit(unit));
    }

    fn event(&self, event: CaptureEvent) {
        self.add(Said::Event(event));
    }
}

/// A capture, its screen and what it said so far.
struct Scene {
    stage: Arc<Stage>,
    log: Arc<Log>,
    next: usize,
    capture: Capture,
}

impl Scene {
    fn start(stage: Arc<Stage>, settings: CaptureSettings) -> Self {
        let log = Arc::new(Log::default());
        let screen = FakeScreen {
            stage: Arc::clone(&stage),
            seen: None,
        };
        let capture = Capture::start(
            Box::new(screen),
            settings,
            Arc::clone(&log) as Arc<dyn CaptureOutput>,
        );
        Self {
            stage,
            log,
            next: 0,
            capture,
        }
    }

    fn unit(&mut self) -> CapturedUnit {
        self.log.wait(&mut self.next, |said| match said {
            Said::Unit(unit) => Some(unit.clone()),
            Said::Event(_) => None,
        })
    }

    fn idr(&mut self) -> CapturedUnit {
        loop {
            let unit = self.unit();
            if unit.idr {
                return unit;
            }
        }
    }

    fn event(&mut self) -> CaptureEvent {
        self.log.wait(&mut self.next, |said| match said {
            Said::Event(event) => Some(event.clone()),
            Said::Unit(_) => None,
        })
    }

    /// Waits until units come seldom, as those of a still screen do.
    fn settle(&mut self) {
        let mut before = self.unit();
        loop {
            let unit = self.unit();
            if unit.captured.since(before.captured) > Duration::from_millis(800) {
                return;
            }
            before = unit;
        }
    }
}

fn settings(encoder: &str) -> CaptureSettings {
    CaptureSettings {
        size: None,
        rate: FrameRate { num: 60, den: 1 },
        bitrate: Bitrate::from_kbit(4000),
        profile: Profile::ConstrainedBaseline,
        encoder: Some(encoder.to_owned()),
    }
}

fn sps(unit: &CapturedUnit) -> Sps {
    let nal = nals(&unit.data).find(|nal| nal.kind() == NalKind::Sps);
    Sps::parse(nal.expect("an IDR has its SPS").bytes()).unwrap()
}

#[test]
fn both_software_encoders_promise_never_to_reorder() {
    for (encoder, profile) in [
        ("x264enc", Profile::ConstrainedBaseline),
        ("x264enc", Profile::High),
        ("openh264enc", Profile::ConstrainedBaseline),
    ] {
        let settings = CaptureSettings {
            profile,
            ..settings(encoder)
        };
        let before = clock::now();
        let mut scene = Scene::start(Stage::new(321, 241), settings);
        let started = CaptureEvent::Started {
            encoder: if encoder == "x264enc" {
                "x264enc"
            } else {
                "openh264enc"
            },
            hardware: false,
            size: PixelSize::new(320, 240),
        };
        assert_eq!(scene.event(), started);
        scene.next = 0;
        let first = scene.unit();
        assert!(first.idr);
        // Encoders move timestamps; the picture was taken within this test all the same.
        assert!(
            first.captured >= before && first.captured <= clock::now(),
            "{encoder}"
        );
        let sps = sps(&first);
        let code = sps.codec_string();
        let (baseline, high) = (code.starts_with("avc1.42"), code.starts_with("avc1.64"));
        assert_eq!(
            (baseline, high),
            (profile != Profile::High, profile == Profile::High),
            "{code}"
        );
        assert_eq!(sps.chroma_format, ChromaFormat::Yuv420);
        let restriction = sps
            .vui
            .and_then(|vui| vui.restriction)
            .expect("a promise about order");
        assert_eq!(restriction.max_reorder_frames, 0, "{encoder}");
    }
}

#[test]
fn a_keyframe_comes_when_asked_for_also_of_a_still_screen() {
    for encoder in ["x264enc", "openh264enc"] {
        let mut scene = Scene::start(Stage::new(320, 240), settings(encoder));
        scene.settle();
        scene.capture.request_keyframe();
        assert!(scene.unit().idr, "{encoder}");
        let after = scene.unit();
        assert!(!after.idr, "{encoder}");
    }
}

#[test]
fn a_still_screen_gets_sharp_and_then_a_picture_a_second() {
    let mut scene = Scene::start(Stage::new(320, 240), settings("x264enc"));
    scene.settle();
    scene.stage.change(|shown| shown.picture += 1);
    let changed = scene.unit();
    let refined = scene.unit();
    let pause = refined.captured.since(changed.captured);
    assert!(pause < Duration::from_millis(500), "{pause:?}");
    scene.settle();
}

#[test]
fn rate_bit_rate_and_size_change_while_it_runs() {
    let stage = Stage::new(320, 240);
    stage.change(|shown| shown.lively = true);
    let mut scene = Scene::start(stage, settings("x264enc"));
    let average = |scene: &mut Scene| (0..20).map(|_| scene.unit().data.len()).sum::<usize>() / 20;
    for _ in 0..20 {
        scene.unit();
    }
    let rich = average(&mut scene);
    scene.capture.set_bitrate(Bitrate::from_kbit(1000));
    for _ in 0..20 {
        scene.unit();
    }
    let poor = average(&mut scene);
    assert!(poor * 2 < rich, "{poor} bytes instead of {rich}");

    scene.capture.set_frame_rate(FrameRate { num: 10, den: 1 });
    let mut before = scene.idr();
    for _ in 0..4 {
        let unit = scene.unit();
        let gap = unit.captured.since(before.captured);
        assert!(gap >= Duration::from_millis(100), "{gap:?}");
        before = unit;
    }
    scene.capture.set_size(Some(PixelSize::new(161, 120)));
    let smaller = PixelSize::new(160, 120);
    assert_eq!(scene.event(), CaptureEvent::SizeChanged(smaller));
    let first = scene.unit();
    assert_eq!((first.idr, sps(&first).visible_size()), (true, smaller));
    scene.capture.set_size(None);
    assert_eq!(scene.event(), CaptureEvent::SizeChanged(PixelSize::new(320, 240)));
}

#[test]
fn a_screen_of_another_size_becomes_pictures_of_another_size() {
    for encoder in ["x264enc", "openh264enc"] {
        let mut scene = Scene::start(Stage::new(320, 240), settings(encoder));
        scene.settle();
        scene.stage.change(|shown| shown.size = PixelSize::new(400, 301));
        let larger = PixelSize::new(400, 300);
        assert_eq!(scene.event(), CaptureEvent::SizeChanged(larger), "{encoder}");
        let first = scene.unit();
        assert_eq!((first.idr, sps(&first).visible_size()), (true, larger));
    }
}

#[test]
fn an_encoder_that_dies_is_replaced_by_the_next_one_with_an_idr() {
    crate::gst::init().unwrap();
    let rank = gst::Rank::PRIMARY;
    gst::Element::register(None, "vah264enc", rank, dying::Encoder::static_type()).unwrap();
    let settings = CaptureSettings {
        encoder: None,
        ..settings("")
    };
    let mut scene = Scene::start(Stage::new(320, 240), settings);
    let CaptureEvent::EncoderFailed { encoder, reason } = scene.event() else {
        panic!("the first encoder works");
    };
    assert_eq!((encoder, reason.as_str()), ("vah264enc", "out of surfaces"));
    let CaptureEvent::Started { encoder, .. } = scene.event() else {
        panic!("no other encoder is tried");
    };
    assert_eq!(encoder, "x264enc");
    assert!(scene.unit().idr);
}

#[test]
fn a_screen_that_goes_ends_the_capture() {
    let mut scene = Scene::start(Stage::new(320, 240), settings("x264enc"));
    scene.unit();
    scene.stage.change(|shown| shown.gone = true);
    let gone = CaptureFailure::Screen(ScreenError::ServerGone("the test says so".to_owned()));
    assert_eq!(scene.event(), CaptureEvent::Failed(gone));
}

#[test]
fn an_encoder_that_does_not_exist_ends_the_capture_with_advice() {
    let mut scene = Scene::start(Stage::new(320, 240), settings("x266enc"));
    let CaptureEvent::Failed(failure) = scene.event() else {
        panic!("it started");
    };
    assert!(
        failure.to_string().contains("gstreamer1.0-plugins-ugly"),
        "{failure}"
    );
}

#[test]
fn nothing_is_delivered_after_it_was_dropped() {
    let stage = Stage::new(320, 240);
    stage.change(|shown| shown.lively = true);
    let mut scene = Scene::start(stage, settings("x264enc"));
    scene.unit();
    let Scene { log, capture, .. } = scene;
    drop(capture);
    let count = log.said.lock().unwrap().len();
    assert_eq!(Arc::strong_count(&log), 1, "every thread of it has ended");
    assert_eq!(log.said.lock().unwrap().len(), count);
}

/// A hardware encoder that takes a picture and dies of it.
mod dying {
    use std::sync::LazyLock;

    use gst::glib;
    use gst::prelude::*;
    use gst::subclass::prelude::*;

    glib::wrapper! {
        pub struct Encoder(ObjectSubclass<imp::Encoder>) @extends gst::Element, gst::Object;
    }

    mod imp {
        use super::*;

        #[derive(Default)]
        pub struct Encoder;

        #[glib::object_subclass]
        impl ObjectSubclass for Encoder {
            const NAME: &'static str = "CrossDeskDyingEncoder";
            type Type = super::Encoder;
            type ParentType = gst::Element;
        }

        impl ObjectImpl for Encoder {
            fn constructed(&self) {
                self.parent_constructed();
                let template = |name| self.obj().pad_template(name).unwrap();
                let sink = gst::Pad::builder_from_template(&template("sink"))
                    .chain_function(|_, encoder, _| {
                        let encoder = encoder.unwrap().downcast_ref::<super::Encoder>().unwrap();
                        gst::element_error!(encoder, gst::ResourceError::Failed, ("out of surfaces"));
                        Err(gst::FlowError::Error)
                    })
                    .event_function(|_, _, _| true)
                    .build();
                let src = gst::Pad::from_template(&template("src"));
                self.obj().add_pad(&sink).unwrap();
                self.obj().add_pad(&src).unwrap();
            }
        }

        impl GstObjectImpl for Encoder {}

        impl ElementImpl for Encoder {
            fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
                static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
                    let class = "Codec/Encoder/Video/Hardware";
                    gst::subclass::ElementMetadata::new("Dying encoder", class, "Dies", "CrossDesk")
                });
                Some(&METADATA)
            }

            fn pad_templates() -> &'static [gst::PadTemplate] {
                static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
                    let pads = [
                        ("sink", gst::PadDirection::Sink, "video/x-raw,format=NV12"),
                        (
                            "src",
                            gst::PadDirection::Src,
                            "video/x-h264,stream-format=byte-stream",
                        ),
                    ];
                    let template = |(name, direction, caps): (&str, _, &str)| {
                        let caps = caps.parse().unwrap();
                        gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).unwrap()
                    };
                    pads.into_iter().map(template).collect()
                });
                &TEMPLATES
            }
        }
    }
}
