//! The encoder table: every H.264 encoder this project knows, in the order in which it prefers them.
//!
//! Only `x264enc` and `openh264enc` have been run by the authors; the hardware rows follow the elements'
//! documentation, and a row that does not work on a machine is skipped when it yields no access unit.

use super::source::Bitrate;

/// What is asked of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderSettings {
    /// Most pictures from one keyframe to the next.
    pub gop: u32,
    /// Its target.
    pub bitrate: Bitrate,
    /// Slices per picture; 0 leaves it to the encoder.
    pub slices: u32,
}

/// In what unit an encoder takes its bit rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitrateUnit {
    /// Thousands of bits per second.
    Kbit,
    /// Bits per second.
    Bit,
}

/// How an encoder is told to put out a keyframe at least every so many pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gop {
    /// A property counting pictures from one keyframe to the next.
    Property(&'static str),
    /// The field `video_gop_size` of the V4L2 control structure.
    V4l2Control,
}

/// Memory layout an encoder takes without converting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelLayout {
    /// 4:2:0 in three planes.
    I420,
    /// 4:2:0, chroma interleaved.
    Nv12,
}

impl PixelLayout {
    /// Its name in GStreamer caps.
    pub const fn caps_name(self) -> &'static str {
        match self {
            Self::I420 => "I420",
            Self::Nv12 => "NV12",
        }
    }
}

/// Where a row applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Everywhere.
    Any,
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// True on the system this program was built for.
    pub const fn is_here(self) -> bool {
        match self {
            Self::Any => true,
            Self::Linux => cfg!(target_os = "linux"),
            Self::MacOs => cfg!(target_os = "macos"),
            Self::Windows => cfg!(target_os = "windows"),
        }
    }
}

/// One encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderRow {
    /// Name of the GStreamer element.
    pub element: &'static str,
    /// True for hardware.
    pub hardware: bool,
    /// Where it exists.
    pub platform: Platform,
    /// What it takes.
    pub layout: PixelLayout,
    /// Property and unit of its bit rate.
    pub bitrate: (&'static str, BitrateUnit),
    /// How its keyframe interval is set.
    pub gop: Gop,
    /// Property that sets the number of slices per picture.
    pub slices: Option<&'static str>,
    /// Low-latency settings, no B-frames among them; ones that an installed version lacks are left out.
    pub settings: &'static [(&'static str, &'static str)],
    /// Debian package, or what else provides it.
    pub package: &'static str,
}

const VA: EncoderRow = EncoderRow {
    element: "vah264enc",
    hardware: true,
    platform: Platform::Linux,
    layout: PixelLayout::Nv12,
    bitrate: ("bitrate", BitrateUnit::Kbit),
    gop: Gop::Property("key-int-max"),
    slices: Some("num-slices"),
    settings: &[
        ("b-frames", "0"),
        ("ref-frames", "1"),
        ("rate-control", "cbr"),
        ("target-usage", "7"),
    ],
    package: "gstreamer1.0-plugins-bad",
};

const QSV: EncoderRow = EncoderRow {
    element: "qsvh264enc",
    platform: Platform::Any,
    gop: Gop::Property("gop-size"),
    slices: None,
    settings: &[
        ("b-frames", "0"),
        ("low-latency", "true"),
        ("rate-control", "cbr"),
        ("target-usage", "7"),
    ],
    ..VA
};

const NVIDIA: EncoderRow = EncoderRow {
    element: "nvh264enc",
    platform: Platform::Any,
    gop: Gop::Property("gop-size"),
    slices: None,
    settings: &[
        ("zerolatency", "true"),
        ("bframes", "0"),
        ("rc-mode", "cbr"),
        ("preset", "low-latency-hq"),
    ],
    ..VA
};

/// Hardware first, then software; the first that yields an access unit is used.
pub const ENCODERS: &[EncoderRow] = &[
    EncoderRow {
        element: "vtenc_h264_hw",
        platform: Platform::MacOs,
        gop: Gop::Property("max-keyframe-interval"),
        slices: None,
        settings: &[("allow-frame-reordering", "false"), ("realtime", "true")],
        package: "applemedia plug-in of GStreamer for macOS",
        ..VA
    },
    VA,
    EncoderRow {
        element: "vah264lpenc",
        ..VA
    },
    NVIDIA,
    QSV,
    EncoderRow {
        element: "v4l2h264enc",
        bitrate: ("video_bitrate", BitrateUnit::Bit),
        gop: Gop::V4l2Control,
        slices: None,
        settings: &[],
        package: "gstreamer1.0-plugins-good",
        ..VA
    },
    EncoderRow {
        element: "d3d12h264enc",
        platform: Platform::Windows,
        gop: Gop::Property("gop-size"),
        slices: None,
        settings: &[("rate-control", "cbr"), ("ref-frames", "1")],
        package: "d3d12 plug-in of GStreamer 1.26 or newer",
        ..VA
    },
    EncoderRow {
        element: "mfh264enc",
        platform: Platform::Windows,
        gop: Gop::Property("gop-size"),
        slices: None,
        settings: &[("low-latency", "true"), ("bframes", "0"), ("rc-mode", "cbr")],
        package: "mediafoundation plug-in of GStreamer for Windows",
        ..VA
    },
    EncoderRow {
        element: "x264enc",
        hardware: false,
        platform: Platform::Any,
        layout: PixelLayout::I420,
        slices: None,
        // Sliced threads come with zero latency: all cores work on one picture, none is held back.
        settings: &[
            ("tune", "zerolatency"),
            ("speed-preset", "ultrafast"),
            ("bframes", "0"),
            ("vbv-buf-capacity", "300"),
        ],
        package: "gstreamer1.0-plugins-ugly",
        ..VA
    },
    EncoderRow {
        element: "openh264enc",
        hardware: false,
        platform: Platform::Any,
        layout: PixelLayout::I420,
        bitrate: ("bitrate", BitrateUnit::Bit),
        gop: Gop::Property("gop-size"),
        slices: Some("num-slices"),
        settings: &[
            ("usage-type", "screen"),
            ("rate-control", "bitrate"),
            ("complexity", "low"),
            ("scene-change-detection", "false"),
        ],
        package: "gstreamer1.0-plugins-bad",
    },
];

