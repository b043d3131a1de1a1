//! Signaling: how a guest finds a host by its id and password, and how the two exchange descriptions and candidates.
//!
//! [`Client`] is the machine of a host or a guest. [`Server`] is the machine of one signaling server on virtual time. The loop that owns the sockets and the device
//! store feeds it text, store outcomes and time, and carries out the [`Effect`]s it polls. `docs/signaling.md` says what
//! is spoken.

pub mod client;
mod close;
mod ice;
mod identity;
mod keys;
mod limits;
mod message;
mod queue;
mod rate;
mod request;
pub mod server;
mod store;

pub use client::{Client, ClientEffect, ClientEvent, Failure, IceServer, IceServerKind, Role, SignalingText};
pub use close::{Close, CloseReason};
pub use ice::{BadIceUrl, IceConfig, Relay, RelayTransport, Stun};
pub use identity::{DeviceId, Identity, Password};
pub use limits::*;
pub use rate::Source;
pub use request::{Request, Unusable, parse_request};
pub use server::{Config, Effect, Note, Server, SocketId, Stats};
pub use store::{NewToken, StoreOutcome, StoreRequest};

use crate::time::Monotonic;

/// One instant on both clocks: rules run on the first, what peers are told about expiry is on the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The monotonic clock.
    pub at: Monotonic,
    /// Seconds since 1970-01-01 UTC.
    pub unix: u64,
}
