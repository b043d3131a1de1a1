//! What the operating system gives CrossDesk: descriptors, displays, devices, credentials.
