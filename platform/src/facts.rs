//! Facts about one machine, as plain data: what `doctor` shows and what its advice is derived from.

use serde::Serialize;

/// Everything known about the machine around this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Kernel and processor, for example `linux x86_64`.
    pub system: String,
    /// The distribution's own name, for example `Debian GNU/Linux 12 (bookworm)`; empty when unknown.
    pub distribution: String,
    /// Which package names apply.
    pub family: Family,
    /// What draws windows here.
    pub display: DisplayServer,
    /// Where passwords can be kept.
    pub credentials: CredentialStore,
    /// What could decode in hardware.
    pub gpu: GpuFacts,
}

impl Machine {
    /// A machine about which nothing could be found out.
    pub fn unknown() -> Self {
        Self {
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            distribution: String::new(),
            family: Family::Other,
            display: DisplayServer::None,
            credentials: CredentialStore::Missing {
                reason: "unknown system",
            },
            gpu: GpuFacts::default(),
        }
    }
}

/// Distributions that share package names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Debian, Ubuntu and what is built from them (`apt-get install`).
    Debian,
    /// Fedora, RHEL and what is built from them (`dnf install`).
    Fedora,
    /// Arch Linux and what is built from it (`pacman -S`).
    Arch,
    /// openSUSE and SLE (`zypper install`).
    Suse,
    /// Alpine (`apk add`).
    Alpine,
    /// macOS, with packages from Homebrew (`brew install`).
    MacOs,
    /// Windows.
    Windows,
    /// Anything else: advice names the plug-in instead of a package.
    Other,
}

impl Family {
    /// The command that installs packages, to be followed by their names.
    pub const fn install_command(self) -> Option<&'static str> {
        match self {
            Self::Debian => Some("apt-get install"),
            Self::Fedora => Some("dnf install"),
            Self::Arch => Some("pacman -S"),
            Self::Suse => Some("zypper install"),
            Self::Alpine => Some("apk add"),
            Self::MacOs => Some("brew install"),
            Self::Windows | Self::Other => None,
        }
    }
}

/// What draws windows on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum DisplayServer {
    /// A Wayland compositor.
    Wayland {
        /// Value of `WAYLAND_DISPLAY`.
        name: String,
        /// True when its socket exists.
        reachable: bool,
    },
    /// An X server.
    X11 {
        /// Value of `DISPLAY`.
        name: String,
        /// True when its socket exists, or when it is on another machine and cannot be told.
        reachable: bool,
    },
    /// Quartz.
    MacOs,
    /// The Windows desktop.
    Windows,
    /// None: pictures can be shown in a terminal only.
    None,
}

impl DisplayServer {
    /// True when a window can be opened as far as can be told without opening one.
    pub const fn usable(&self) -> bool {
        match self {
            Self::Wayland { reachable, .. } | Self::X11 { reachable, .. } => *reachable,
            Self::MacOs | Self::Windows => true,
            Self::None => false,
        }
    }
}

impl std::fmt::Display for DisplayServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let socket = |reachable: &bool| if *reachable { "" } else { ", its socket is missing" };
        match self {
            Self::Wayland { name, reachable } => write!(f, "Wayland {name}{}", socket(reachable)),
            Self::X11 { name, reachable } => write!(f, "X11 {name}{}", socket(reachable)),
            Self::MacOs => f.write_str("macOS"),
            Self::Windows => f.write_str("Windows"),
            Self::None => f.write_str("none"),
        }
    }
}

/// Where passwords can be kept between runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CredentialStore {
    /// The freedesktop Secret Service on the D-Bus session bus.
    SecretService,
    /// The macOS Keychain.
    Keychain,
    /// The Windows Credential Manager.
    CredentialManager,
    /// None; passwords must come in on a descriptor every time.
    Missing {
        /// Why.
        reason: &'static str,
    },
}

