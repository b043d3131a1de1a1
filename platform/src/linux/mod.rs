//! Facts about a Linux machine, read from `/dev`, `/sys`, `/etc` and the environment.
//!
//! Everything goes through a [`System`]: the root of a file tree and a set of variables. Tests give it a tree
//! they made; the real one starts at `/`.

mod display;
mod gpu;
mod release;
pub mod x11;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::facts::Machine;

/// Environment variables that say something about the machine.
const VARIABLES: [&str; 7] = [
    "WAYLAND_DISPLAY",
    "DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "LIBVA_DRIVER_NAME",
    "LIBVA_DRIVERS_PATH",
    "XDG_DATA_DIRS",
];

/// Where facts are looked for.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
    variables: HashMap<&'static str, String>,
}

impl System {
    /// This machine.
    pub fn here() -> Self {
        let variables = VARIABLES
            .into_iter()
            .filter_map(|name| Some((name, std::env::var(name).ok()?)))
            .collect();
        Self {
            root: PathBuf::from("/"),
            variables,
        }
    }

    /// A machine whose files lie under `root`, with no variable set.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            variables: HashMap::new(),
        }
    }

    /// The same machine with one more variable set.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.insert(name, value.to_owned());
        self
    }

    /// Everything that can be found out about it.
    pub fn machine(&self) -> Machine {
        let (distribution, family) = release::read(self);
        Machine {
            distribution,
            family,
            display: display::server(self),
            credentials: display::credentials(self),
            gpu: gpu::facts(self),
            ..Machine::unknown()
        }
    }

    /// A variable that is set to something.
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// `path`, absolute as the machine sees it, as this process reaches it.
    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).exists()
    }

    /// The trimmed text of a small file; `None` when it cannot be read.
    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read_to_string(self.at(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Names in a folder, sorted; none when it does not exist.
    fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.at(folder)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The last component of what the link at `path` points to.
    fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = std::fs::read_link(self.at(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod testing;
