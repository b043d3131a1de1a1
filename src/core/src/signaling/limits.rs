//! Every bound of the signaling server; the public protocol's numbers where it names one.

use std::time::Duration;

/// Longest message in either direction, in bytes: a whole session description has to fit.
pub const MAX_MESSAGE_BYTES: usize = 65_536;
/// A socket that has not logged in is closed after this time; a login that waits for the store extends it.
pub const LOGIN_DEADLINE: Duration = Duration::from_secs(15);
/// A socket that has logged in is closed after this time without ping, pong or `ping` message.
pub const HEARTBEAT_DEADLINE: Duration = Duration::from_secs(30);
/// How often heartbeats and what else expires are looked at.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Messages of one socket that wait for the store's answer to an earlier one.
pub const MAX_PARKED: usize = 128;
/// The same for all sockets together.
pub const MAX_PARKED_TOTAL: usize = 1024;
/// Bytes on their way to one socket.
pub const MAX_SEND_BYTES: usize = 1024 * 1024;
/// Sockets at a time unless the operator says otherwise.
pub const MAX_CONNECTIONS: usize = 16_384;

/// Longest identity, in bytes.
pub const MAX_ID_BYTES: usize = 128;
/// Longest password a peer may present, in bytes.
pub const MAX_PASSWORD_BYTES: usize = 256;
/// Length of a device's password, in bytes.
pub const PASSWORD_BYTES: usize = 6;

/// Failed checks of one target id within [`FAILURE_WINDOW`] before it is blocked.
pub const MAX_ID_FAILURES: usize = 5;
/// Failed checks from one source within [`FAILURE_WINDOW`] before it is blocked.
pub const MAX_SOURCE_FAILURES: usize = 20;
/// How long a failed check counts, and how long a block lasts.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(900);
/// Ids and sources whose failures are remembered, each; the oldest is forgotten.
pub const MAX_TRACKED: usize = 16_384;

/// Store operations one source may cause a minute, unless the operator says otherwise; more wait.
pub const CREDENTIAL_QUOTA: u32 = 60;
/// The span of [`CREDENTIAL_QUOTA`].
pub const QUOTA_WINDOW: Duration = Duration::from_secs(60);
/// Store operations waiting, all sources together.
pub const MAX_QUEUED: usize = 4096;
/// Store operations waiting for one source.
pub const MAX_QUEUED_PER_SOURCE: usize = 256;
/// Longest wait of a store operation.
pub const QUEUE_DEADLINE: Duration = Duration::from_secs(600);
/// Ids tried for a new device before registration fails: with a million devices one try in a thousand collides.
pub const MAX_ID_TRIES: u32 = 8;

/// Guests of one host, those that may come back included.
pub const MAX_GUESTS: usize = 64;
/// Hosts one socket may be connected to as a guest.
pub const MAX_JOINED: usize = 32;
/// How long a guest whose socket is gone may come back with its ticket.
pub const RESUME_DEADLINE: Duration = Duration::from_secs(615);
/// Devices in one presence request, and on one socket's watch list; more are not answered.
pub const MAX_WATCHED: usize = 256;
/// Password changes remembered so that a lost reply can be asked for again; the oldest is forgotten.
pub const MAX_CHANGES: usize = 1024;
/// Longest request id of a password change, in bytes.
pub const MAX_REQUEST_ID_BYTES: usize = 128;
/// Longest ICE user name fragment beside a candidate, in bytes.
pub const MAX_UFRAG_BYTES: usize = 256;
/// How long a reconnect token is good, in seconds.
pub const TOKEN_SECONDS: u64 = 30 * 24 * 3600;
