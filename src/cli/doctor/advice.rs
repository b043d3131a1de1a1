//! The one fix that helps first, derived from what a decoder needs and what this machine has.

use crossdesk_pipelines::plan::decoders::{DecoderRow, Remedy};
use crossdesk_platform::facts::{Access, Device, Family, Machine, NvidiaFacts, RenderNode, Vendor};

/// What is known about a candidate besides its row in the table.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// One of the verdict words of the report.
    pub verdict: &'a str,
    /// True when its plugin is installed, whether or not it registered this decoder.
    pub plugin: bool,
    /// True when the user switched it off with a rank of NONE.
    pub switched_off: bool,
}

/// What to do first so that the decoder described by `row` works; `None` when there is nothing to do.
pub fn fix(row: &DecoderRow, state: State<'_>, machine: &Machine) -> Option<String> {
    if state.switched_off {
        let name = row.factory;
        return Some(format!("remove {name}:NONE from GST_PLUGIN_FEATURE_RANK"));
    }
    match state.verdict {
        "proven" => None,
        "too slow" if row.hardware => Some("nothing: software is used where it is faster".to_owned()),
        "too slow" => Some("ask for smaller pictures, or make a hardware decoder work".to_owned()),
        "wrong pixels" => Some("update the driver; until it is right, another decoder is used".to_owned()),
        _ if row.hardware => Some(hardware(row, state, machine)),
        "missing" => Some(package(&row.remedy, row.plugin, machine.family)),
        _ => Some(format!(
            "reinstall: {}",
            package(&row.remedy, row.plugin, machine.family)
        )),
    }
}

/// Environment first, as it undoes everything else; then the device, its permission, the packages.
fn hardware(row: &DecoderRow, state: State<'_>, machine: &Machine) -> String {
    let kind = Kind::of(row);
    if let Some(wrong) = wrong_variable(row, machine) {
        return wrong;
    }
    let device = match kind.access(machine) {
        Some(access) => access,
        None => return format!("nothing to install: {}", kind.absent()),
    };
    if let (path, Access::Denied { group }) = device {
        return format!("sudo usermod -aG {group} $USER, then log in again ({path} is closed to you)");
    }
    if !state.plugin {
        return package(&row.remedy, row.plugin, machine.family);
    }
    kind.driver(machine)
        .unwrap_or_else(|| "update the driver; `GST_DEBUG=3` shows what it says".to_owned())
}

fn wrong_variable(row: &DecoderRow, machine: &Machine) -> Option<String> {
    if !row.remedy.environment.contains(&"LIBVA_DRIVER_NAME") {
        return None;
    }
    let va = &machine.gpu.va;
    let wrong = va.wrong_request()?;
    let installed = match va.installed.as_slice() {
        [] => "none is".to_owned(),
        names => names.join(", "),
    };
    Some(format!(
        "unset LIBVA_DRIVER_NAME: {wrong}_drv_video.so is not installed (installed: {installed})"
    ))
}

/// How to install the package that holds a plugin.
fn package(remedy: &Remedy, plugin: &str, family: Family) -> String {
    let name = match family {
        Family::Debian => remedy.debian,
        Family::Fedora => remedy.fedora,
        Family::Arch => remedy.arch,
        _ => None,
    };
    match (family.install_command(), name) {
        (Some(command), Some(name)) if family == Family::MacOs => format!("{command} {name}"),
        (Some(command), Some(name)) => format!("sudo {command} {name}"),
        _ => format!("install the GStreamer plugin `{plugin}`"),
    }
}

/// What kind of device a hardware decoder works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A DRM render node with a VA-API driver.
    Va,
    /// A DRM render node with a Vulkan driver.
    Vulkan,
    /// NVIDIA's own device and library.
    Nvidia,
    /// A V4L2 codec device.
    Codec,
    /// Part of the operating system.
    System,
}

