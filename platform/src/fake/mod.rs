//! Made-up machines, for tests of the advice `doctor` gives, and an input that records, for tests of a host.

mod input;

pub use input::{FakeInput, Told};

use crate::facts::{
    Access, CredentialStore, DisplayServer, Family, GpuFacts, Machine, RenderNode, VaDrivers, Vendor,
};

/// A Debian machine in a data centre: no GPU, no display, no session bus.
pub fn headless() -> Machine {
    Machine {
        system: "linux x86_64".to_owned(),
        distribution: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        family: Family::Debian,
        display: DisplayServer::None,
        credentials: CredentialStore::Missing {
            reason: "no D-Bus session bus",
        },
        gpu: GpuFacts::default(),
    }
}

/// A Fedora laptop with an Intel GPU and its VA-API driver, all in order.
pub fn intel_laptop() -> Machine {
    Machine {
        distribution: "Fedora Linux 42 (Workstation Edition)".to_owned(),
        family: Family::Fedora,
        display: DisplayServer::Wayland {
            name: "wayland-0".to_owned(),
            reachable: true,
        },
        credentials: CredentialStore::SecretService,
        gpu: GpuFacts {
            render_nodes: vec![RenderNode {
                path: "/dev/dri/renderD128".to_owned(),
                vendor: Vendor::Intel,
                driver: "i915".to_owned(),
                access: Access::Granted,
            }],
            va: VaDrivers {
                requested: None,
                folders: vec!["/usr/lib64/dri".to_owned()],
                installed: vec!["iHD".to_owned()],
            },
            ..GpuFacts::default()
        },
        ..headless()
    }
}
