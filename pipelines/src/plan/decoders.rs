//! The decoder table: one row per GStreamer factory, in the order of preference of this project.
//!
//! The order never depends on GStreamer's ranks alone; a rank of NONE (`GST_PLUGIN_FEATURE_RANK=name:NONE`)
//! takes a candidate out. Properties are applied only when the installed element has them, because names came
//! and went between GStreamer versions. What was run where stands in `docs/decisions/receive-graph.md`.

use crossdesk_core::h264::ChromaFormat;

use crate::receive::DecoderChoice;

/// Operating systems with decoders of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
    /// macOS.
    MacOs,
}

impl Platform {
    /// The one this program was built for; other Unix systems count as Linux.
    pub const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// Where decoded pictures live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Ordinary memory.
    System,
    /// VA-API surfaces of the `va` plugin.
    Va,
    /// NVIDIA CUDA memory.
    Cuda,
    /// Direct3D 11 textures.
    D3d11,
    /// Direct3D 12 resources.
    D3d12,
    /// Vulkan images; read through the `vulkandownload` element, the only way GStreamer maps them.
    Vulkan,
}

impl Memory {
    /// The word used in `status` and `doctor`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Va => "va",
            Self::Cuda => "cuda",
            Self::D3d11 => "d3d11",
            Self::D3d12 => "d3d12",
            Self::Vulkan => "vulkan",
        }
    }

    /// The caps feature GStreamer knows it by; `None` for ordinary memory.
    pub const fn caps_feature(self) -> Option<&'static str> {
        match self {
            Self::System => None,
            Self::Va => Some("memory:VAMemory"),
            Self::Cuda => Some("memory:CUDAMemory"),
            Self::D3d11 => Some("memory:D3D11Memory"),
            Self::D3d12 => Some("memory:D3D12Memory"),
            Self::Vulkan => Some("memory:VulkanImage"),
        }
    }

    /// The memory a caps feature stands for.
    pub fn from_caps_feature(feature: &str) -> Option<Self> {
        [Self::Va, Self::Cuda, Self::D3d11, Self::D3d12, Self::Vulkan]
            .into_iter()
            .find(|memory| memory.caps_feature() == Some(feature))
    }
}

/// A value for an element property that depends on stream or machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// This truth value.
    Bool(bool),
    /// This whole number.
    Int(i32),
    /// This enum or flags nick.
    Nick(&'static str),
    /// The number of processor cores.
    Cores,
    /// True for a stream that needs no picture held back.
    LowDelay,
    /// `normal` when the stream says how many pictures to hold, `strict` when the decoder must find out.
    Compliance,
}

/// What to install or allow so that a candidate appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Package name on Debian and Ubuntu.
    pub debian: Option<&'static str>,
    /// Package name on Fedora.
    pub fedora: Option<&'static str>,
    /// Package name on Arch Linux.
    pub arch: Option<&'static str>,
    /// Device files it needs, any one of them.
    pub devices: &'static [&'static str],
    /// Group that may open the device files.
    pub group: Option<&'static str>,
    /// Environment variables that change or break its choice of driver.
    pub environment: &'static [&'static str],
}

impl Remedy {
    const NONE: Self = Self {
        debian: None,
        fedora: None,
        arch: None,
        devices: &[],
        group: None,
        environment: &[],
    };
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderRow {
    /// GStreamer factory name.
    pub factory: &'static str,
    /// Name of the GStreamer plugin it comes with.
    pub plugin: &'static str,
    /// True when it decodes on a GPU or codec device.
    pub hardware: bool,
    /// Where it exists.
    pub platforms: &'static [Platform],
    /// Properties to set, in this order, each only where the element has it.
    pub settings: &'static [(&'static str, Setting)],
    /// Memory types to ask for, best first.
    pub memory: &'static [Memory],
    /// Chroma formats it may be given.
    pub chroma: &'static [ChromaFormat],
    /// Pictures it holds back beyond what the stream asks for, where that is known and has no cure.
    pub holds: u32,
    /// How to get it.
    pub remedy: Remedy,
}