impl Kind {
    fn of(row: &DecoderRow) -> Self {
        match row.plugin {
            "va" | "vaapi" | "qsv" => Self::Va,
            "vulkan" => Self::Vulkan,
            "nvcodec" => Self::Nvidia,
            "v4l2codecs" | "video4linux2" => Self::Codec,
            _ => Self::System,
        }
    }

    /// The best device of this kind and whether it may be used; `None` when there is no such device.
    fn access(self, machine: &Machine) -> Option<(&str, &Access)> {
        let gpu = &machine.gpu;
        let nodes = gpu
            .render_nodes
            .iter()
            .map(|node| (node.path.as_str(), &node.access));
        let mut found: Vec<(&str, &Access)> = match self {
            Self::Va | Self::Vulkan => nodes.collect(),
            Self::Nvidia => pairs(&gpu.nvidia.devices),
            Self::Codec => pairs(&gpu.codec_devices),
            Self::System => vec![("", &Access::Granted)],
        };
        // A device that may be used counts before one that may not.
        found.sort_by_key(|(_, access)| **access != Access::Granted);
        found.into_iter().next()
    }

    /// What is missing when there is no device.
    const fn absent(self) -> &'static str {
        match self {
            Self::Va | Self::Vulkan => "no GPU here (/dev/dri/renderD*)",
            Self::Nvidia => "no NVIDIA GPU here (/dev/nvidia0)",
            Self::Codec => "no codec device here (/dev/video*)",
            Self::System => "this system does not offer it",
        }
    }

    /// The driver file or library to add, when that is what is missing.
    fn driver(self, machine: &Machine) -> Option<String> {
        match self {
            Self::Va => va_driver(&machine.gpu.render_nodes, machine),
            Self::Nvidia => nvidia_library(&machine.gpu.nvidia, machine.family),
            Self::Vulkan | Self::Codec | Self::System => None,
        }
    }
}

fn pairs(devices: &[Device]) -> Vec<(&str, &Access)> {
    devices
        .iter()
        .map(|device| (device.path.as_str(), &device.access))
        .collect()
}

/// The VA-API driver for the GPU at hand, when no driver file for it is installed.
fn va_driver(nodes: &[RenderNode], machine: &Machine) -> Option<String> {
    let vendor = nodes
        .iter()
        .map(|node| node.vendor)
        .find(|vendor| *vendor != Vendor::Other)?;
    let (drivers, debian, fedora, arch) = match vendor {
        Vendor::Intel => (
            &["iHD", "i965"][..],
            "intel-media-va-driver",
            "libva-intel-media-driver",
            "intel-media-driver",
        ),
        Vendor::Amd => (
            &["radeonsi", "r600"][..],
            "mesa-va-drivers",
            "mesa-va-drivers-freeworld",
            "mesa",
        ),
        Vendor::Nvidia => (
            &["nvidia"][..],
            "nvidia-vaapi-driver",
            "nvidia-vaapi-driver",
            "libva-nvidia-driver",
        ),
        Vendor::Virtual => return Some("nothing to install: a virtual GPU has no video decoder".to_owned()),
        Vendor::Other => return None,
    };
    let installed = &machine.gpu.va.installed;
    if drivers
        .iter()
        .any(|driver| installed.iter().any(|name| name == driver))
    {
        return None;
    }
    let package = match machine.family {
        Family::Debian => Some(debian),
        Family::Fedora => Some(fedora),
        Family::Arch => Some(arch),
        _ => None,
    };
    Some(match (machine.family.install_command(), package) {
        (Some(command), Some(package)) => format!("sudo {command} {package}"),
        _ => format!("install the VA-API driver {}_drv_video.so", drivers[0]),
    })
}

