//! What is captured, how it is encoded, and who makes its pictures; the plan of one encoder has a stable text form.

use std::fmt;

use crossdesk_core::units::{FrameRate, PixelSize};

use super::encoder::{ENCODERS, EncoderPlan, EncoderRow, EncoderSettings};
use super::source::Bitrate;

/// Most pictures from one keyframe to the next. Keyframes are sent when asked for; this is for guests that cannot
/// ask: ten seconds at full rate.
const GOP: u32 = 600;

/// Who makes pictures of a desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenRow {
    /// What draws the desktop.
    pub desktop: &'static str,
    /// What takes pictures of it.
    pub by: &'static str,
    /// True when it was run; the others have no code yet.
    pub tested: bool,
}

/// Every desktop that is planned for.
pub const SCREENS: &[ScreenRow] = &[
    ScreenRow {
        desktop: "X11",
        by: "the platform crate: MIT-SHM, DAMAGE, XFIXES",
        tested: true,
    },
    ScreenRow {
        desktop: "Wayland",
        by: "pipewiresrc, by the ScreenCast portal",
        tested: false,
    },
    ScreenRow {
        desktop: "macOS",
        by: "avfvideosrc capture-screen=true",
        tested: false,
    },
    ScreenRow {
        desktop: "Windows",
        by: "d3d11screencapturesrc",
        tested: false,
    },
];

/// Which profile a guest's decoder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Every browser has it.
    ConstrainedBaseline,
    /// Better tools for the same bits, for guests that are programs like this one.
    High,
}

impl Profile {
    /// Its name in GStreamer caps.
    pub const fn caps_name(self) -> &'static str {
        match self {
            Self::ConstrainedBaseline => "constrained-baseline",
            Self::High => "high",
        }
    }
}

/// What is asked of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSettings {
    /// Size of the encoded pictures; the screen's own when unset. Made even.
    pub size: Option<PixelSize>,
    /// Most pictures per second.
    pub rate: FrameRate,
    /// Target of the encoder.
    pub bitrate: Bitrate,
    /// What the guest decodes.
    pub profile: Profile,
    /// The only encoder to use, by the name of its element; the best that works when unset.
    pub encoder: Option<String>,
}

impl CaptureSettings {
    /// The encoders to try, in this order.
    pub fn candidates(&self) -> impl Iterator<Item = &'static EncoderRow> {
        ENCODERS
            .iter()
            .filter(|row| row.platform.is_here())
            .filter(|row| self.encoder.as_ref().is_none_or(|name| name == row.element))
    }
}

/// One screen, one encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlan {
    /// Size of the pictures that are taken, edges even.
    pub taken: PixelSize,
    /// Size of the pictures that are encoded, edges even.
    pub encoded: PixelSize,
    /// Most pictures per second.
    pub rate: FrameRate,
    /// The profile asked for.
    pub profile: Profile,
    /// The encoder.
    pub encoder: EncoderPlan,
}

impl CapturePlan {
    /// The plan for a screen of size `screen` with the encoder `row`.
    pub fn new(row: &'static EncoderRow, screen: PixelSize, settings: &CaptureSettings) -> Self {
        let wanted = EncoderSettings {
            gop: GOP,
            bitrate: settings.bitrate,
            slices: 0,
        };
        let mut encoder = EncoderPlan::new(row, &wanted);
        // A picture must be on its way before the next one is due; bursts of the generated desktop may be longer.
        for (name, value) in &mut encoder.properties {
            if *name == "vbv-buf-capacity" {
                *value = "120".to_owned();
            }
        }
        if row.element == "x264enc" {
            // Nobody sees what finer quantizers add, and a still screen is done twice as soon.
            encoder.properties.push(("qp-min", "18".to_owned()));
            if settings.profile == Profile::High {
                // Its fastest preset leaves out what High is for.
                let tools = ["cabac", "dct8x8"].map(|name| (name, "true".to_owned()));
                encoder.properties.extend(tools);
            }
        }
        Self {
            taken: even(screen),
            encoded: even(settings.size.unwrap_or(screen)),
            rate: settings.rate,
            profile: settings.profile,
            encoder,
        }
    }
}

