//! File trees for tests of the facts.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::System;

/// A file tree in the temporary folder, removed when dropped.
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("crossdesk-facts-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&root).expect("the temporary folder is writable");
        Self { root }
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.root.join(path.trim_start_matches('/'));
        let folder = place.parent().expect("the root is above every path");
        std::fs::create_dir_all(folder).expect("the temporary folder is writable");
        place
    }

    /// Adds a file.
    pub fn file(self, path: &str, content: &str) -> Self {
        std::fs::write(self.place(path), content).expect("the temporary folder is writable");
        self
    }

    /// Adds a symbolic link.
    pub fn link(self, path: &str, target: &str) -> Self {
        symlink(Path::new(target), self.place(path)).expect("the temporary folder takes links");
        self
    }

    /// The machine made of these files.
    pub fn system(&self) -> System {
        System::under(&self.root)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A leftover in the temporary folder is no reason to fail a test.
        drop(std::fs::remove_dir_all(&self.root));
    }
}
