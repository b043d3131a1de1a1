//! Facts about a Mac: Quartz, the Keychain and VideoToolbox are part of the system.

use crate::facts::{CredentialStore, DisplayServer, Family, Machine};

/// Looks at this Mac.
pub fn machine() -> Machine {
    Machine {
        distribution: "macOS".to_owned(),
        family: Family::MacOs,
        display: DisplayServer::MacOs,
        credentials: CredentialStore::Keychain,
        ..Machine::unknown()
    }
}
