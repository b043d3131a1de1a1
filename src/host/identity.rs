//! Who this host is at a signaling server: kept between runs, so that its id stays.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use crossdesk_core::signaling::{DeviceId, Password};
use serde::{Deserialize, Serialize};

/// Name of the file in the data directory.
const FILE: &str = "devices.json";
/// Name of the file that says that a host runs.
const LOCK: &str = "lock";

#[derive(Clone, Serialize, Deserialize)]
struct Row {
    id: String,
    password: String,
}

/// The identities of this host, one for each server.
pub(super) struct Identities {
    folder: PathBuf,
    /// Held for as long as this host runs: two with one identity would take each other's guests.
    _lock: fs::File,
    server: String,
    rows: BTreeMap<String, Row>,
}

impl Identities {
    /// Reads what is kept in `folder`; `server` names the one that is meant.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub(super) fn open(folder: &Path, server: String) -> anyhow::Result<Self> {
        let lock = lock(folder)?;
        let file = folder.join(FILE);
        let rows = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is damaged; delete it to register anew", file.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        Ok(Self {
            folder: folder.to_owned(),
            _lock: lock,
            server,
            rows,
        })
    }

    pub(super) fn device(&self) -> Option<(DeviceId, Password)> {
        let Row { id, password } = self.rows.get(&self.server)?;
        Some((DeviceId::parse(id)?, Password::new(password)))
    }

    /// Keeps an identity, in a file that only its owner can read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&mut self, id: DeviceId, password: &Password) -> anyhow::Result<()> {
        let row = Row {
            id: id.to_string(),
            password: password.expose().to_owned(),
        };
        self.rows.insert(self.server.clone(), row);
        let file = self.folder.join(FILE);
        self.write(&file)
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// A power cut leaves the old file or the new one.
    fn write(&self, file: &Path) -> std::io::Result<()> {
        let fresh = file.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = options.open(&fresh)?;
        out.write_all(&serde_json::to_vec(&self.rows)?)?;
        out.sync_all()?;
        fs::rename(fresh, file)
    }
}

/// Makes the folder, closed to other users, and takes it for this process.
fn lock(folder: &Path) -> anyhow::Result<fs::File> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join(LOCK);
    let mut options = fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).open(&file);
    let opened = opened.with_context(|| format!("cannot write {}", file.display()))?;
    match opened.try_lock() {
        Ok(()) => Ok(opened),
        Err(fs::TryLockError::WouldBlock) => anyhow::bail!(
            "another host uses {}; name another directory with --data",
            folder.display()
        ),
        Err(fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", file.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_kept_for_each_server_and_for_its_owner_alone() {
        let folder = std::env::temp_dir().join(format!("crossdesk-identity-{}", std::process::id()));
        let id = DeviceId::parse("482915307").expect("nine digits");
        let mut kept = Identities::open(&folder, "a:1".into()).expect("nothing yet");
        assert_eq!(kept.device(), None);
        kept.keep(id, &Password::new("Qx7b2M"))
            .expect("a writable folder");
        let error = Identities::open(&folder, "a:1".into())
            .err()
            .expect("it is taken");
        assert!(error.to_string().contains("another host"), "{error}");
        drop(kept);
        let device = |server: &str| Identities::open(&folder, server.into()).expect("a file").device();
        assert_eq!(device("a:1"), Some((id, Password::new("Qx7b2M"))));
        assert_eq!(device("a:2"), None);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(folder.join(FILE))
                .expect("a file")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(folder.join(FILE), "{").expect("a writable folder");
        let error = Identities::open(&folder, "a:1".into()).err().expect("damage");
        assert!(format!("{error:#}").contains("delete it"), "{error:#}");
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
