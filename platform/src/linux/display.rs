//! The display server and the credential store of the session this process belongs to.

use std::path::{Path, PathBuf};

use crate::facts::{CredentialStore, DisplayServer};

use super::System;

/// Folders with D-Bus service files, when `XDG_DATA_DIRS` does not say (XDG base directory specification).
const DATA_DIRS: &str = "/usr/local/share:/usr/share";

/// What draws windows: Wayland when the session offers it, else X11.
pub fn server(system: &System) -> DisplayServer {
    if let Some(name) = system.variable("WAYLAND_DISPLAY") {
        return DisplayServer::Wayland {
            name: name.to_owned(),
            reachable: wayland_socket(system, name).is_some_and(|socket| system.exists(socket)),
        };
    }
    if let Some(name) = system.variable("DISPLAY") {
        return DisplayServer::X11 {
            name: name.to_owned(),
            reachable: x11_socket(name).is_none_or(|socket| system.exists(socket)),
        };
    }
    DisplayServer::None
}

fn wayland_socket(system: &System, name: &str) -> Option<PathBuf> {
    if Path::new(name).is_absolute() {
        return Some(PathBuf::from(name));
    }
    Some(Path::new(system.variable("XDG_RUNTIME_DIR")?).join(name))
}

/// The socket of a display on this machine (`:7`, `unix:7.0`); `None` for one reached over the network.
fn x11_socket(name: &str) -> Option<PathBuf> {
    let (host, display) = name.rsplit_once(':')?;
    if !matches!(host, "" | "unix") {
        return None;
    }
    let number = display.split('.').next()?;
    Some(PathBuf::from(format!("/tmp/.X11-unix/X{number}")))
}

/// A Secret Service needs two things: a session bus, and a program that answers on it.
pub fn credentials(system: &System) -> CredentialStore {
    let bus_socket = system
        .variable("XDG_RUNTIME_DIR")
        .map(|folder| Path::new(folder).join("bus"));
    let bus = system.variable("DBUS_SESSION_BUS_ADDRESS").is_some()
        || bus_socket.is_some_and(|socket| system.exists(socket));
    if !bus {
        return CredentialStore::Missing {
            reason: "no D-Bus session bus",
        };
    }
    let provider = system
        .variable("XDG_DATA_DIRS")
        .unwrap_or(DATA_DIRS)
        .split(':')
        .map(|folder| Path::new(folder).join("dbus-1/services/org.freedesktop.secrets.service"))
        .any(|service| system.exists(service));
    if provider {
        CredentialStore::SecretService
    } else {
        CredentialStore::Missing {
            reason: "no Secret Service installed, for example gnome-keyring",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Tree;
    use super::*;

    #[test]
    fn wayland_wins_over_the_x_server_it_emulates() {
        let tree = Tree::new().file("/run/user/1000/wayland-0", "");
        let system = tree
            .system()
            .with("WAYLAND_DISPLAY", "wayland-0")
            .with("XDG_RUNTIME_DIR", "/run/user/1000")
            .with("DISPLAY", ":0");
        let expected = DisplayServer::Wayland {
            name: "wayland-0".to_owned(),
            reachable: true,
        };
        assert_eq!(server(&system), expected);
    }

    #[test]
    fn a_display_left_over_in_the_environment_is_not_reachable() {
        let tree = Tree::new();
        assert!(!server(&tree.system().with("DISPLAY", ":99")).usable());
        let tree = tree.file("/tmp/.X11-unix/X99", "");
        assert!(server(&tree.system().with("DISPLAY", ":99.0")).usable());
        assert!(server(&tree.system().with("DISPLAY", "desk:0")).usable());
    }

    #[test]
    fn no_variable_is_no_display() {
        assert_eq!(server(&Tree::new().system()), DisplayServer::None);
    }

    #[test]
    fn a_secret_service_needs_a_bus_and_a_program() {
        let tree = Tree::new();
        let alone = credentials(&tree.system());
        assert_eq!(alone.to_string(), "none (no D-Bus session bus)");
        let tree = tree.file("/run/user/1/bus", "");
        let bus = tree.system().with("XDG_RUNTIME_DIR", "/run/user/1");
        assert!(matches!(credentials(&bus), CredentialStore::Missing { .. }));
        let _tree = tree.file("/usr/share/dbus-1/services/org.freedesktop.secrets.service", "");
        assert_eq!(credentials(&bus), CredentialStore::SecretService);
    }
}
