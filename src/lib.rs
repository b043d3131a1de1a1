//! CrossDesk: see and drive a remote desktop.
