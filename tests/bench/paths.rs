//! Where things are: the streams of the repository, and the folder for what is made once and kept.

use std::fs;
use std::path::{Path, PathBuf};

/// The program that is measured, built by cargo beside this one.
pub const CLI: &str = env!("CARGO_BIN_EXE_crossdesk-cli");

/// A recorded stream of the repository.
pub fn desktop(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/desktop")
        .join(name)
}

/// A file of this bench's sources.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/bench")
        .join(name)
}

/// A file in the folder for made things, `bench-clips` in cargo's target folder.
pub fn made(name: &str) -> anyhow::Result<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.parent().unwrap_or(target).join("bench-clips");
    fs::create_dir_all(&folder)?;
    Ok(folder.join(name))
}
