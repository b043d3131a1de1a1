//! What several topics share: a running agent, and where things lie.

pub mod agent;
pub mod host;
pub mod rtsp;

use std::path::{Path, PathBuf};

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A fresh directory under the build directory, removed when dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes one; `name` must be unique within the test run.
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the build directory is writable");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A directory left behind costs disk space, not a test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