/// An encoder with every setting it gets, as property and text; `plan_text` is its stable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncoderPlan {
    /// The row it comes from.
    pub row: &'static EncoderRow,
    /// Properties to set, in order.
    pub properties: Vec<(&'static str, String)>,
}

impl EncoderPlan {
    /// Settings of `row` for `wanted`.
    pub fn new(row: &'static EncoderRow, wanted: &EncoderSettings) -> Self {
        let mut properties: Vec<_> = row.settings.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        match row.gop {
            Gop::Property(name) => properties.push((name, wanted.gop.to_string())),
            Gop::V4l2Control => properties.push(("extra-controls", v4l2_controls(row, wanted))),
        }
        if row.gop != Gop::V4l2Control {
            properties.push(row.bitrate_property(wanted.bitrate));
        }
        if wanted.slices > 0 {
            properties.extend(slices(row, wanted.slices));
        }
        Self { row, properties }
    }
}

impl EncoderRow {
    /// The property that sets its target, and the value for `bitrate`.
    pub fn bitrate_property(&self, bitrate: Bitrate) -> (&'static str, String) {
        (self.bitrate.0, rate(self, bitrate).to_string())
    }
}

fn rate(row: &EncoderRow, bitrate: Bitrate) -> u64 {
    match row.bitrate.1 {
        BitrateUnit::Kbit => bitrate.kbit(),
        BitrateUnit::Bit => bitrate.bits(),
    }
}

fn v4l2_controls(row: &EncoderRow, wanted: &EncoderSettings) -> String {
    format!(
        "controls,{}={},video_gop_size={},video_b_frames=0",
        row.bitrate.0,
        rate(row, wanted.bitrate),
        wanted.gop
    )
}

fn slices(row: &EncoderRow, count: u32) -> Option<(&'static str, String)> {
    match (row.element, row.slices) {
        // x264 makes one slice for each thread, so its sliced threads have to go where slices are counted.
        ("x264enc", _) => Some((
            "option-string",
            format!("slices={count}:sliced-threads=1:threads={count}"),
        )),
        (_, Some(property)) => Some((property, count.to_string())),
        _ => None,
    }
}

impl std::fmt::Display for EncoderPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.row.element, self.row.layout.caps_name())?;
        for (name, value) in &self.properties {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::source::SourceSpec;
    use expect_test::expect;

    fn plans(text: &str) -> String {
        let Ok(SourceSpec::Test(source)) = SourceSpec::parse(text) else {
            panic!("{text}");
        };
        let lines = ENCODERS
            .iter()
            .map(|row| EncoderPlan::new(row, &source.encoder()).to_string() + "\n");
        lines.collect()
    }

    #[test]
    fn every_row_has_a_stable_plan() {
        expect![[r#"
            vtenc_h264_hw [NV12] allow-frame-reordering=false realtime=true max-keyframe-interval=30 bitrate=4000
            vah264enc [NV12] b-frames=0 ref-frames=1 rate-control=cbr target-usage=7 key-int-max=30 bitrate=4000 num-slices=4
            vah264lpenc [NV12] b-frames=0 ref-frames=1 rate-control=cbr target-usage=7 key-int-max=30 bitrate=4000 num-slices=4
            nvh264enc [NV12] zerolatency=true bframes=0 rc-mode=cbr preset=low-latency-hq gop-size=30 bitrate=4000
            qsvh264enc [NV12] b-frames=0 low-latency=true rate-control=cbr target-usage=7 gop-size=30 bitrate=4000
            v4l2h264enc [NV12] extra-controls=controls,video_bitrate=4000000,video_gop_size=30,video_b_frames=0
            d3d12h264enc [NV12] rate-control=cbr ref-frames=1 gop-size=30 bitrate=4000
            mfh264enc [NV12] low-latency=true bframes=0 rc-mode=cbr gop-size=30 bitrate=4000
            x264enc [I420] tune=zerolatency speed-preset=ultrafast bframes=0 vbv-buf-capacity=300 key-int-max=30 bitrate=4000 option-string=slices=4:sliced-threads=1:threads=4
            openh264enc [I420] usage-type=screen rate-control=bitrate complexity=low scene-change-detection=false gop-size=30 bitrate=4000000 num-slices=4
        "#]].assert_eq(&plans("test:?size=1280x720&fps=30&bitrate=4000&slices=4"));
    }

    #[test]
    fn hardware_comes_first_and_names_are_unique() {
        let software = ENCODERS.iter().position(|row| !row.hardware).unwrap();
        assert!(ENCODERS[software..].iter().all(|row| !row.hardware));
        for (n, row) in ENCODERS.iter().enumerate() {
            assert!(ENCODERS[..n].iter().all(|earlier| earlier.element != row.element));
        }
    }
}