impl std::fmt::Display for CredentialStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SecretService => f.write_str("Secret Service"),
            Self::Keychain => f.write_str("Keychain"),
            Self::CredentialManager => f.write_str("Credential Manager"),
            Self::Missing { reason } => write!(f, "none ({reason})"),
        }
    }
}

/// What could decode in hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GpuFacts {
    /// DRM render nodes.
    pub render_nodes: Vec<RenderNode>,
    /// NVIDIA's own device files.
    pub nvidia: NvidiaFacts,
    /// V4L2 devices whose name says that they decode.
    pub codec_devices: Vec<Device>,
    /// The VA-API driver that is asked for and those that are installed.
    pub va: VaDrivers,
}

/// A device file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Its path.
    pub path: String,
    /// What the kernel calls it; empty when it does not say.
    pub name: String,
    /// May this process use it.
    pub access: Access,
}

/// Whether a device file may be opened for reading and writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Access {
    /// Yes.
    Granted,
    /// No; members of `group` may.
    Denied {
        /// Name of the owning group, or its number.
        group: String,
    },
}

/// One `/dev/dri/renderD*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RenderNode {
    /// Its path.
    pub path: String,
    /// Who made the device.
    pub vendor: Vendor,
    /// The kernel driver bound to it; empty when unknown.
    pub driver: String,
    /// May this process use it.
    pub access: Access,
}

/// Makers of GPUs that decode H.264.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// PCI vendor 0x8086.
    Intel,
    /// PCI vendor 0x1002.
    Amd,
    /// PCI vendor 0x10de.
    Nvidia,
    /// A virtual GPU (0x1af4 virtio, 0x15ad VMware, 0x1234 QEMU): no video engine as a rule.
    Virtual,
    /// Another maker, or not on a PCI bus.
    Other,
}

impl Vendor {
    /// The maker behind a PCI vendor number.
    pub const fn from_pci(id: u32) -> Self {
        match id {
            0x8086 => Self::Intel,
            0x1002 => Self::Amd,
            0x10de => Self::Nvidia,
            0x1af4 | 0x15ad | 0x1234 => Self::Virtual,
            _ => Self::Other,
        }
    }
}

/// NVIDIA's own device files and decoding library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NvidiaFacts {
    /// `/dev/nvidia0`, `/dev/nvidia1`, …
    pub devices: Vec<Device>,
    /// Version of the loaded kernel module, when there is one.
    pub driver_version: Option<String>,
    /// Where `libnvcuvid.so.1` was found; the nvcodec decoders need it.
    pub nvcuvid: Option<String>,
}

/// VA-API drivers, the files libva loads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VaDrivers {
    /// Value of `LIBVA_DRIVER_NAME`, which overrides libva's own choice.
    pub requested: Option<String>,
    /// Folders searched, those that exist.
    pub folders: Vec<String>,
    /// Names of the installed drivers, sorted: `iHD` for `iHD_drv_video.so`.
    pub installed: Vec<String>,
}

impl VaDrivers {
    /// The name in `LIBVA_DRIVER_NAME` when no such driver is installed: libva then opens nothing at all.
    pub fn wrong_request(&self) -> Option<&str> {
        self.requested
            .as_deref()
            .filter(|name| !self.installed.iter().any(|installed| installed == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_driver_that_is_not_installed_is_wrong() {
        let mut va = VaDrivers {
            requested: Some("iHD".to_owned()),
            installed: vec!["radeonsi".to_owned()],
            ..VaDrivers::default()
        };
        assert_eq!(va.wrong_request(), Some("iHD"));
        va.installed.push("iHD".to_owned());
        assert_eq!(va.wrong_request(), None);
        va.requested = None;
        assert_eq!(va.wrong_request(), None);
    }

    #[test]
    fn a_display_whose_socket_is_gone_is_not_usable() {
        let display = DisplayServer::X11 {
            name: ":7".to_owned(),
            reachable: false,
        };
        assert!(!display.usable());
        assert_eq!(display.to_string(), "X11 :7, its socket is missing");
    }
}