/// The package with NVIDIA's decoding library, when the library is missing.
fn nvidia_library(nvidia: &NvidiaFacts, family: Family) -> Option<String> {
    if nvidia.nvcuvid.is_some() {
        return None;
    }
    Some(match family {
        Family::Debian => "sudo apt-get install libnvcuvid1".to_owned(),
        Family::Fedora => "sudo dnf install xorg-x11-drv-nvidia-cuda-libs".to_owned(),
        Family::Arch => "sudo pacman -S nvidia-utils".to_owned(),
        _ => "install libnvcuvid.so.1 from NVIDIA's driver".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use crossdesk_pipelines::plan::decoders::row;
    use crossdesk_platform::facts::VaDrivers;
    use crossdesk_platform::fake;

    use super::*;

    const MISSING: State<'_> = State {
        verdict: "missing",
        plugin: false,
        switched_off: false,
    };

    fn advice(name: &str, state: State<'_>, machine: &Machine) -> String {
        let row = row(name).expect("a decoder of the table");
        fix(row, state, machine).unwrap_or_default()
    }

    #[test]
    fn a_proven_decoder_needs_nothing() {
        let state = State {
            verdict: "proven",
            plugin: true,
            ..MISSING
        };
        assert_eq!(advice("avdec_h264", state, &fake::headless()), "");
    }

    #[test]
    fn software_is_a_package_named_as_the_distribution_does() {
        assert_eq!(
            advice("avdec_h264", MISSING, &fake::headless()),
            "sudo apt-get install gstreamer1.0-libav"
        );
        assert_eq!(
            advice("avdec_h264", MISSING, &fake::intel_laptop()),
            "sudo dnf install gstreamer1-plugin-libav"
        );
        let elsewhere = Machine::unknown();
        assert_eq!(
            advice("avdec_h264", MISSING, &elsewhere),
            "install the GStreamer plugin `libav`"
        );
    }

    #[test]
    fn without_a_gpu_nothing_is_worth_installing() {
        let headless = fake::headless();
        assert!(advice("vah264dec", MISSING, &headless).starts_with("nothing to install"));
        assert!(advice("nvh264dec", MISSING, &headless).contains("/dev/nvidia0"));
        assert!(advice("v4l2h264dec", MISSING, &headless).contains("/dev/video"));
    }

    #[test]
    fn a_wrong_driver_name_comes_before_everything_else() {
        let mut laptop = fake::intel_laptop();
        laptop.gpu.va.requested = Some("i956".to_owned());
        assert_eq!(
            advice("vah264dec", MISSING, &laptop),
            "unset LIBVA_DRIVER_NAME: i956_drv_video.so is not installed (installed: iHD)"
        );
        assert!(!advice("v4l2h264dec", MISSING, &laptop).contains("LIBVA"));
    }

    #[test]
    fn a_closed_device_is_a_group_to_join() {
        let mut laptop = fake::intel_laptop();
        laptop.gpu.render_nodes[0].access = Access::Denied {
            group: "render".to_owned(),
        };
        let state = State {
            plugin: true,
            ..MISSING
        };
        assert!(advice("vah264dec", state, &laptop).starts_with("sudo usermod -aG render $USER"));
    }

    #[test]
    fn a_missing_driver_file_is_the_package_for_this_gpu() {
        let mut laptop = fake::intel_laptop();
        laptop.gpu.va = VaDrivers::default();
        let state = State {
            plugin: true,
            ..MISSING
        };
        assert_eq!(
            advice("vah264dec", state, &laptop),
            "sudo dnf install libva-intel-media-driver"
        );
        laptop.family = Family::Debian;
        assert_eq!(
            advice("vah264dec", state, &laptop),
            "sudo apt-get install intel-media-va-driver"
        );
        laptop.gpu.render_nodes[0].vendor = Vendor::Virtual;
        assert!(advice("vah264dec", state, &laptop).contains("virtual GPU"));
    }

    #[test]
    fn a_rank_of_none_is_undone_where_it_was_set() {
        let state = State {
            switched_off: true,
            ..MISSING
        };
        assert_eq!(
            advice("avdec_h264", state, &fake::headless()),
            "remove avdec_h264:NONE from GST_PLUGIN_FEATURE_RANK"
        );
    }
}
