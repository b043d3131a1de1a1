//! What could decode in hardware, and whether this process may use it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::facts::{Access, Device, GpuFacts, NvidiaFacts, RenderNode, VaDrivers, Vendor};

use super::System;

/// Folders libva is built to search by the common distributions; `LIBVA_DRIVERS_PATH` replaces them.
const VA_FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/dri",
    "/usr/lib/aarch64-linux-gnu/dri",
    "/usr/lib64/dri",
    "/usr/lib/dri",
    "/usr/local/lib/dri",
    "/usr/lib64/dri-nonfree",
];

/// Folders that hold NVIDIA's decoding library when the loader's cache does not name it.
const LIBRARY_FOLDERS: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

const NVCUVID: &str = "libnvcuvid.so.1";

/// What ends the name of every VA-API driver file (libva, `va_openDriver`).
const VA_SUFFIX: &str = "_drv_video.so";

/// Everything that can be found out about hardware decoders.
pub fn facts(system: &System) -> GpuFacts {
    GpuFacts {
        render_nodes: render_nodes(system),
        nvidia: nvidia(system),
        codec_devices: codec_devices(system),
        va: va_drivers(system),
    }
}

fn render_nodes(system: &System) -> Vec<RenderNode> {
    let names = system.names("/dev/dri");
    names
        .iter()
        .filter(|name| name.starts_with("renderD"))
        .map(|name| {
            let device = format!("/sys/class/drm/{name}/device");
            RenderNode {
                path: format!("/dev/dri/{name}"),
                vendor: vendor(system, &device),
                driver: system.link_name(format!("{device}/driver")).unwrap_or_default(),
                access: access(system, &format!("/dev/dri/{name}")),
            }
        })
        .collect()
}

fn vendor(system: &System, device: &str) -> Vendor {
    let id = system.text(format!("{device}/vendor"));
    id.as_deref()
        .and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok())
        .map_or(Vendor::Other, Vendor::from_pci)
}

