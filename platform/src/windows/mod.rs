//! Facts about a Windows machine: the desktop, the Credential Manager and Direct3D are part of the system.

use crate::facts::{CredentialStore, DisplayServer, Family, Machine};

/// Looks at this machine.
pub fn machine() -> Machine {
    Machine {
        distribution: "Windows".to_owned(),
        family: Family::Windows,
        display: DisplayServer::Windows,
        credentials: CredentialStore::CredentialManager,
        ..Machine::unknown()
    }
}