/// Edges that 4:2:0 can have.
pub fn even(size: PixelSize) -> PixelSize {
    let even = size.even();
    PixelSize::new(even.width.max(2), even.height.max(2))
}

impl fmt::Display for CapturePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            taken, encoded, rate, ..
        } = self;
        write!(f, "{}x{} at {}/{}", taken.width, taken.height, rate.num, rate.den)?;
        write!(f, " ! {}x{} ! {}", encoded.width, encoded.height, self.encoder)?;
        write!(f, " ! {}", self.profile.caps_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn settings() -> CaptureSettings {
        CaptureSettings {
            size: None,
            rate: FrameRate { num: 60, den: 1 },
            bitrate: Bitrate::from_kbit(8000),
            profile: Profile::ConstrainedBaseline,
            encoder: None,
        }
    }

    #[test]
    fn every_encoder_has_a_stable_plan() {
        let screen = PixelSize::new(1921, 1081);
        let plan = |row| CapturePlan::new(row, screen, &settings()).to_string() + "\n";
        expect![[r#"
            1920x1080 at 60/1 ! 1920x1080 ! vtenc_h264_hw [NV12] allow-frame-reordering=false realtime=true max-keyframe-interval=600 bitrate=8000 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! vah264enc [NV12] b-frames=0 ref-frames=1 rate-control=cbr target-usage=7 key-int-max=600 bitrate=8000 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! vah264lpenc [NV12] b-frames=0 ref-frames=1 rate-control=cbr target-usage=7 key-int-max=600 bitrate=8000 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! nvh264enc [NV12] zerolatency=true bframes=0 rc-mode=cbr preset=low-latency-hq gop-size=600 bitrate=8000 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! qsvh264enc [NV12] b-frames=0 low-latency=true rate-control=cbr target-usage=7 gop-size=600 bitrate=8000 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! v4l2h264enc [NV12] extra-controls=controls,video_bitrate=8000000,video_gop_size=600,video_b_frames=0 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! d3d12h264enc [NV12] rate-control=cbr ref-frames=1 gop-size=600 bitrate=8000 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! mfh264enc [NV12] low-latency=true bframes=0 rc-mode=cbr gop-size=600 bitrate=8000 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! x264enc [I420] tune=zerolatency speed-preset=ultrafast bframes=0 vbv-buf-capacity=120 key-int-max=600 bitrate=8000 qp-min=18 ! constrained-baseline
            1920x1080 at 60/1 ! 1920x1080 ! openh264enc [I420] usage-type=screen rate-control=bitrate complexity=low scene-change-detection=false gop-size=600 bitrate=8000000 ! constrained-baseline
        "#]].assert_eq(&ENCODERS.iter().map(plan).collect::<String>());
    }

    #[test]
    fn a_smaller_picture_is_scaled_and_a_named_encoder_is_the_only_one() {
        let settings = CaptureSettings {
            size: Some(PixelSize::new(1281, 720)),
            profile: Profile::High,
            encoder: Some("openh264enc".to_owned()),
            ..settings()
        };
        let rows: Vec<_> = settings.candidates().collect();
        assert_eq!(rows.len(), 1);
        let plan = CapturePlan::new(rows[0], PixelSize::new(2560, 1440), &settings);
        expect!["2560x1440 at 60/1 ! 1280x720 ! openh264enc [I420] usage-type=screen rate-control=bitrate complexity=low scene-change-detection=false gop-size=600 bitrate=8000000 ! high"].assert_eq(&plan.to_string());
    }

    #[test]
    fn only_what_was_run_is_called_tested() {
        let tested: Vec<_> = SCREENS
            .iter()
            .filter(|row| row.tested)
            .map(|row| row.desktop)
            .collect();
        assert_eq!(tested, ["X11"]);
    }
}