impl DecoderRow {
    /// True when it may be given pictures of `chroma`.
    pub fn takes(&self, chroma: ChromaFormat) -> bool {
        self.chroma.contains(&chroma)
    }

    /// What to install so that it appears, on every system that packages it.
    pub fn packages(&self) -> String {
        let Remedy {
            debian, fedora, arch, ..
        } = self.remedy;
        let systems = [(debian, "Debian"), (fedora, "Fedora"), (arch, "Arch")];
        let named: Vec<String> = systems
            .iter()
            .filter_map(|(package, system)| package.map(|package| format!("{package} ({system})")))
            .collect();
        if named.is_empty() {
            format!("the GStreamer plugin `{}`", self.plugin)
        } else {
            format!("the package {}", named.join(", "))
        }
    }
}

const ONLY_420: &[ChromaFormat] = &[ChromaFormat::Yuv420];
const EVERY_CHROMA: &[ChromaFormat] = &[
    ChromaFormat::Monochrome,
    ChromaFormat::Yuv420,
    ChromaFormat::Yuv422,
    ChromaFormat::Yuv444,
];
const LINUX: &[Platform] = &[Platform::Linux];
const WINDOWS: &[Platform] = &[Platform::Windows];
const MACOS: &[Platform] = &[Platform::MacOs];
const PC: &[Platform] = &[Platform::Linux, Platform::Windows];
const EVERYWHERE: &[Platform] = &[Platform::Linux, Platform::Windows, Platform::MacOs];

const BAD: Remedy = Remedy {
    debian: Some("gstreamer1.0-plugins-bad"),
    fedora: Some("gstreamer1-plugins-bad-free"),
    arch: Some("gst-plugins-bad"),
    ..Remedy::NONE
};
const VA: Remedy = Remedy {
    arch: Some("gst-plugin-va"),
    devices: &["/dev/dri/renderD128", "/dev/dri/renderD129"],
    group: Some("render"),
    environment: &["LIBVA_DRIVER_NAME", "LIBVA_DRIVERS_PATH", "GST_VA_ALL_DRIVERS"],
    ..BAD
};
const NVIDIA: Remedy = Remedy {
    devices: &["/dev/nvidia0"],
    environment: &["CUDA_VISIBLE_DEVICES"],
    ..BAD
};
const V4L2: Remedy = Remedy {
    devices: &["/dev/video10", "/dev/video0", "/dev/video1", "/dev/media0"],
    group: Some("video"),
    ..BAD
};

