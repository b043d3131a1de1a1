//! Size, crop and colour: the next picture is right and the geometry epoch says so.

use bytes::Bytes;
use crossdesk_core::h264::Crop;
use crossdesk_core::media::{Color, Matrix};
use crossdesk_core::testing::h264::{rewrite_sps, set_colour, set_crop};
use crossdesk_core::units::PixelSize;
use crossdesk_pipelines::receive::{DecoderChoice, Pace, ReceiveEvent};
use sha1::{Digest, Sha1};

use crate::support::{Bench, clip, hex, split};

/// The planar 4:2:0 samples of `full` (320x240) that remain after `crop`.
fn cut(full: &[u8], crop: Crop) -> Vec<u8> {
    let mut out = Vec::new();
    let mut plane = |start: usize, width: usize, height: usize, by: usize| {
        let [left, right, top, bottom] =
            [crop.left, crop.right, crop.top, crop.bottom].map(|cut| cut as usize / by);
        for row in top..height - bottom {
            out.extend_from_slice(&full[start + row * width + left..start + (row + 1) * width - right]);
        }
    };
    plane(0, 320, 240, 1);
    plane(320 * 240, 160, 120, 2);
    plane(320 * 240 * 5 / 4, 160, 120, 2);
    out
}

/// The first picture of a 320x240 clip, uncropped.
fn whole_picture(units: &[Bytes]) -> Vec<u8> {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use crossdesk_core::media::{AccessUnit, TapUnit};
    use crossdesk_pipelines::clock;
    use crossdesk_pipelines::gst::receive::Receiver;
    use crossdesk_pipelines::picture::Picture;
    use crossdesk_pipelines::receive::{Receive, ReceiveConfig, ReceiveOutput};

    struct First(Mutex<Option<mpsc::SyncSender<Vec<u8>>>>);
    impl ReceiveOutput for First {
        fn unit(&self, _: TapUnit) {}
        fn picture(&self, picture: Picture) {
            if let Some(first) = self.0.lock().unwrap().take() {
                first.send(crate::support::samples_of(&picture)).unwrap();
            }
        }
        fn event(&self, _: ReceiveEvent) {}
    }
    let (sender, first) = mpsc::sync_channel(1);
    let output = std::sync::Arc::new(First(Mutex::new(Some(sender))));
    let receiver = Receiver::start(&ReceiveConfig::default(), output).unwrap();
    let unit = AccessUnit {
        data: units[0].clone(),
        received: clock::now(),
    };
    receiver.push(unit).unwrap();
    first.recv_timeout(crate::support::PATIENCE).unwrap()
}

fn crop(left: u32, right: u32, top: u32, bottom: u32) -> Crop {
    Crop {
        left,
        right,
        top,
        bottom,
    }
}

#[test]
fn every_crop_shows_exactly_what_is_left() {
    let base = clip("baseline");
    let full = whole_picture(&base.units);
    for factory in ["avdec_h264", "openh264dec"] {
        for crop in [
            crop(6, 0, 0, 0),
            crop(0, 6, 0, 0),
            crop(0, 0, 4, 0),
            crop(0, 0, 0, 4),
            crop(6, 2, 4, 8),
            crop(32, 0, 2, 0),
            crop(64, 2, 16, 4),
            crop(66, 0, 0, 2),
            crop(2, 2, 2, 2),
            crop(150, 150, 100, 100),
        ] {
            let stream = rewrite_sps(&base.stream, |sps| set_crop(sps, crop));
            let bench = Bench::start(DecoderChoice::Named(factory.to_owned()), Pace::Live);
            bench.step(&split(&stream)[..1]);
            let expected = hex(&Sha1::digest(cut(&full, crop)));
            bench.seen.look(|log| {
                let size = PixelSize::new(320 - crop.left - crop.right, 240 - crop.top - crop.bottom);
                assert_eq!(log.pictures[0].size, size, "{factory} {crop:?}");
                assert_eq!(log.pictures[0].sha1, expected, "{factory} {crop:?}");
            });
        }
    }
}

#[test]
fn changes_of_size_crop_and_colour_each_start_an_epoch() {
    let base = clip("baseline");
    let cropped = rewrite_sps(&base.stream, |sps| set_crop(sps, crop(6, 2, 4, 8)));
    let tinted = rewrite_sps(&base.stream, |sps| set_colour(sps, 1, true));
    let sized = clip("size-change");
    let full = whole_picture(&base.units);
    // Not `openh264dec`: it loses the picture it holds back when the size changes.
    {
        let bench = Bench::software();
        let parts = [
            base.units.clone(),
            split(&cropped),
            split(&tinted),
            base.units.clone(),
            sized.units.clone(),
        ];
        // Not all at once: a crop at the left takes another graph, and a group that is replaced while it opens
        // is not shown.
        bench.step_or_follow(&parts.concat());
        bench.seen.look(|log| {
            let epochs: Vec<u32> = log.pictures.iter().map(|picture| picture.epoch).collect();
            let expected: Vec<u32> = [(1, 8), (2, 8), (3, 8), (4, 12), (5, 4)]
                .into_iter()
                .flat_map(|(epoch, count)| std::iter::repeat_n(epoch, count))
                .collect();
            assert_eq!(epochs, expected);
            assert_eq!(log.pictures[8].size, PixelSize::new(312, 228));
            let cut = cut(&full, crop(6, 2, 4, 8));
            assert_eq!(log.pictures[8].sha1, hex(&Sha1::digest(cut)));
            let bt709 = Color {
                matrix: Matrix::Bt709,
                full_range: true,
            };
            assert_eq!(log.pictures[16].color, bt709);
            assert_eq!(log.pictures[16].sha1, base.digests[0]);
            assert_eq!(log.pictures[24].color, Color::BT601_LIMITED);
            let tail: Vec<&str> = log.pictures[32..]
                .iter()
                .map(|picture| picture.sha1.as_str())
                .collect();
            assert_eq!(tail, sized.digests);
            assert!(log.failures().is_empty(), "{:?}", log.failures());
        });
    }
}

#[test]
fn colour_comes_from_the_stream_and_nothing_signalled_means_bt601() {
    let hd = Bench::software();
    hd.play(&clip("cropped-1080").units);
    hd.seen.look(|log| {
        assert_eq!(
            log.pictures[0].color,
            Color::BT601_LIMITED,
            "GStreamer guesses BT.709 here"
        );
        assert_eq!(log.pictures[0].size, PixelSize::new(1920, 1080));
    });
    let tagged = Bench::software();
    tagged.play(&clip("bt709-full").units);
    tagged.seen.look(|log| {
        assert_eq!(log.pictures[0].color.matrix, Matrix::Bt709);
        assert!(log.pictures[0].color.full_range);
    });
}

#[test]
fn too_large_a_picture_is_refused_with_a_reason() {
    let base = clip("baseline");
    let large = rewrite_sps(&base.stream, |sps| sps.width_mbs = 600);
    let bench = Bench::software();
    bench.push(&split(&large)[0]);
    let failed = |event: &ReceiveEvent| match event {
        ReceiveEvent::Failed { reason, .. } => reason.contains("9600x240"),
        _ => false,
    };
    bench
        .seen
        .wait("the refusal", |log| log.events.iter().any(failed), |_| ());
    bench.play(&base.units);
    assert_eq!(bench.digests(), base.digests, "the session lives");
}
