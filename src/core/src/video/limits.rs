//! Every number of live video, each with its reason.
//!
//! "Protocol" means the section "Live video" of the native automation protocol.

use std::time::Duration;

/// A ticket not presented for this long is worthless (protocol).
pub const TICKET_LIFETIME: Duration = Duration::from_secs(15);

/// A finished WebSocket handshake must be followed by the ticket within this time (protocol).
pub const TICKET_DEADLINE: Duration = Duration::from_secs(3);

/// A TCP connection must finish its HTTP handshake within this time. Together with [`TICKET_DEADLINE`] a mute
/// client holds a place for 6 s at most; browsers on the same machine need a few milliseconds.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(3);

/// Connections that are not viewers yet (protocol).
pub const MAX_CANDIDATES: usize = 16;

/// Authorised viewers (protocol).
pub const MAX_VIEWERS: usize = 8;

/// Tickets waiting to be presented. The adapter needs one per page it opens; a number this far above
/// [`MAX_VIEWERS`] only bounds memory against an adapter that never stops asking.
pub const MAX_GRANTS: usize = 64;

/// Bytes of one client message, all fragments together (protocol); one more closes the socket.
pub const MAX_CLIENT_MESSAGE_BYTES: usize = 1024;

/// Bytes of an HTTP request head. Browsers send well under 1 KiB here; cookies of other 127.0.0.1 services can add
/// some.
pub const MAX_HANDSHAKE_BYTES: usize = 8 * 1024;

/// Access units a viewer may leave unacknowledged (protocol).
pub const MAX_UNACKED_FRAMES: usize = 8;

/// Message bytes a viewer may leave unacknowledged, one frame alone excepted (protocol).
pub const MAX_UNACKED_BYTES: usize = 1024 * 1024;

/// Pictures an `nv12/1` viewer may leave unacknowledged (protocol).
pub const MAX_UNACKED_PICTURES: usize = 1;

/// A viewer whose oldest frame stays unacknowledged for this long is disconnected (protocol).
pub const ACK_DEADLINE: Duration = Duration::from_secs(10);

/// The source is asked for a keyframe at most this often, whoever wishes one (protocol).
pub const KEYFRAME_INTERVAL: Duration = Duration::from_secs(1);

/// Access units in the handoff (protocol).
pub const HANDOFF_UNITS: usize = 60;

/// Bytes in the handoff (protocol).
pub const HANDOFF_BYTES: usize = 8 * 1024 * 1024;

/// Access units kept since the last IDR so that a late joiner can start at once: 10 s at 60/s. A longer group is
/// forgotten (a joiner then waits for the keyframe that is asked for), as catching up on it would show old pictures
/// for too long.
pub const GROUP_UNITS: usize = 600;

/// Bytes kept since the last IDR: 13 Mbit/s over [`GROUP_UNITS`] at 60/s. It is memory held with no viewer at all.
pub const GROUP_BYTES: usize = 16 * 1024 * 1024;

/// Longest edge of an `nv12/1` picture in pixels (protocol).
pub const MAX_PICTURE_EDGE: u32 = 8192;

/// Pixels of an `nv12/1` picture (protocol).
pub const MAX_PICTURE_PIXELS: u64 = 16_777_216;