fn nvidia(system: &System) -> NvidiaFacts {
    let is_gpu = |name: &&String| {
        name.strip_prefix("nvidia")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let devices = system
        .names("/dev")
        .iter()
        .filter(is_gpu)
        .map(|name| device(system, format!("/dev/{name}"), String::new()))
        .collect();
    NvidiaFacts {
        devices,
        driver_version: system.text("/sys/module/nvidia/version"),
        nvcuvid: nvcuvid(system),
    }
}

fn nvcuvid(system: &System) -> Option<String> {
    let found = LIBRARY_FOLDERS
        .iter()
        .map(|folder| format!("{folder}/{NVCUVID}"))
        .find(|path| system.exists(path));
    found.or_else(|| {
        // The cache holds plain strings between its tables; the whole file is some hundred kilobytes.
        let cache = std::fs::read(system.at("/etc/ld.so.cache")).ok()?;
        let needle = NVCUVID.as_bytes();
        let listed = cache.windows(needle.len()).any(|window| window == needle);
        listed.then(|| NVCUVID.to_owned())
    })
}

/// V4L2 devices that decode say so in their name (`rpivid`, `hantro-vpu-dec`, `bcm2835-codec-decode`); a
/// certain answer would need an ioctl, and the decoder proof gives that answer anyway.
fn codec_devices(system: &System) -> Vec<Device> {
    const WORDS: [&str; 5] = ["dec", "vpu", "codec", "rpivid", "venus"];
    let nodes = system.names("/sys/class/video4linux");
    nodes
        .iter()
        .filter_map(|node| {
            let name = system.text(format!("/sys/class/video4linux/{node}/name"))?;
            let lower = name.to_lowercase();
            let decodes = WORDS.iter().any(|word| lower.contains(word)) && !lower.contains("enc");
            decodes.then(|| device(system, format!("/dev/{node}"), name))
        })
        .collect()
}

fn va_drivers(system: &System) -> VaDrivers {
    let asked = system.variable("LIBVA_DRIVERS_PATH");
    let candidates: Vec<&str> = match asked {
        Some(path) => path.split(':').collect(),
        None => VA_FOLDERS.to_vec(),
    };
    let folders: Vec<String> = candidates
        .into_iter()
        .filter(|folder| system.exists(folder))
        .map(str::to_owned)
        .collect();
    let mut installed: Vec<String> = folders
        .iter()
        .flat_map(|folder| system.names(folder))
        .filter_map(|file| Some(file.strip_suffix(VA_SUFFIX)?.to_owned()))
        .collect();
    installed.sort();
    installed.dedup();
    VaDrivers {
        requested: system.variable("LIBVA_DRIVER_NAME").map(str::to_owned),
        folders,
        installed,
    }
}

fn device(system: &System, path: String, name: String) -> Device {
    let access = access(system, &path);
    Device { path, name, access }
}

fn access(system: &System, path: &str) -> Access {
    let place = system.at(path);
    let wanted = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
    if rustix::fs::access(&place, wanted).is_ok() {
        return Access::Granted;
    }
    Access::Denied {
        group: group_of(system, &place),
    }
}

/// The name of the group that owns a file, from `group(5)`, or its number.
fn group_of(system: &System, place: &Path) -> String {
    let Ok(metadata) = std::fs::metadata(place) else {
        return "unknown".to_owned();
    };
    let id = metadata.gid().to_string();
    let groups = system.text("/etc/group").unwrap_or_default();
    let name = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    name.unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Tree;
    use super::*;

    #[test]
    fn a_render_node_names_maker_and_driver() {
        let tree = Tree::new()
            .file("/dev/dri/renderD128", "")
            .file("/dev/dri/card0", "")
            .file("/sys/class/drm/renderD128/device/vendor", "0x8086\n")
            .link(
                "/sys/class/drm/renderD128/device/driver",
                "../../bus/pci/drivers/i915",
            );
        let nodes = facts(&tree.system()).render_nodes;
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].vendor, Vendor::Intel);
        assert_eq!(nodes[0].driver, "i915");
        assert_eq!(nodes[0].access, Access::Granted);
    }

    #[test]
    fn nvidia_counts_gpus_and_not_its_control_devices() {
        let tree = Tree::new()
            .file("/dev/nvidia0", "")
            .file("/dev/nvidiactl", "")
            .file("/dev/nvidia-uvm", "")
            .file("/sys/module/nvidia/version", "550.54.15\n")
            .file("/etc/ld.so.cache", "…\0libnvcuvid.so.1\0…");
        let nvidia = facts(&tree.system()).nvidia;
        assert_eq!(nvidia.devices.len(), 1);
        assert_eq!(nvidia.driver_version.as_deref(), Some("550.54.15"));
        assert_eq!(nvidia.nvcuvid.as_deref(), Some("libnvcuvid.so.1"));
    }

    #[test]
    fn cameras_and_encoders_are_no_decoders() {
        let tree = Tree::new()
            .file("/sys/class/video4linux/video0/name", "HD Webcam C525")
            .file("/sys/class/video4linux/video10/name", "bcm2835-codec-decode")
            .file("/sys/class/video4linux/video11/name", "bcm2835-codec-encode");
        let devices = facts(&tree.system()).codec_devices;
        assert_eq!(devices.len(), 1);
        assert_eq!(devices[0].path, "/dev/video10");
    }

    #[test]
    fn installed_va_drivers_come_from_the_folders_libva_would_search() {
        let tree = Tree::new()
            .file("/usr/lib/x86_64-linux-gnu/dri/iHD_drv_video.so", "")
            .file("/usr/lib/x86_64-linux-gnu/dri/swrast_dri.so", "")
            .file("/opt/va/radeonsi_drv_video.so", "");
        let system = tree.system().with("LIBVA_DRIVER_NAME", "nvidia");
        let va = facts(&system).va;
        assert_eq!(va.installed, ["iHD"]);
        assert_eq!(va.wrong_request(), Some("nvidia"));
        let va = facts(&system.with("LIBVA_DRIVERS_PATH", "/opt/va")).va;
        assert_eq!(va.installed, ["radeonsi"]);
    }

    #[test]
    fn the_group_of_a_device_is_named_from_the_group_file() {
        use std::os::unix::fs::MetadataExt;
        let tree = Tree::new().file("/dev/dri/renderD128", "");
        let place = tree.system().at("/dev/dri/renderD128");
        let gid = std::fs::metadata(&place).expect("just made").gid();
        let tree = tree.file("/etc/group", &format!("root:x:99999:\nrender:x:{gid}:me\n"));
        assert_eq!(group_of(&tree.system(), &place), "render");
    }
}