/// Every candidate, best first. Rows of one platform keep their order among themselves.
pub const DECODERS: &[DecoderRow] = &[
    DecoderRow {
        factory: "vtdec_hw",
        plugin: "applemedia",
        hardware: true,
        platforms: MACOS,
        settings: &[("qos", Setting::Bool(false))],
        memory: &[Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: Remedy::NONE,
    },
    DecoderRow {
        factory: "vtdec",
        plugin: "applemedia",
        hardware: true,
        platforms: MACOS,
        settings: &[("qos", Setting::Bool(false))],
        memory: &[Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: Remedy::NONE,
    },
    DecoderRow {
        factory: "d3d12h264dec",
        plugin: "d3d12",
        hardware: true,
        platforms: WINDOWS,
        settings: &[("qos", Setting::Bool(false)), ("compliance", Setting::Compliance)],
        memory: &[Memory::D3d12, Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: Remedy::NONE,
    },
    DecoderRow {
        factory: "d3d11h264dec",
        plugin: "d3d11",
        hardware: true,
        platforms: WINDOWS,
        settings: &[("qos", Setting::Bool(false)), ("compliance", Setting::Compliance)],
        memory: &[Memory::D3d11, Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: Remedy::NONE,
    },
    DecoderRow {
        factory: "vah264dec",
        plugin: "va",
        hardware: true,
        platforms: LINUX,
        settings: &[("qos", Setting::Bool(false)), ("compliance", Setting::Compliance)],
        memory: &[Memory::Va, Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: VA,
    },
    DecoderRow {
        factory: "vaapih264dec",
        plugin: "vaapi",
        hardware: true,
        platforms: LINUX,
        settings: &[("qos", Setting::Bool(false)), ("low-latency", Setting::LowDelay)],
        memory: &[Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: Remedy {
            debian: Some("gstreamer1.0-vaapi"),
            fedora: Some("gstreamer1-vaapi"),
            arch: Some("gstreamer-vaapi"),
            environment: &["LIBVA_DRIVER_NAME", "LIBVA_DRIVERS_PATH", "GST_VAAPI_ALL_DRIVERS"],
            ..VA
        },
    },
    DecoderRow {
        factory: "nvh264dec",
        plugin: "nvcodec",
        hardware: true,
        platforms: PC,
        // 1.22 has the CUVID parser's own delay; from 1.24 on it is a GstH264Decoder with `compliance`.
        settings: &[
            ("qos", Setting::Bool(false)),
            ("max-display-delay", Setting::Int(0)),
            ("compliance", Setting::Compliance),
        ],
        memory: &[Memory::Cuda, Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: NVIDIA,
    },
    DecoderRow {
        factory: "nvh264sldec",
        plugin: "nvcodec",
        hardware: true,
        platforms: PC,
        settings: &[("qos", Setting::Bool(false)), ("compliance", Setting::Compliance)],
        memory: &[Memory::Cuda, Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: NVIDIA,
    },
    DecoderRow {
        factory: "qsvh264dec",
        plugin: "qsv",
        hardware: true,
        platforms: PC,
        settings: &[("qos", Setting::Bool(false))],
        memory: &[Memory::Va, Memory::D3d11, Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: VA,
    },
    DecoderRow {
        factory: "v4l2slh264dec",
        plugin: "v4l2codecs",
        hardware: true,
        platforms: LINUX,
        settings: &[("qos", Setting::Bool(false)), ("compliance", Setting::Compliance)],
        memory: &[Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: V4L2,
    },
    DecoderRow {
        factory: "v4l2h264dec",
        plugin: "video4linux2",
        hardware: true,
        platforms: LINUX,
        settings: &[("qos", Setting::Bool(false))],
        memory: &[Memory::System],
        chroma: ONLY_420,
        holds: 0,
        remedy: Remedy {
            debian: Some("gstreamer1.0-plugins-good"),
            fedora: Some("gstreamer1-plugins-good"),
            arch: Some("gst-plugins-good"),
            ..V4L2
        },
    },
    DecoderRow {
        factory: "vulkanh264dec",
        plugin: "vulkan",
        hardware: true,
        platforms: LINUX,
        settings: &[("qos", Setting::Bool(false)), ("compliance", Setting::Compliance)],
        memory: &[Memory::Vulkan],
        chroma: ONLY_420,
        holds: 0,
        remedy: Remedy {
            devices: VA.devices,
            group: VA.group,
            environment: &["VK_ICD_FILENAMES", "VK_DRIVER_FILES"],
            ..BAD
        },
    },
    DecoderRow {
        factory: "avdec_h264",
        plugin: "libav",
        hardware: false,
        platforms: EVERYWHERE,
        // Frame threads add a picture of delay each, so slices only; left alone, `std-compliance` and the
        // kind of threads hang on whether the pipeline happens to be live.
        settings: &[
            ("qos", Setting::Bool(false)),
            ("thread-type", Setting::Nick("slice")),
            ("max-threads", Setting::Cores),
            ("std-compliance", Setting::Compliance),
        ],
        memory: &[Memory::System],
        chroma: EVERY_CHROMA,
        holds: 0,
        remedy: Remedy {
            debian: Some("gstreamer1.0-libav"),
            fedora: Some("gstreamer1-plugin-libav"),
            arch: Some("gst-libav"),
            ..Remedy::NONE
        },
    },
    DecoderRow {
        factory: "openh264dec",
        plugin: "openh264",
        hardware: false,
        platforms: EVERYWHERE,
        settings: &[("qos", Setting::Bool(false))],
        memory: &[Memory::System],
        // It shows monochrome wrongly and refuses 4:2:2 and 4:4:4.
        chroma: ONLY_420,
        // One picture for Main and High, none for Baseline; no setting changes it.
        holds: 1,
        remedy: Remedy {
            fedora: Some("gstreamer1-plugin-openh264"),
            ..BAD
        },
    },
];

/// The names of all decoders of `platform`, best first.
pub fn names(platform: Platform) -> impl Iterator<Item = &'static str> {
    let rows = DECODERS
        .iter()
        .filter(move |row| row.platforms.contains(&platform));
    rows.map(|row| row.factory)
}

/// The row of `factory`.
pub fn row(factory: &str) -> Option<&'static DecoderRow> {
    DECODERS.iter().find(|row| row.factory == factory)
}

/// The rows to try on `platform`, best first; `usable` says whether this machine has a factory (installed, and
/// not ranked NONE).
pub fn candidates(
    choice: &DecoderChoice,
    platform: Platform,
    usable: impl Fn(&str) -> bool,
) -> Vec<&'static DecoderRow> {
    DECODERS
        .iter()
        .filter(|row| row.platforms.contains(&platform))
        .filter(|row| match choice {
            DecoderChoice::Auto => true,
            DecoderChoice::Software => !row.hardware,
            DecoderChoice::Named(name) => row.factory == name,
        })
        .filter(|row| usable(row.factory))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use expect_test::expect;

    use super::*;

    fn order(choice: &DecoderChoice, platform: Platform, missing: &[&str]) -> String {
        candidates(choice, platform, |name| !missing.contains(&name))
            .iter()
            .map(|row| row.factory)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn order_per_platform() {
        let auto = DecoderChoice::Auto;
        expect!["vah264dec vaapih264dec nvh264dec nvh264sldec qsvh264dec v4l2slh264dec v4l2h264dec vulkanh264dec avdec_h264 openh264dec"]
            .assert_eq(&order(&auto, Platform::Linux, &[]));
        expect!["d3d12h264dec d3d11h264dec nvh264dec nvh264sldec qsvh264dec avdec_h264 openh264dec"]
            .assert_eq(&order(&auto, Platform::Windows, &[]));
        expect!["vtdec_hw vtdec avdec_h264 openh264dec"].assert_eq(&order(&auto, Platform::MacOs, &[]));
    }

    #[test]
    fn software_never_touches_hardware_and_a_name_forces_one() {
        assert_eq!(
            order(&DecoderChoice::Software, Platform::Linux, &[]),
            "avdec_h264 openh264dec"
        );
        let named = DecoderChoice::Named("vah264dec".to_owned());
        assert_eq!(order(&named, Platform::Linux, &[]), "vah264dec");
        assert_eq!(order(&named, Platform::Linux, &["vah264dec"]), "");
        assert_eq!(order(&named, Platform::MacOs, &[]), "");
    }

    #[test]
    fn packages_are_named_for_each_system() {
        let said = |factory| row(factory).unwrap().packages();
        assert_eq!(
            said("avdec_h264"),
            "the package gstreamer1.0-libav (Debian), gstreamer1-plugin-libav (Fedora), gst-libav (Arch)"
        );
        assert_eq!(said("vtdec"), "the GStreamer plugin `applemedia`");
    }

    #[test]
    fn a_name_is_known_on_its_platform_only() {
        let here = Platform::current();
        for row in DECODERS {
            let parsed = row.factory.parse::<DecoderChoice>();
            assert_eq!(parsed.is_ok(), row.platforms.contains(&here), "{}", row.factory);
        }
        let unknown = "nosuchdec".parse::<DecoderChoice>().unwrap_err().to_string();
        assert!(
            unknown.contains("\"nosuchdec\"")
                && unknown.contains("auto, software")
                && unknown.contains("avdec_h264"),
            "{unknown}"
        );
    }

    #[test]
    fn rows_are_unique_and_software_comes_last() {
        let names: HashSet<_> = DECODERS.iter().map(|row| row.factory).collect();
        assert_eq!(names.len(), DECODERS.len());
        let first_software = DECODERS.iter().position(|row| !row.hardware).unwrap();
        assert!(DECODERS[first_software..].iter().all(|row| !row.hardware));
        for row in DECODERS {
            assert!(row.takes(ChromaFormat::Yuv420), "{}", row.factory);
            assert!(!row.memory.is_empty(), "{}", row.factory);
        }
    }
}
